package release

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/payload/fetch"
	"wmco/payload/sources"
	"wmco/payload/store"
)

// TestTheExecutablesAreFetchedFromTheImage: what the command line fetches from the image in a registry is the payload that it was made from, also after a tool
// has rewritten the image in Docker's format, which has no annotations.
func TestTheExecutablesAreFetchedFromTheImage(t *testing.T) {
	i := example(t)
	dir, _ := write(t, i)
	index, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := readFolder(t, i.Payload)
	for tag, index := range map[string]v1.ImageIndex{"as-released": index, "for-docker": inDockersFormat(t, index)} {
		server := httptest.NewTLSServer(serveIndex(t, index))
		t.Cleanup(server.Close)
		name := strings.TrimPrefix(server.URL, "https://") + "/team/wmco:1"
		image, err := fetch.ParseImage(name)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := fetch.Source{Image: image, Cache: t.TempDir(), Client: &registry.Client{Verified: server.Client().Transport, Now: time.Now}}.FetchExecutables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(want, readFolder(t, folder)) {
			t.Errorf("%s: the folder is another one than the image was made from", tag)
		}
	}
}

// TestANodeFetchesEachExecutableFromTheImage: its layer is found by what the image has been made with, and is little more than the executable.
func TestANodeFetchesEachExecutableFromTheImage(t *testing.T) {
	i := example(t)
	dir, _ := write(t, i)
	index, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(serveIndex(t, index))
	t.Cleanup(server.Close)
	image, err := For(index, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	id, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(i.Payload)
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "https://")
	list := sources.List{
		Payload: opened.Set().Digest(), Image: places.Image{Registry: "quay.example.com", Repository: "team/wmco", Reference: id.String()},
		Places: []places.Place{{Registry: host, Repository: "team/wmco"}},
	}
	single := fetch.Single{Client: &registry.Client{Verified: server.Client().Transport, Now: time.Now}}
	for _, e := range opened.Entries() {
		data, err := single.FetchStored(t.Context(), list, sources.Executable{Name: e.Name, Raw: e.Raw, Stored: e.Stored}, func(int64) {})
		if err != nil || bundle.Of(data) != e.Stored.Digest {
			t.Errorf("%s: %d bytes, %v", e.Name, len(data), err)
		}
	}
}

// serveIndex answers as a registry whose only tag is the index.
func serveIndex(t *testing.T, index v1.ImageIndex) http.Handler {
	t.Helper()
	dir := t.TempDir()
	if _, err := layout.Write(dir, index); err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Join("blobs", strings.Replace(path.Base(r.URL.Path), ":", "/", 1))
		if path.Base(r.URL.Path) == "1" {
			name = "index.json"
		}
		http.ServeFileFS(w, r, os.DirFS(dir), name)
	})
}

// inDockersFormat has the image for linux/amd64 in Docker's format.
func inDockersFormat(t *testing.T, index v1.ImageIndex) v1.ImageIndex {
	t.Helper()
	image, err := For(index, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]mutate.Addendum, len(layers))
	for n, l := range layers {
		all[n] = mutate.Addendum{Layer: l, MediaType: types.DockerLayer}
	}
	again, err := mutate.Append(mutate.MediaType(empty.Image, types.DockerManifestSchema2), all...)
	if err != nil {
		t.Fatal(err)
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.DockerManifestList), mutate.IndexAddendum{
		Add: again, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
}

func readFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}
