package winetest

import (
	"path/filepath"
	"testing"
)

// TestPackagesOnWindows runs the tests of packages whose code runs on Windows nodes, or imitates Windows.
func TestPackagesOnWindows(t *testing.T) {
	for _, tt := range []struct{ module, pkg string }{
		{"../../..", "./bundle"},
		{"../../verify/resolvers", "./windir"},
	} {
		t.Run(filepath.Base(tt.pkg), func(t *testing.T) {
			t.Parallel()
			p := New(t)
			results := p.Test(t, tt.module, tt.pkg)
			passed := 0
			for name, result := range results {
				if result == "pass" {
					passed++
				} else {
					t.Errorf("%s: %s", name, result)
				}
			}
			if passed == 0 {
				t.Error("no test ran")
			}
			t.Logf("%d tests passed", passed)
		})
	}
}
