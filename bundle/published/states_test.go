package published

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestBlamesInput: inputs are blamed where they can be the reason, and not where the host, its disk or a layer is.
func TestBlamesInput(t *testing.T) {
	for _, tt := range []struct {
		fault              Fault
		failed, rolledBack bool
	}{
		{FaultInput, true, true},
		{FaultAPI, false, true},
		{"", false, true},
		{"another", false, true},
		{FaultDisk, false, false},
		{FaultLayer, false, false},
		{FaultHost, false, false},
		{FaultAgent, false, false},
	} {
		for state, want := range map[State]bool{StateFailed: tt.failed, StateRolledBack: tt.rolledBack, StateApplied: false} {
			if got := (Report{State: state, Fault: tt.fault}).BlamesInput(); got != want {
				t.Errorf("%s, fault %q: %t", state, tt.fault, got)
			}
		}
	}
}

// TestKnownCauses: a node chooses no label of a metric.
func TestKnownCauses(t *testing.T) {
	for _, c := range Causes() {
		if c.Known() != c {
			t.Errorf("%s is %s", c, c.Known())
		}
	}
	for _, c := range []Cause{"", "another"} {
		if got := c.Known(); got != CauseOther {
			t.Errorf("%q is %s", c, got)
		}
	}
}

// TestWaitsForAdoption: a Node of another operator waits until it is adopted, and one of this operator never does.
func TestWaitsForAdoption(t *testing.T) {
	report := func(r Report) string {
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	adopting, own := report(Report{State: StateApplied, Adopting: true}), report(Report{State: StateApplied})
	for _, tt := range []struct {
		name                     string
		version, desired, report string
		want                     bool
	}{
		{"a Node without annotations", "", "", "", false},
		{"another operator has joined it", "10.19.0", "", "", true},
		{"something is published for it", "10.19.0", "{}", "", false},
		{"the operator speaks for an agent that is not there yet", "10.19.0", "{}", adopting, true},
		{"its own agent reports", "10.19.0", "{}", own, false},
		{"its own agent reports, and nothing is published yet", "10.19.0", "", own, false},
		{"a report that cannot be read", "10.19.0", "", "{", false},
		{"a report without a version", "", "", adopting, false},
	} {
		annotations := map[string]string{VersionAnnotation: tt.version, DesiredAnnotation: tt.desired, ReportAnnotation: tt.report}
		if got := WaitsForAdoption(annotations); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestPages: a message links the page of its reason, and stays within its bound.
func TestPages(t *testing.T) {
	const pages, link = Pages("https://example.com/v1/"), " (https://example.com/v1/docs/reasons.md#nodefailed)"
	for _, tt := range []struct {
		name            string
		pages           Pages
		message, reason string
		most            int
		want            string
	}{
		{"a release", pages, "it failed", "NodeFailed", 100, "it failed" + link},
		{"no release", "", "it failed", "NodeFailed", 100, "it failed"},
		{"no reason", pages, "it failed", "", 100, "it failed"},
		{"a long message is shortened, its link is not", pages, "it failed at once", "NodeFailed", len(link) + 10, "it fail..." + link},
	} {
		got := tt.pages.AddPage(tt.message, tt.reason, tt.most)
		if got != tt.want || len(got) > tt.most {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestConfirmedNames(t *testing.T) {
	for value, want := range map[string][]string{"": {}, "mirrors": {"mirrors"}, " mirrors, settings,,instances ": {"mirrors", "settings", "instances"}} {
		if diff := cmp.Diff(want, ConfirmedNames(value)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", value, diff)
		}
	}
}

// TestWhatAnAgentCanDo: only the features in its report.
func TestWhatAnAgentCanDo(t *testing.T) {
	r := Report{Features: []Feature{FeatureSigned, "another"}}
	if !r.Has(FeatureSigned) || r.Has(FeatureBoot) || (Report{}).Has(FeatureSigned) {
		t.Error("features are not those of the report")
	}
	// A container runtime decides about pinned images.
	for f, want := range map[Feature]bool{FeatureBoot: true, FeatureSigned: true, FeaturePinnedImages: false} {
		if got := (Report{Features: Features()}).Has(f); got != want {
			t.Errorf("%s on any host: %t", f, got)
		}
	}
}

// TestImagesWithinBounds: numbers that cannot be true are not counted with.
func TestImagesWithinBounds(t *testing.T) {
	for _, tt := range []struct{ wanted, present, missing int }{{5, 3, 2}, {5, 7, 0}, {-1, 3, 0}, {5, -1, 5}, {1 << 30, 0, bundle.MaxPinnedImages}} {
		text, err := Report{State: StateApplied, Images: ImageProgress{Wanted: tt.wanted, Present: tt.present}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeReport(text)
		if err != nil || got.Images.CountMissing() != tt.missing {
			t.Errorf("%d of %d: %d are missing, %v", tt.present, tt.wanted, got.Images.CountMissing(), err)
		}
	}
}
