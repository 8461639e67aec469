package pages

import (
	"encoding/json"
	"fmt"
	"reflect"

	"wmco/internal/build/schema"
)

// answerVersion is that of the JSON of all commands. Fields are added without a new one; it rises if one is removed or
// means something else.
const answerVersion = "v2"

// Schema is the schema of the JSON of a command, of its type.
func Schema(command string, answer reflect.Type) schema.Schema {
	s := schema.Of(answer)
	s["$schema"], s["$id"] = schema.Draft, "urn:wmco:"+command+":"+answerVersion
	s["title"] = "wmco " + command + " -o json"
	return s
}

// schemaPages are docs/schemas: one file with the answers of all commands, and the settings for editors.
func schemaPages(answers map[string]reflect.Type) (map[string]string, error) {
	all := schema.Schema{}
	for command, answer := range answers {
		all[command] = Schema(command, answer)
	}
	settings, err := settingsSchema()
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
		files["schemas/"+name] = string(text) + "\n"
	}
	return files, nil
}
