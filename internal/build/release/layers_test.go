package release

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestEachExecutableIsALayer, and so is the list. The release after it, with the same executables, has the same layers: a registry and
// a node do not get them again.
func TestEachExecutableIsALayer(t *testing.T) {
	i := example(t)
	first := executablesOf(t, i)
	var have, want []string
	for _, l := range first {
		have = append(have, strings.Join(filesInLayer(t, l), " "))
	}
	slices.Sort(have)
	files, err := os.ReadDir(i.Payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want = append(want, f.Name()) // the example has no bills of materials
	}
	if !slices.Equal(have, want) {
		t.Errorf("the layers have %q, want %q", have, want)
	}
	i.Labels.Created, i.Labels.Revision = i.Labels.Created.Add(24*time.Hour), "another"
	for n, l := range executablesOf(t, i) {
		was, err := first[n].Digest()
		if err != nil {
			t.Fatal(err)
		}
		if now, err := l.Digest(); err != nil || was != now {
			t.Errorf("layer %d: %s, and %s in the next release, %v", n, was, now, err)
		}
	}
}

// executablesOf returns the layers of an image between the first and the last.
func executablesOf(t *testing.T, i Image) []v1.Layer {
	t.Helper()
	dir, _ := write(t, i)
	index, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := For(index, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	all, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	return all[1 : len(all)-1]
}

// filesInLayer returns the names of the files of a layer, without their folders.
func filesInLayer(t *testing.T, l v1.Layer) []string {
	t.Helper()
	r, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			names = append(names, path.Base(h.Name))
		}
	}
}
