package modules

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindRefused(t *testing.T) {
	// As go1.26 prints them.
	for _, tt := range []struct {
		name, stderr string
		want         *RefusedError
	}{
		{"a zip", "main.go:2:8: k8s.io/api@v0.36.1: reading https://proxy.golang.org/k8s.io/api/@v/v0.36.1.zip: 403 Forbidden\n\tserver response: This module version is not available.\n",
			&RefusedError{"k8s.io/api", "v0.36.1", "403 Forbidden"}},
		{"its own go.mod", "go: downloading a.io/b v1.0.0\ngo: a.io/b@v1.0.0 requires\n\tc.io/d@v0.0.0-20260101000000-0123456789ab: reading https://proxy.golang.org/c.io/d/@v/x.mod: 404 Not Found\n",
			&RefusedError{"c.io/d", "v0.0.0-20260101000000-0123456789ab", "404 Not Found"}},
		{"no network", "go: k8s.io/kubernetes@v1.36.9: Get \"http://127.0.0.1:1/k8s.io/kubernetes/@v/v1.36.9.info\": dial tcp 127.0.0.1:1: connect: connection refused\n",
			&RefusedError{"k8s.io/kubernetes", "v1.36.9", `Get "http://127.0.0.1:1/k8s.io/kubernetes/@v/v1.36.9.info": dial tcp 127.0.0.1:1: connect: connection refused`}},
		{"no proxy", "go: k8s.io/kubernetes@v1.36.9: module lookup disabled by GOPROXY=off\n", &RefusedError{"k8s.io/kubernetes", "v1.36.9", "module lookup disabled by GOPROXY=off"}},
		{"another checksum", "verifying a.io/b@v1.0.0: checksum mismatch\n\tdownloaded: h1:x\n\tgo.sum: h1:y\n\nSECURITY ERROR\n", nil},
		{"another checksum beside a refusal", "go: a.io/b@v1.0.0: reading https://p/x.zip: 403 Forbidden\nverifying c.io/d@v1.0.0: checksum mismatch\n", nil},
		{"a missing line of go.sum", "x.go:1:1: a.io/b@v1.0.0: missing go.sum entry for go.mod file; to add it:\n\tgo mod download a.io/b\n", nil},
		{"a source that does not compile", "x.go:1:1: expected 'package', found reading\n", nil},
		{"nothing", "", nil},
	} {
		got, ok := findRefused(tt.stderr)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestHave(t *testing.T) {
	refused := map[string]bool{}
	startProxy(t, refused)
	dir := writeModule(t)
	var progress bytes.Buffer
	if err := Download(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}, Tests: true, Progress: &progress}); err != nil {
		t.Error(err)
	}
	if got := strings.Count(progress.String(), "go: downloading "); got != 2 {
		t.Errorf("progress: %q", progress.String())
	}
	runGo(t, dir, "clean", "-modcache")
	refused["c.io/d"] = true
	err := Download(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}})
	var r *RefusedError
	if !errors.As(err, &r) || r.Error() != "c.io/d@v1.0.0: 403 Forbidden" {
		t.Errorf("with a refused version: %v", err)
	}
	if err = Download(t.Context(), Selection{Dir: dir, Packages: []string{"./nothing"}}); err == nil || errors.As(err, &r) {
		t.Errorf("a package that is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte("c.io/d v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(refused, "c.io/d")
	if err = Download(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}}); err == nil || errors.As(err, &r) {
		t.Errorf("another checksum is taken for a refusal: %v", err)
	}
}
