package release

import (
	"archive/tar"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"wmco/payload"
	"wmco/payload/store"
)

// TestEachKubernetesVersionIsALayer with its kubelet and kube-proxy and nothing else. The release after it, with the same executables, has the same
// layers: a registry and a node do not get them again.
func TestEachKubernetesVersionIsALayer(t *testing.T) {
	i := example(t)
	first, names := executablesOf(t, i), map[string][]string{}
	for _, l := range first {
		for _, file := range filesInLayer(t, l) {
			if minor := payload.Find(strings.TrimSuffix(file, ".exe.zst")).Kubernetes; minor != "" {
				names[minor] = filesInLayer(t, l)
			}
		}
	}
	for _, r := range payload.Releases() {
		want := []string{store.FileOf("kube-proxy-" + r.Minor), store.FileOf("kubelet-" + r.Minor)}
		if got := names[r.Minor]; !slices.Equal(got, want) {
			t.Errorf("the layer of Kubernetes %s has %q, want %q", r.Minor, got, want)
		}
	}
	if got, want := len(first), len(payload.Releases())+2; got != want {
		t.Errorf("%d layers with executables, want %d: one for each minor version, one for all nodes, and the list", got, want)
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
