package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is a JSON object as encoding/json decodes it, its numbers as json.Number.
type object = map[string]any

// Manifest is a Kubernetes object for a user or a pipeline to apply.
type Manifest struct {
	// Object is the whole object.
	Object map[string]any
	// Comment holds the lines of the comment before it in YAML.
	Comment []string
}

// YAML encodes the manifest with its comment. The same manifest gives the same bytes.
func (m Manifest) YAML() ([]byte, error) {
	text, err := yaml.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding manifest: %w", err)
	}
	var out strings.Builder
	for _, line := range m.Comment {
		out.WriteString("# " + line + "\n")
	}
	out.Write(text)
	return []byte(out.String()), nil
}

// decodeJSON reads JSON without losing digits.
func decodeJSON(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// deepCopy returns a deep copy of a JSON value.
func deepCopy(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for key, value := range v {
			out[key] = deepCopy(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = deepCopy(value)
		}
		return out
	}
	return v
}
