package payloadbuild

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"wmco/payload"
)

// TestMinorVersionsArePinnedTogether: the types that render uses, the test control planes, kubectl and what checks the goldens have a minor version of
// Kubernetes of the payload, and no newer patch release of it.
func TestMinorVersionsArePinnedTogether(t *testing.T) {
	o := testOptions(t)
	files := []string{filepath.Join(o.Root, "go.mod")}
	for _, pattern := range []string{"tools/*/go.mod", "internal/verify/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(o.Root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	checked := 0
	for _, file := range files {
		m := readMod(t, o, file)
		version := cmp.Or(m.version("k8s.io/kubernetes"), strings.Replace(m.version("k8s.io/kubelet"), "v0.", "v1.", 1)) // the latter is of its staging folder
		if version == "" {
			continue
		}
		checked++
		minor := strings.Join(strings.Split(strings.TrimPrefix(version, "v"), ".")[:2], ".")
		if r, ok := payload.ReleaseOf(minor); !ok || semver.MustParse(version).GreaterThan(semver.MustParse(r.Version)) {
			t.Errorf("%s: Kubernetes is at %s, the payload at %s", file, version, r.Version)
		}
	}
	if checked < 4 {
		t.Errorf("only %d pins were looked at", checked)
	}
}
