package applier

import (
	"bytes"
	"encoding/json"
	"fmt"

	"wmco/bundle"
)

// decodeAnswer reads one JSON value of a node program. Fields that a newer program of the same schema added are ignored.
func decodeAnswer(data []byte, what string, into any) error {
	if err := checkSchema(data, what); err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}

func checkSchema(data []byte, what string) error {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	switch {
	case head.Schema < 1:
		return fmt.Errorf("reading %s: no schema version in it", what)
	case head.Schema > Schema:
		return &bundle.SchemaError{What: what, Have: head.Schema, Want: Schema}
	}
	return nil
}

// encode is indented JSON without HTML escapes, a newline at the end.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return out.Bytes(), nil
}
