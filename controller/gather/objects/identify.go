package objects

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
)

// parsed is an object with the fields that decide between two copies of it.
type parsed struct {
	Object
	labels               map[string]string
	uid, resourceVersion string
}

// typeMeta is the kind and the apiVersion that an item of a typed list may leave out.
type typeMeta struct{ kind, apiVersion string }

// itemType returns what the items of a list of this type may leave out.
func (t typeMeta) itemType() typeMeta {
	kind, ok := strings.CutSuffix(t.kind, "List")
	if !ok || kind == "" {
		return typeMeta{}
	}
	return typeMeta{kind, t.apiVersion}
}

// or returns the type with what it lacks from another one.
func (t typeMeta) or(other typeMeta) typeMeta {
	return typeMeta{cmp.Or(t.kind, other.kind), cmp.Or(t.apiVersion, other.apiVersion)}
}

// flaw is the reason why a document is not an object.
type flaw struct{ field, message, fix string }

// identifyObject reads the fields that identify the object, as many as it can. An object without a kind has that of its
// list. Without either, it is not a Kubernetes object and has no flaw.
func identifyObject(object map[string]any, inherited typeMeta) (p parsed, bad *flaw) {
	kind, bad := textOfKey(object, "kind", "kind")
	if p.Kind = cmp.Or(kind, inherited.kind); bad != nil || p.Kind == "" {
		return p, bad
	}
	version, bad := textOfKey(object, "apiVersion", "apiVersion")
	p.Group, p.Version = splitVersion(cmp.Or(version, inherited.apiVersion))
	if bad == nil && p.Version == "" {
		bad = &flaw{"apiVersion", "has no apiVersion", "add the apiVersion of the object in the cluster"}
	}
	return p, cmp.Or(bad, p.identifyMetadata(object))
}

// identifyMetadata reads the fields of metadata, as many as it can.
func (p *parsed) identifyMetadata(object map[string]any) *flaw {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok && object["metadata"] != nil {
		return wrongType("metadata", object["metadata"], "a mapping")
	}
	var flaws [6]*flaw
	p.Namespace, flaws[0] = textOfKey(metadata, "namespace", "metadata.namespace")
	p.Name, flaws[1] = textOfKey(metadata, "name", "metadata.name")
	p.uid, flaws[2] = textOfKey(metadata, "uid", "metadata.uid")
	p.resourceVersion, flaws[3] = textOfKey(metadata, "resourceVersion", "metadata.resourceVersion")
	if p.Name == "" {
		flaws[4] = &flaw{"metadata.name", "has no metadata.name", "add the name of the object, or remove it from the inputs"}
	}
	flaws[5] = p.identifyLabels(metadata)
	return cmp.Or(flaws[:]...)
}

func (p *parsed) identifyLabels(metadata map[string]any) *flaw {
	labels, ok := metadata["labels"].(map[string]any)
	if !ok && metadata["labels"] != nil {
		return wrongType("metadata.labels", metadata["labels"], "a mapping")
	}
	p.labels = make(map[string]string, len(labels))
	for key := range maps.Keys(labels) {
		text, bad := textOfKey(labels, key, fmt.Sprintf("metadata.labels[%q]", key))
		if bad != nil {
			return bad
		}
		p.labels[key] = text
	}
	return nil
}

// textOfKey returns the text of a key. It is empty if there is none.
func textOfKey(m map[string]any, key, field string) (string, *flaw) {
	switch v := m[key].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", wrongType(field, v, "text")
	}
}

// wrongType is the flaw of a field that has another type than it must have.
func wrongType(field string, value any, want string) *flaw {
	return &flaw{
		field:   field,
		message: fmt.Sprintf("has %s as %s, not %s", field, typeName(value), want),
		fix:     fmt.Sprintf("write %s as %s; quote it if it looks like a number, a date or a boolean", field, want),
	}
}

const typeNameOfNothing = "empty"

// typeName returns the name of the type of a JSON value.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return typeNameOfNothing
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case bool:
		return "a boolean"
	case string:
		return "text"
	}
	return "a number"
}

// encodeJSON sets the JSON, including a kind and apiVersion that come from the list.
func (p *parsed) encodeJSON(object map[string]any) *flaw {
	object = maps.Clone(object)
	object["kind"], object["apiVersion"] = p.Kind, apiVersion(p.Group, p.Version)
	text, err := canonicalJSON(object)
	if err != nil {
		return &flaw{message: "cannot be written as JSON", fix: "remove numbers that JSON does not have, such as .inf and .nan"}
	}
	p.JSON = text
	return nil
}
