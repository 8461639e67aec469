package applier_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// refuses checks that the engine refuses a stream with a reason and leaves the machine as it is.
func refuses(t *testing.T, m *machine, stream *archive.Reader, why string) {
	t.Helper()
	before := m.Snapshot()
	_, err := m.engine().Apply(t.Context(), stream.Manifest, stream, applier.Options{})
	var refused *applier.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), why) {
		t.Errorf("error %v, want a refusal with %q", err, why)
	}
	if diff := differs(before, m.Snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestABundleThatNamesAPlaceElsewhereIsRefused: files, folders and programs of services are in the managed folders.
func TestABundleThatNamesAPlaceElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*node){
		"a file":                            func(n *node) { n.Files[`C:\Windows\evil.conf`] = "evil" },
		"a file whose folder begins as one": func(n *node) { n.Files[`C:\kk\evil.conf`] = "evil" },
		"a program":                         func(n *node) { n.Programs[`C:\Windows\evil.exe`] = "evil" },
		"a folder":                          func(n *node) { n.Exclusive = append(n.Exclusive, `C:\Windows\Temp`) },
		"the program of a service": func(n *node) {
			n.Services[0].Argv = append([]string{`C:\Windows\evil.exe`}, n.Services[0].Argv[1:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			next := newNode().Changed(change)
			refuses(t, m, reader(t, next, next.Needs(t)), "is in none of")
		})
	}
}

// TestAPreviewIsRefused: it has masks in place of secrets, which would be written.
func TestAPreviewIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	b := newNode().Bundle(t)
	masked := 0
	for i := range b.Cluster.Files {
		if b.Cluster.Files[i].Digest.Keyed() {
			b.Cluster.Files[i].Digest = bundle.Masked
			masked++
		}
	}
	if masked == 0 {
		t.Fatal("the bundle has no secret")
	}
	manifest, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	text, err := manifest.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := archive.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, m, stream, "preview")
}
