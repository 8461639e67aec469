package payloadbuild

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/payload"
)

func TestPatch(t *testing.T) {
	for name, tt := range map[string]struct{ text, want, problem string }{
		"one line":    {"a\n\tb()\nc\n", "a\n\td()\nc\n", ""},
		"no line":     {"a\n\tb(1)\n", "", `0 lines are "b()"`},
		"two of them": {"b()\nb()\n", "", `2 lines are "b()"`},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "pkg", "x.go")
		if err := writeFile(path, []byte(tt.text)); err != nil {
			t.Fatal(err)
		}
		err := applyPatch(dir, payload.Patch{File: "pkg/x.go", Line: "b()", With: "d()"})
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got, readErr := os.ReadFile(path); err != nil || readErr != nil || string(got) != tt.want {
			t.Errorf("%s: %q, %v, %v", name, got, err, readErr)
		}
	}
}

// TestPatchesFitTheirModules: the lines are in the pinned source, and the patched text is Go. Modules that are not downloaded are not looked at: the
// build reports it then.
func TestPatchesFitTheirModules(t *testing.T) {
	o := testOptions(t)
	checked := 0
	for _, c := range payload.Components() {
		if len(c.Patches) == 0 {
			continue
		}
		dir := filepath.Join(o.Root, "payload", c.Name)
		upstream, err := o.goOutput(t.Context(), dir, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", c.Module)
		if err != nil {
			t.Fatal(err)
		}
		module := strings.TrimSpace(string(upstream))
		if module == "" {
			continue
		}
		copied, files := t.TempDir(), map[string]bool{}
		for _, p := range c.Patches {
			if path := filepath.Join(copied, p.File); !files[path] {
				files[path] = true
				data, err := os.ReadFile(filepath.Join(module, p.File))
				if err != nil {
					t.Fatal(err)
				}
				if err := writeFile(path, data); err != nil {
					t.Fatal(err)
				}
			}
			if err := applyPatch(copied, p); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		for path := range files {
			checked++
			if _, err := parser.ParseFile(token.NewFileSet(), path, nil, 0); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
	if checked == 0 {
		t.Skip("no patched module is downloaded")
	}
}
