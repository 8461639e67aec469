package gather

import (
	"encoding/json"
	"testing"

	"wmco/bundle/published"
	"wmco/controller/gather/objects"
)

// TestWhatAnOlderAgentDoesNotRead: a layer has nothing that its agent would refuse. An agent that has not reported yet came with this operator.
func TestWhatAnOlderAgentDoesNotRead(t *testing.T) {
	node := func(annotations map[string]string) objects.Object {
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"name": "win-a", "annotations": annotations},
			"status":   map[string]any{"addresses": []map[string]string{{"type": "InternalIP", "address": "10.0.0.5"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return object("", "Node", "", "win-a", string(body))
	}
	reported := func(features ...published.Feature) map[string]string {
		text, err := published.Report{State: published.StateApplied, Features: features}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{published.ReportAnnotation: text}
	}
	for name, tt := range map[string]struct {
		annotations    map[string]string
		noName, noKeys bool
	}{
		"no report yet":               {nil, false, false},
		"an agent of this version":    {reported(published.Features()...), false, false},
		"one without authorized keys": {reported(published.FeatureNodeName, published.FeatureSigned), false, true},
		"one without both":            {reported(), true, true},
	} {
		n := gatherFrom(t, Options{Complete: true}, node(tt.annotations)).Nodes[0]
		if n.OlderAgent != tt.noName || n.NoKeys != tt.noKeys {
			t.Errorf("%s: older %t, no keys %t", name, n.OlderAgent, n.NoKeys)
		}
	}
}
