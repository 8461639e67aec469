package pages

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestTheSchemaOfSettings(t *testing.T) {
	schema, err := settingsSchema()
	if err != nil {
		t.Fatal(err)
	}
	at := func(path ...string) map[string]any {
		s := schema
		for _, name := range path {
			s = s["properties"].(map[string]any)[name].(map[string]any)
		}
		return s
	}
	if got := at("rollout", "maxUnavailable"); string(got["default"].(json.RawMessage)) != "1" || got["description"] == "" {
		t.Errorf("rollout.maxUnavailable: %v", got)
	}
	if got := at("drift")["enum"]; !reflect.DeepEqual(got, []string{"Repair", "Report"}) {
		t.Errorf("drift: %v", got)
	}
	if others, ok := at("rollout")["additionalProperties"].(bool); !ok || others || at("kubelet")["type"] != "object" {
		t.Error("an editor would accept a misspelt setting, or refuse an override of the kubelet")
	}
}
