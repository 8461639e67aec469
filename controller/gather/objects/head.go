package objects

import (
	"strings"

	"wmco/bundle"
)

// field is a key of an object that is read without parsing the object.
type field struct {
	value string
	// count is how many different values the key has.
	count int
}

// addValue notes a value; an empty one is a value that only a parser can read.
func (f *field) addValue(value string) {
	if f.count == 0 || f.value != value {
		*f = field{value, f.count + 1}
	}
}

// textValue returns the value. It is empty if there is none, or if only a parser can tell which one counts.
func (f field) textValue() string {
	if f.count > 1 {
		return ""
	}
	return f.value
}

// isUnclear reports whether the key occurs and has no certain value.
func (f field) isUnclear() bool { return f.count > 0 && f.textValue() == "" }

// head identifies an object: what is read of it to decide whether to parse it.
type head struct {
	kind, apiVersion, namespace, name field
	// isRead reports whether all keys of the object were read. If not, the fields are empty.
	isRead bool
	// hasItems reports whether the key items has a value that is not empty.
	hasItems bool
	// hasMetadata reports whether the key metadata occurs.
	hasMetadata bool
	// inherited is what the object may leave out because its list has it.
	inherited typeMeta
}

// inheritType fills in what an item of a typed list may leave out: a ProxyList holds Proxies of its own apiVersion. A plain
// List has nothing to inherit.
func (h head) inheritType(from typeMeta) head {
	h.inherited = from
	if !h.isRead {
		return h
	}
	if from.kind != "" && h.kind.count == 0 {
		h.kind.addValue(from.kind)
	}
	if from.apiVersion != "" && h.apiVersion.count == 0 {
		h.apiVersion.addValue(from.apiVersion)
	}
	return h
}

// itemType returns what the items may leave out if the object is a list.
func (h head) itemType() typeMeta {
	return typeMeta{h.kind.textValue(), h.apiVersion.textValue()}.itemType()
}

// isClear reports whether the head is enough to decide whether the object is needed.
func (h head) isClear() bool {
	return h.isRead && !h.kind.isUnclear() && !(h.isList() && h.apiVersion.isUnclear())
}

// isList reports whether the object is a list with items.
func (h head) isList() bool { return h.hasItems && strings.HasSuffix(h.kind.textValue(), "List") }

// mayMatch reports whether the object may be one that the want selects. A missing field does not exclude the object:
// it is malformed, and that is a finding.
func (h head) mayMatch(w Want) bool {
	version, namespace, name := h.apiVersion.textValue(), h.namespace.textValue(), h.name.textValue()
	return (h.kind.textValue() == w.Kind || h.kind.isUnclear()) &&
		(version == "" || groupOf(version) == w.Group) &&
		(namespace == "" || w.admitsNamespace(namespace)) &&
		(name == "" || w.admitsName(name))
}

// objectRef names the object, as far as the head does.
func (h head) objectRef() bundle.Ref {
	return bundle.Ref{Kind: h.kind.textValue(), Namespace: h.namespace.textValue(), Name: h.name.textValue()}
}

// allowsQuoting reports whether a finding may quote the object: it is neither a Secret nor a list that may hold one.
func (h head) allowsQuoting() bool {
	kind := h.kind.textValue()
	return h.isClear() && kind != "" && kind != "Secret" && !strings.HasSuffix(kind, "List")
}

// groupOf returns the group of an apiVersion; the core group is empty.
func groupOf(apiVersion string) string {
	group, _ := splitVersion(apiVersion)
	return group
}

// apiVersion joins group and version as an object has them.
func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

func splitVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}
