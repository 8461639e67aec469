package payload

import (
	"testing"

	"github.com/Masterminds/semver/v3"
)

// TestDefectsAreThoseOfThePins: an executable that was brought up to a version without the defect is taken out of the table.
func TestDefectsAreThoseOfThePins(t *testing.T) {
	for _, d := range Defects() {
		if len(d.Executables) == 0 || d.Effect == "" || d.Report == "" || d.Here == "" {
			t.Errorf("%s lacks a column", d.Report)
		}
		for _, name := range d.Executables {
			e := Find(name)
			if e.Name != name {
				t.Errorf("%s: no executable is named %q", d.Report, name)
				continue
			}
			if d.Fixed != "" && !semver.MustParse(d.Fixed).GreaterThan(semver.MustParse(e.Version)) {
				t.Errorf("%s: %s %s has it no more since %s", d.Report, name, e.Version, d.Fixed)
			}
		}
	}
}

func TestPatchesGoWithTheirComponent(t *testing.T) {
	want := map[string]int{"kubernetes-1.31": 3, "kubernetes-1.32": 1, "kubernetes-1.33": 1, "kubernetes-1.34": 1, "kubernetes-1.35": 1}
	for _, c := range Components() {
		if len(c.Patches) != want[c.Name] {
			t.Errorf("%s has %d patches, want %d", c.Name, len(c.Patches), want[c.Name])
		}
	}
}
