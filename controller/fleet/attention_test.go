package fleet

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"wmco/bundle/nodestate"
	"wmco/controller/status"
)

// TestDoneFollowsReady: the operator's report about all, unless some nodes alone are asked for. Warnings and other hints decide nothing.
func TestDoneFollowsReady(t *testing.T) {
	condition := func(of string, s metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: of, Status: s}
	}
	isReady, isNot := condition(status.Ready, metav1.ConditionTrue), condition(status.Ready, metav1.ConditionFalse)
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		done, part bool
	}{
		"no word of an operator":            {nil, true, true},
		"Ready":                             {[]metav1.Condition{isReady}, true, true},
		"Ready, with warnings about inputs": {[]metav1.Condition{condition(status.InputsClean, metav1.ConditionFalse), isReady}, true, true},
		"warnings, an older operator":       {[]metav1.Condition{condition(status.InputsClean, metav1.ConditionFalse)}, true, true},
		"refused, an older operator":        {[]metav1.Condition{condition(status.InputsAccepted, metav1.ConditionFalse)}, false, false},
		"refused":                           {[]metav1.Condition{condition(status.InputsAccepted, metav1.ConditionFalse), isNot}, false, false},
		"another node rolls out":            {[]metav1.Condition{condition(status.RolledOut, metav1.ConditionFalse), isNot}, false, true},
		"just started":                      {[]metav1.Condition{condition(status.Ready, metav1.ConditionUnknown)}, false, true},
	} {
		f := Fleet{Conditions: c.conditions, Nodes: []Row{{Node: "win-a", State: nodestate.Updated}}, labels: map[string]labels.Set{"win-a": {"zone": "a"}}}
		one, ok := f.Only("win-a")
		zone := f.Selected(labels.SelectorFromSet(labels.Set{"zone": "a"}), nil)
		if f.IsDone() != c.done || !ok || one.IsDone() != c.part || zone.IsDone() != c.part || f.Selected(labels.Everything(), nil).IsDone() != c.done {
			t.Errorf("%s: all %t, one %t, a zone %t", name, f.IsDone(), one.IsDone(), zone.IsDone())
		}
	}
}

// TestHintsComeLast of the problems.
func TestHintsComeLast(t *testing.T) {
	f := Fleet{Conditions: []metav1.Condition{{Type: status.InputsClean, Status: metav1.ConditionFalse}, {Type: status.ClocksAgree, Status: metav1.ConditionFalse}, {Type: status.InputsAccepted, Status: metav1.ConditionFalse}, {Type: status.Published, Status: metav1.ConditionUnknown}}}
	var types []string
	for _, c := range f.Problems() {
		types = append(types, c.Type)
	}
	if want := []string{status.InputsAccepted, status.Published, status.InputsClean, status.ClocksAgree}; !slices.Equal(types, want) {
		t.Errorf("%v, want %v", types, want)
	}
}
