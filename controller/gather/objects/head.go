package objects

import (
	"bytes"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"

	"wmco/bundle"
)

// head is what identifies an object: read from its value, or from as much of a text as can be read.
type head struct {
	typeMeta
	namespace, name string
	// hasMetadata reports whether the key metadata occurs.
	hasMetadata bool
	// isUnclear reports whether the kind is written twice, or is no text.
	isUnclear bool
}

// headOf returns the head of a parsed object. What it lacks of its type it has from its list.
func headOf(object map[string]any, inherited typeMeta) head {
	var h head
	read := func(m map[string]any, key string) string { text, _ := m[key].(string); return text }
	metadata, _ := object["metadata"].(map[string]any)
	h.kind, h.apiVersion = read(object, "kind"), read(object, "apiVersion")
	h.namespace, h.name = read(metadata, "namespace"), read(metadata, "name")
	h.hasMetadata = metadata != nil
	h.isUnclear = object["kind"] != nil && h.kind == ""
	h.typeMeta = h.or(inherited)
	return h
}

var headKey = regexp.MustCompile(`(?m)^( *)["']?(kind|apiVersion|metadata)["']? *:`)

// headOfText returns as much as can be read of the head of a text that is not parsed as a whole: each of its keys by
// itself.
func headOfText(s segment, inherited typeMeta) head {
	text := blankedUpTo(s.text, s.start)
	if text[s.start] == '{' {
		var object struct {
			Kind       string         `json:"kind"`
			APIVersion string         `json:"apiVersion"`
			Metadata   map[string]any `json:"metadata"`
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(text, &object) != nil {
			return headOf(nil, inherited)
		}
		return headOf(map[string]any{"kind": object.Kind, "apiVersion": object.APIVersion, "metadata": object.Metadata}, inherited)
	}
	object, col, twice := map[string]any{}, columnOf(text, s.start), false
	for _, at := range headKey.FindAllSubmatchIndex(text, -1) {
		if at[3]-at[2] != col {
			continue
		}
		key := string(text[at[4]:at[5]])
		entry, bad := decodeYAML(text[at[0]:entryEnd(text, at[1], col)])
		if values, ok := entry.(map[string]any); ok && bad == nil {
			twice = twice || key == "kind" && object[key] != nil && object[key] != values[key]
			object[key] = values[key]
		}
	}
	if twice {
		object["kind"] = false
	}
	return headOf(object, inherited)
}

// entryEnd returns the offset of the first line behind at that is not indented deeper than col.
func entryEnd(text []byte, at, col int) int {
	for at = lineEnd(text, at) + 1; at < len(text); at = lineEnd(text, at) + 1 {
		line := text[at:lineEnd(text, at)]
		if content := bytes.TrimLeft(line, " "); len(content) > 0 && len(line)-len(content) <= col {
			return at
		}
	}
	return len(text)
}

// isList reports whether the kind is that of a list.
func (h head) isList() bool { return strings.HasSuffix(h.kind, "List") }

// isClear reports whether the head identifies the object.
func (h head) isClear() bool { return h.kind != "" && !h.isUnclear && !h.isList() }

// mayMatch reports whether the object may be one that the want selects. A missing field does not exclude the object:
// it is malformed, and that is a finding.
func (h head) mayMatch(w Want) bool {
	return (h.kind == w.Kind || h.isUnclear) &&
		(h.apiVersion == "" || groupOf(h.apiVersion) == w.Group) &&
		(h.namespace == "" || w.admitsNamespace(h.namespace)) &&
		(h.name == "" || w.admitsName(h.name))
}

// objectRef names the object, as far as the head does.
func (h head) objectRef() bundle.Ref {
	return bundle.Ref{Kind: h.kind, Namespace: h.namespace, Name: h.name}
}

// allowsQuoting reports whether a finding may quote the object: it is neither a Secret nor a list that may hold one.
func (h head) allowsQuoting() bool { return h.isClear() && h.kind != "Secret" }

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
