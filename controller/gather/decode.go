package gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"wmco/bundle"
	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/reason"
)

// contentDigest is of what an object says, without what the API server counts.
func contentDigest(data []byte) bundle.Digest {
	var object map[string]any
	if json.Unmarshal(data, &object) != nil {
		return bundle.Of(data)
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "generation", "uid", "creationTimestamp", "managedFields"} {
			delete(metadata, name)
		}
	}
	canonical, err := json.Marshal(object)
	if err != nil {
		return bundle.Of(data)
	}
	return bundle.Of(canonical)
}

// find returns the one object in that place, if it was found.
func (g *gatherer) find(p place) (objects.Object, bool) {
	for _, o := range g.objects {
		if p == (place{o.Group, o.Kind, o.Namespace, o.Name}) {
			return o, true
		}
	}
	return objects.Object{}, false
}

// all returns the objects of a kind, by name.
func (g *gatherer) all(group, kind string) []objects.Object {
	var found []objects.Object
	for _, o := range g.objects {
		if o.Group == group && o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

// decode reads an object into its type. Fields that the type does not know are none of our business: the cluster may
// be newer. What does not fit the type is a finding with its path; the rest is read all the same, so that further
// problems are found in the same run.
func (g *gatherer) decode(o objects.Object, into any) bool {
	err := json.Unmarshal(o.JSON, into)
	if err == nil {
		return true
	}
	f := bundle.Finding{Object: o.Ref, Message: "the object does not fit its type", Fix: "correct the object; `oc explain " + o.Kind + "` shows its fields"}
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) {
		f.Field = typeErr.Field
		f.Message = fmt.Sprintf("has type %s where %s is wanted", kindOf(typeErr.Value), typeErr.Type)
	}
	g.add(bundle.SeverityError, reason.InputInvalid, f)
	return typeErr != nil
}

var firstWord = regexp.MustCompile(`^\w+`)

// kindOf drops the number that encoding/json adds to "number": no value goes into a message.
func kindOf(value string) string { return firstWord.FindString(value) }

// place is where the object that plays a role is found.
type place struct{ group, kind, namespace, name string }

// read finds and decodes the object that plays a role, and records it as an origin.
func (g *gatherer) read(origin render.Origin, p place, into any) bool {
	o, ok := g.find(p)
	if !ok || !g.decode(o, into) {
		return false
	}
	g.cluster.Origins[origin] = o.Ref
	return true
}

// elided matches what `oc adm inspect` puts in the place of a secret value: "998 bytes long".
var elided = regexp.MustCompile(`^\d+ bytes long\s*$`)

// secretValue reads one key of a Secret. A value that the source lacks or that a must-gather emptied becomes a marked
// stand-in with a warning, unless the source is complete.
func (g *gatherer) secretValue(data map[string][]byte, ref bundle.Ref, key string) bundle.Secret {
	value := data[key]
	if len(value) > 0 && !elided.Match(value) {
		return bundle.NewSecret(string(value))
	}
	if g.options.Complete {
		return bundle.Secret{}
	}
	what := ref.String() + " " + key
	g.add(bundle.SeverityWarning, reason.SecretStandIn, bundle.Finding{
		Object: ref, Field: `data["` + key + `"]`, Message: "is not in the inputs; a marked stand-in takes its place",
		Fix: "give the object as one more --from, or read from the cluster itself, to see the real bundle",
	})
	return bundle.NewStandIn(what)
}
