package nodestate

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestParseKnowsEachNameAndThoseOfTheReleaseBefore(t *testing.T) {
	for _, s := range All() {
		if got, isFormer, known := Parse(string(s)); got != s || isFormer || !known {
			t.Errorf("Parse(%s) = %s, %t, %t", s, got, isFormer, known)
		}
	}
	for name, want := range map[string]State{
		"Current": Updated, "Applying": Updating, "Unpublished": Joining, "Silent": NotReporting, "Failed": Degraded, "silent": NotReporting,
	} {
		if got, isFormer, known := Parse(name); got != want || !isFormer || !known {
			t.Errorf("Parse(%s) = %s, %t, %t, want %s", name, got, isFormer, known, want)
		}
		if slices.Contains(Names(), name) {
			t.Errorf("%s is a former name and a name", name)
		}
	}
	if got, isFormer, known := Parse("degraded"); got != Degraded || isFormer || !known {
		t.Errorf("Parse(degraded) = %s, %t, %t", got, isFormer, known)
	}
	if got, isFormer, known := Parse("Done"); got != "" || isFormer || known {
		t.Errorf("Parse(Done) = %q, %t, %t", got, isFormer, known)
	}
}

func TestStatesOfTheReleaseBeforeAreDecoded(t *testing.T) {
	var got []State
	if err := json.Unmarshal([]byte(`["Failed","Silent","Removing","OfANewerOperator"]`), &got); err != nil {
		t.Fatal(err)
	}
	if want := []State{Degraded, NotReporting, Removing, "OfANewerOperator"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStatesThatNeedAttentionComeLast(t *testing.T) {
	states := All()
	slices.Reverse(states)
	slices.SortStableFunc(states, Compare)
	if !slices.Equal(states, All()) {
		t.Errorf("sorted: %v", states)
	}
	for i, s := range states[1:] {
		if states[i].NeedsAttention() && !s.NeedsAttention() {
			t.Errorf("%s comes after %s", s, states[i])
		}
	}
	if Compare("Unknown", Updated) >= 0 {
		t.Error("a state that is not known does not come first")
	}
}
