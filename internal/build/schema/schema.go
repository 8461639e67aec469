// Package schema makes JSON schemas (json-schema.org, 2020-12) of Go types: of what encoding/json writes of a value. It
// knows no type by name but those of the standard library.
package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Schema is a JSON schema, or a part of one.
type Schema map[string]any

// Draft names the version of JSON schema.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Of returns the schema of a type. Objects may have more fields: a later version adds some. A type that
// encodes itself has no schema. A type that holds itself is not supported.
func Of(t reflect.Type) Schema {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return Schema{"type": "string", "format": "date-time"}
	case implementsInterface[json.Marshaler](t):
		return Schema{}
	case implementsInterface[encoding.TextMarshaler](t):
		return Schema{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return Of(t.Elem())
	case reflect.Struct:
		return ofStruct(t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Schema{"type": "string", "contentEncoding": "base64"}
		}
		return Schema{"type": []string{"array", "null"}, "items": Of(t.Elem())}
	case reflect.Map:
		return Schema{"type": []string{"object", "null"}, "additionalProperties": Of(t.Elem())}
	case reflect.String:
		return Schema{"type": "string"}
	case reflect.Bool:
		return Schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return Schema{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Schema{"type": "integer"}
	default:
		return Schema{}
	}
}

func implementsInterface[I any](t reflect.Type) bool {
	what := reflect.TypeFor[I]()
	return t.Implements(what) || reflect.PointerTo(t).Implements(what)
}

func ofStruct(t reflect.Type) Schema {
	properties, required := Schema{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			below := Of(f.Type)
			for n, s := range structFields(below) {
				properties[n] = s
			}
			if more, ok := below["required"].([]string); ok {
				required = append(required, more...)
			}
		default:
			if name == "" {
				name = f.Name
			}
			properties[name] = Of(f.Type)
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				required = append(required, name)
			}
		}
	}
	s := Schema{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// structFields are the properties of a schema of an object.
func structFields(s Schema) Schema {
	properties, _ := s["properties"].(Schema)
	return properties
}
