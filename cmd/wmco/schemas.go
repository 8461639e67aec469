package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"wmco/controller/fleet"
	"wmco/internal/build/schema"
	"wmco/render"
	"wmco/report/mustgather"
)

// answerVersion is that of the JSON of all commands. Fields are added without a new one; it rises if one is removed or means something else.
const answerVersion = "v2"

// answerTypes are the types of what -o json prints, by command; of commands that print a line for each event, of one line.
func answerTypes() map[string]reflect.Type {
	list := map[string]reflect.Type{
		"apply":        reflect.TypeFor[hostEvent](),
		"diff":         reflect.TypeFor[reviewed](),
		"explain":      reflect.TypeFor[explanation](),
		"gather":       reflect.TypeFor[mustgather.Summary](),
		"golden check": reflect.TypeFor[reviewed](),
		"machineset":   reflect.TypeFor[machineSetAnswer](),
		"preflight":    reflect.TypeFor[[]preflightJSON](),
		"render":       reflect.TypeFor[renderJSON](),
		"selftest":     reflect.TypeFor[[]testedJSON](),
		"status":       reflect.TypeFor[fleet.Fleet](),
		"userdata":     reflect.TypeFor[userDataAnswer](),
		"validate":     reflect.TypeFor[validateJSON](),
		"verify":       reflect.TypeFor[[]comparedJSON](),
		"version":      reflect.TypeFor[versionAnswer](),
	}
	for _, v := range annotationVerbs() {
		list[v.name] = reflect.TypeFor[verbAnswer]()
	}
	return list
}

// schemaOf is the schema of the JSON of a command.
func schemaOf(command string) schema.Schema {
	s := schema.Of(answerTypes()[command])
	s["$schema"], s["$id"] = schema.Draft, "urn:wmco:"+command+":"+answerVersion
	s["title"] = "wmco " + command + " -o json"
	return s
}

// schemaFiles are docs/schemas: one file with the answers of all commands, and the settings for editors.
func schemaFiles() (map[string]string, error) {
	all := schema.Schema{}
	for command := range answerTypes() {
		all[command] = schemaOf(command)
	}
	settings, err := render.SettingsSchema()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, value := range map[string]any{
		"commands.json":               schema.Schema{"$schema": schema.Draft, "$id": "urn:wmco:commands:" + answerVersion, "$defs": all},
		"windows-machine-config.json": settings,
	} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("encoding the schema %s: %w", name, err)
		}
		files[name] = string(text) + "\n"
	}
	return files, nil
}
