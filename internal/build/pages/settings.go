package pages

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/internal/build/schema"
	"wmco/render"
)

// settingsSchema is the JSON schema of config.yaml, for editors: closed, so that a misspelt setting is underlined.
func settingsSchema() (map[string]any, error) {
	docs, err := render.SettingDocs()
	if err != nil {
		return nil, err
	}
	s := fieldsSchema(reflect.TypeFor[render.Settings](), "", docs)
	s["$schema"], s["$id"] = schema.Draft, "urn:wmco:windows-machine-config:v1"
	s["title"] = render.SettingsKey + " of the ConfigMap " + render.SettingsConfigMap
	return s, nil
}

func fieldsSchema(t reflect.Type, prefix string, docs []render.SettingDoc) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[json.RawMessage]():
			properties[name] = map[string]any{"type": "object"}
		case f.Type == reflect.TypeFor[intstr.IntOrString]():
			properties[name] = map[string]any{"type": []string{"integer", "string"}}
		case f.Type.Kind() == reflect.Struct:
			properties[name] = fieldsSchema(f.Type, prefix+name+".", docs)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			properties[name] = map[string]any{"type": "array", "items": fieldsSchema(f.Type.Elem(), prefix+name+".", docs)}
		case f.Type.Kind() == reflect.Slice:
			properties[name] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
		default:
			properties[name] = map[string]any{"type": map[reflect.Kind]string{
				reflect.Int: "integer", reflect.Bool: "boolean", reflect.String: "string",
			}[f.Type.Kind()]}
		}
		describeSetting(properties[name], prefix+name, docs)
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// describeSetting adds the description of a setting.
func describeSetting(property any, name string, docs []render.SettingDoc) {
	s, ok := property.(map[string]any)
	for _, d := range docs {
		if !ok || d.Name != name {
			continue
		}
		s["description"] = d.Meaning
		if string(d.Default) != "null" {
			s["default"] = d.Default
		}
		if len(d.Values) > 0 {
			s["enum"] = d.Values
		}
	}
}
