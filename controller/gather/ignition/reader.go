package ignition

import (
	"fmt"
	"maps"
	"slices"
)

// reader walks the decoded JSON and collects problems with their paths.
type reader struct {
	// sections, storage and resources are the fields that the configuration's version has.
	sections, storage, resources []string
	problems                     []Problem
	unknown                      []string
}

func (r *reader) addProblem(field, message string) {
	r.problems = append(r.problems, Problem{Field: field, Message: message})
}

// readObject returns the fields of an object. Null and a missing value have none.
func (r *reader) readObject(field string, v any) map[string]any {
	if o, ok := v.(map[string]any); ok || v == nil {
		return o
	}
	r.wrongType(field, v, "an object")
	return nil
}

func (r *reader) readList(field string, v any) []any {
	if l, ok := v.([]any); ok || v == nil {
		return l
	}
	r.wrongType(field, v, "a list")
	return nil
}

func (r *reader) readText(field string, v any) string {
	if s, ok := v.(string); ok || v == nil {
		return s
	}
	r.wrongType(field, v, "a string")
	return ""
}

// readRequiredText returns the text of a field that must not be empty.
func (r *reader) readRequiredText(field string, v any) string {
	if v == nil || v == "" {
		r.addProblem(field, "is missing")
		return ""
	}
	return r.readText(field, v)
}

// wrongType does not quote the value, which may be secret.
func (r *reader) wrongType(field string, v any, want string) {
	has := "a number"
	switch v.(type) {
	case map[string]any:
		has = "an object"
	case []any:
		has = "a list"
	case string:
		has = "a string"
	case bool:
		has = "a boolean"
	}
	r.addProblem(field, "has "+has+" where "+want+" is required")
}

// collectUnknownFields collects the unknown fields of an object.
func (r *reader) collectUnknownFields(field string, o map[string]any, known []string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(known, name) {
			continue
		}
		if field != "" {
			name = field + "." + name
		}
		r.unknown = append(r.unknown, name)
	}
}

func elementPath(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
