package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type word string

type base struct {
	Kind word `json:"kind"`
}

type example struct {
	base
	Name    string            `json:"name"`
	Size    int64             `json:"size,omitempty"`
	At      time.Time         `json:"at,omitzero"`
	List    []base            `json:"list"`
	Labels  map[string]string `json:"labels,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Pointer *bool             `json:"pointer,omitempty"`
	Hidden  string            `json:"-"`
	Data    []byte            `json:"data,omitempty"`
	Any     any               `json:"any,omitempty"`
	private string
}

func TestOf(t *testing.T) {
	text := Schema{"type": "string"}
	kind := Schema{"type": "object", "properties": Schema{"kind": text}, "required": []string{"kind"}}
	want := Schema{"type": "object", "required": []string{"kind", "name", "list"}, "properties": Schema{
		"kind": text, "name": text, "size": Schema{"type": "integer"}, "at": Schema{"type": "string", "format": "date-time"},
		"list": Schema{"type": []string{"array", "null"}, "items": kind}, "labels": Schema{"type": []string{"object", "null"}, "additionalProperties": text},
		"raw": Schema{}, "pointer": Schema{"type": "boolean"}, "data": Schema{"type": "string", "contentEncoding": "base64"}, "any": Schema{},
	}}
	if diff := cmp.Diff(want, Of(reflect.TypeOf(example{private: ""}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
