package layers

import "testing"

// TestARoleWithoutLayersAllowsNothing: a rule without names would allow all Secrets of the operator's namespace, the private key too.
func TestARoleWithoutLayersAllowsNothing(t *testing.T) {
	for _, names := range [][]string{nil, {}} {
		if rules := LayerRole(namespace, names).Rules; len(rules) > 0 {
			t.Errorf("%v", rules)
		}
	}
	if rules := LayerRole(namespace, []string{"a"}).Rules; len(rules) != 1 || len(rules[0].ResourceNames) != 1 || rules[0].ResourceNames[0] != "a" {
		t.Errorf("%v", rules)
	}
}
