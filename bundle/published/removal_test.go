package published

import (
	"strings"
	"testing"

	"wmco/bundle"
)

// TestARemovalIsForOneNodeAlone: a UID that is missing, or another one, ends no Node.
func TestARemovalIsForOneNodeAlone(t *testing.T) {
	own := NodeID{Name: "win-a", UID: "uid-a"}
	for name, tt := range map[string]struct {
		desired Desired
		want    bool
	}{
		"of the Node":                   {Desired{NodeName: "win-a", NodeUID: "uid-a", Remove: true}, true},
		"of a Node of any UID":          {Desired{NodeName: "win-a", Remove: true}, false},
		"of an earlier Node":            {Desired{NodeName: "win-a", NodeUID: "uid-b", Remove: true}, false},
		"of a Node of another name":     {Desired{NodeName: "win-b", NodeUID: "uid-a", Remove: true}, false},
		"a bundle for the Node":         {Desired{NodeName: "win-a", NodeUID: "uid-a"}, false},
		"a bundle for a Node of no UID": {Desired{NodeName: "win-a"}, false},
	} {
		if got := tt.desired.IsSignedToRemove(own); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (Desired{NodeName: "win-a", Remove: true}).IsSignedToRemove(NodeID{Name: "win-a"}) {
		t.Error("a Node without a UID is removed")
	}
}

// TestARemovalPermitsNothingElse that the state of before has permitted.
func TestARemovalPermitsNothingElse(t *testing.T) {
	d := desired(t)
	d.MaxImpact, d.Boot, d.Urgent, d.PermitFor = bundle.ImpactReboot, d.Bundle, true, 60
	end := d.ToRemove()
	if !end.Remove || end.MaxImpact != bundle.ImpactNone || end.Boot != "" || end.Urgent || end.PermitFor != 0 || end.Bundle != d.Bundle {
		t.Errorf("%+v", end)
	}
}

// TestWhoseRemovalIsDone: a report is about the Node whose UID it has.
func TestWhoseRemovalIsDone(t *testing.T) {
	for name, tt := range map[string]struct {
		progress    RemovalProgress
		begun, done bool
	}{
		"nothing":               {RemovalProgress{}, false, false},
		"begun":                 {RemovalProgress{Node: "uid-a"}, true, false},
		"done":                  {RemovalProgress{Node: "uid-a", Done: true}, true, true},
		"an earlier Node":       {RemovalProgress{Node: "uid-b", Done: true}, false, false},
		"no Node":               {RemovalProgress{Done: true}, false, false},
		"a Node with a long ID": {RemovalProgress{Node: strings.Repeat("u", 100), Done: true}, false, false},
	} {
		text, err := Report{State: StateApplying, Removal: tt.progress}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeReport(text)
		if node := (NodeID{UID: "uid-a"}); err != nil || r.Removal.HasBegunFor(node) != tt.begun || r.Removal.IsDoneFor(node) != tt.done {
			t.Errorf("%s: %+v, %v", name, r.Removal, err)
		}
	}
	if got, err := DecodeReport(`{"schema":1,"state":"Failed","removal":{"node":"` + strings.Repeat("u", 100) + `","message":"` + strings.Repeat("m", 2*MaxMessage) + `"}}`); err != nil || len(got.Removal.Node) > maxUID || len(got.Removal.Message) > MaxMessage {
		t.Errorf("%+v, %v", got.Removal, err)
	}
}
