package objects_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/controller/gather/objects"
)

// someWants returns the default wants of the tests.
func someWants() []objects.Want {
	return []objects.Want{
		{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"},
		{Version: "v1", Kind: "Node"},
		{Version: "v1", Kind: "Secret", Namespace: "openshift-config"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "openshift-config", Names: []string{"trusted-ca", "other"}},
	}
}

// read reads paths relative to the folder, which becomes the working directory.
func read(t *testing.T, dir string, paths []string, stdin io.Reader, wants []objects.Want) objects.Set {
	t.Helper()
	t.Chdir(dir)
	set, err := objects.NewPathsReader(paths, stdin).Read(context.Background(), wants)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// folder writes files, named by their slash-separated paths.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// printed returns one line for each object and each finding.
func printed(set objects.Set) []string {
	lines := []string{}
	for _, o := range set.Objects {
		lines = append(lines, fmt.Sprintf("%s at %s:%d", o.Ref, o.Source, o.Line))
	}
	for _, f := range set.Findings {
		line := fmt.Sprintf("%s %s at %s:%d %s %s", f.Severity, f.Reason, f.Object.Source, f.Object.Line, f.Object, f.Field)
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// errorsOf returns the findings of severity error.
func errorsOf(set objects.Set) bundle.Findings {
	var out bundle.Findings
	for _, f := range set.Findings {
		if f.Severity == bundle.SeverityError {
			out = append(out, f)
		}
	}
	return out
}

// lines joins lines and ends the last.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }
