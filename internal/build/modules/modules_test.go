package modules

import (
	"bytes"
	"errors"
	"io"
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
	p := newProxy(t, "a.io/b@v1.0.0", "c.io/d@v1.2.0")
	dir := writeModule(t, "a.io/b@v1.0.0", "c.io/d@v1.2.0")
	var progress bytes.Buffer
	if err := Have(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}, Tests: true, Progress: &progress}); err != nil {
		t.Error(err)
	}
	if got := strings.Count(progress.String(), "go: downloading "); got != 2 {
		t.Errorf("progress: %q", progress.String())
	}
	if _, err := goCommand(t.Context(), dir, nil, "clean", "-modcache"); err != nil {
		t.Fatal(err)
	}
	p.refused["c.io/d@v1.2.0"] = true
	err := Have(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Error() != "c.io/d@v1.2.0: 403 Forbidden" {
		t.Errorf("with a refused version: %v", err)
	}
	err = Have(t.Context(), Selection{Dir: dir, Packages: []string{"./nothing"}})
	if err == nil || errors.As(err, &refused) {
		t.Errorf("a package that is not there: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte("c.io/d v1.2.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.refused["c.io/d@v1.2.0"] = false
	if err = Have(t.Context(), Selection{Dir: dir, Packages: []string{"./..."}}); err == nil || errors.As(err, &refused) {
		t.Errorf("another checksum is taken for a refusal: %v", err)
	}
}

func TestPins(t *testing.T) {
	const commit, before, after = "v0.0.0-20260202000000-0123456789ab", "v0.0.0-20260101000000-0123456789ab", "v0.0.0-20260303000000-0123456789ab"
	p := newProxy(t, "a.io/b@v1.0.0", "c.io/d@v1.1.0", "c.io/d@v1.2.0", "c.io/d@v1.3.0", "e.io/f@"+commit, "e.io/f@"+before, "e.io/f@"+after, "g.io/h@v1.0.0", "i.io/Upper@"+commit)
	p.versions["i.io/!upper"] = p.versions["i.io/Upper"]
	dir := writeModule(t, "a.io/b@v1.0.0", "c.io/d@v1.2.0", "e.io/f@"+commit, "g.io/h@v1.0.0")
	p.unlisted["c.io/d@v1.2.0"], p.refused["c.io/d@v1.2.0"] = true, true
	p.unlisted["e.io/f@"+commit], p.refused["e.io/f@"+commit] = true, true
	p.unlisted["g.io/h@v1.0.0"] = true

	var out bytes.Buffer
	all := filepath.Join(t.TempDir(), "pins.txt")
	if err := ReportPins(t.Context(), dir, &out, all); !errors.Is(err, ErrNotServed) {
		t.Errorf("error %v", err)
	}
	want := strings.Join([]string{
		"go.mod: 4 pins: 1 listed, 1 served but not listed, 2 not served",
		"  c.io/d@v1.2.0: 403 Forbidden; nearest listed: v1.1.0, v1.3.0",
		"  e.io/f@" + commit + ": 403 Forbidden; nearest listed: " + before + ", " + after,
		"  g.io/h@v1.0.0: served, not listed; nearest listed: none",
		"",
	}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = "go.mod\ta.io/b@v1.0.0\tlisted\ngo.mod\tc.io/d@v1.2.0\tnot served\ngo.mod\te.io/f@" + commit + "\tnot served\ngo.mod\tg.io/h@v1.0.0\tserved, not listed\n"
	if got, err := os.ReadFile(all); err != nil || cmp.Diff(want, string(got)) != "" {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, string(got)))
	}

	clear(p.refused)
	out.Reset()
	if err := ReportPins(t.Context(), dir, &out, all); err != nil || strings.Contains(out.String(), "403") {
		t.Errorf("everything is served: %v\n%s", err, out.String())
	}
	if got := proxyList(t.Context(), dir, "i.io/Upper"); len(got) != 1 {
		t.Errorf("a module with a capital letter: %q", got)
	}
}

func TestPinsWithoutAProxy(t *testing.T) {
	newProxy(t, "a.io/b@v1.0.0")
	dir := writeModule(t, "a.io/b@v1.0.0")
	if err := Have(t.Context(), Selection{Dir: dir, Packages: []string{"."}}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", "off")
	err := ReportPins(t.Context(), dir, io.Discard, filepath.Join(t.TempDir(), "pins.txt"))
	if err == nil || !strings.Contains(err.Error(), "lists no version of any module") {
		t.Errorf("error %v", err)
	}
}

func TestPseudoVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": false, "v1.2.3-rc.1": false, "v1.2.3-alpha-1": false, "v3.9.0+incompatible": false, "v0.0.0-20260101000000-0123456789ab": true,
		"v1.0.3-0.20250322232337-35a7c28c31ee": true, "v1.2.0-pre.0.20250322232337-35a7c28c31ee": true, "v2.1.2-0.20190413222219-f784269be439+incompatible": true,
	} {
		if isPseudo(version) != want {
			t.Errorf("%s: %t", version, !want)
		}
	}
}
