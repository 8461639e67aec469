package gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
)

// findObject returns the object at that place, if it was read.
func (g *gatherer) findObject(p place) (objects.Object, bool) {
	for _, o := range g.objects {
		if p == (place{o.Group, o.Kind, o.Namespace, o.Name}) {
			return o, true
		}
	}
	return objects.Object{}, false
}

// listObjects returns the objects of a kind, by name.
func (g *gatherer) listObjects(group, kind string) []objects.Object {
	var found []objects.Object
	for _, o := range g.objects {
		if o.Group == group && o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

// decodeObject reads an object into its type, as an API server does: the case of fields matters. Unknown fields are
// ignored, with a finding where a person may have written them. A value of the wrong type is a finding with its path.
// The rest is still read, so that one run finds all problems.
func (g *gatherer) decodeObject(o objects.Object, into any) bool {
	unknown, err := kjson.UnmarshalStrict(o.JSON, into, kjson.DisallowUnknownFields)
	if err == nil {
		g.unknownFields(o, into, unknown)
		return true
	}
	f := bundle.Finding{
		Object: o.Ref, Message: "the object does not fit its type",
		Fix: "correct the object; `oc explain " + o.Kind + "` shows its fields",
	}
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) {
		f.Field = typeErr.Field
		f.Message = fmt.Sprintf("has type %s where %s is required", dropNumberText(typeErr.Value), typeErr.Type)
	}
	g.addFinding(bundle.SeverityError, reason.InputInvalid, f)
	return typeErr != nil
}

var firstWord = regexp.MustCompile(`^\w+`)

// dropNumberText removes the number that encoding/json adds to "number": a message never has a value.
func dropNumberText(value string) string { return firstWord.FindString(value) }

// place identifies an object.
type place struct{ group, kind, namespace, name string }

// readObject finds and decodes an object, and records it as the origin.
func (g *gatherer) readObject(origin render.Origin, p place, into any) bool {
	o, ok := g.findObject(p)
	if !ok || !g.decodeObject(o, into) {
		return false
	}
	g.cluster.Origins[origin] = o.Ref
	return true
}

// elided matches the text that `oc adm inspect` writes in place of a secret value: "998 bytes long".
var elided = regexp.MustCompile(`^\d+ bytes long$`)

// readSecret returns the contents of a Secret, and its reference even where it is not in the inputs. As in the API
// server, stringData replaces data
// (kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/secret-v1).
func (g *gatherer) readSecret(origin render.Origin, namespace, name string) (map[string][]byte, bundle.Ref) {
	var secret corev1.Secret
	if !g.readObject(origin, place{"", "Secret", namespace, name}, &secret) {
		return nil, bundle.Ref{Kind: "Secret", Namespace: namespace, Name: name}
	}
	data := map[string][]byte{}
	maps.Copy(data, secret.Data)
	for key, text := range secret.StringData {
		data[key] = []byte(text)
	}
	return data, g.cluster.Origins[origin]
}

// secretValue reads one key of a Secret. If the value is missing or a must-gather emptied it, it returns a marked
// stand-in and adds a warning, unless the source is complete.
func (g *gatherer) secretValue(data map[string][]byte, ref bundle.Ref, key string) bundle.Secret {
	if hasValue(data[key]) || len(data[key]) == 0 && g.options.Complete {
		return bundle.NewSecret(string(data[key]))
	}
	return g.secretPlaceholder(ref, key, "add the object as another --from, or read the live cluster, to see the real bundle")
}

// hasValue reports whether the value of a Secret is there and not elided, by a must-gather or by us.
func hasValue(value []byte) bool {
	text := strings.TrimSpace(string(value))
	return text != "" && !elided.MatchString(text) && !bundle.IsStandIn(text) && text != bundle.MaskedText
}

// secretPlaceholder returns the stand-in of a secret and adds a warning.
func (g *gatherer) secretPlaceholder(ref bundle.Ref, key, fix string) bundle.Secret {
	g.addFinding(bundle.SeverityWarning, reason.SecretStandIn, bundle.Finding{
		Object: ref, Field: `data["` + key + `"]`, Message: "is not in the inputs; a marked stand-in replaces it", Fix: fix,
	})
	return bundle.NewStandIn(ref.String() + " " + key)
}
