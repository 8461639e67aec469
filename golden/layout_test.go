package golden

import (
	"path/filepath"
	"testing"

	"wmco/layout"
)

// TestEveryGoldenIsABundleOfThisProject: the node agent accepts what render makes from the inputs of every case.
func TestEveryGoldenIsABundleOfThisProject(t *testing.T) {
	bundles := 0
	for _, dir := range caseDirs(t, "cases") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			h := readAll(t, dir)
			list, findings, err := h.RenderBundles(h.All)
			must(t, err)
			if findings.Refused() {
				t.Fatalf("%+v", findings)
			}
			for _, r := range list {
				bundles++
				if err := r.Bundle.Check(); err != nil {
					t.Errorf("%s: %v", r.Node.ID(), err)
				}
				if err := layout.Check(r.Bundle.Bundle); err != nil {
					t.Errorf("%s: %v", r.Node.ID(), err)
				}
			}
		})
	}
	if bundles < 20 {
		t.Errorf("only %d bundles", bundles)
	}
}
