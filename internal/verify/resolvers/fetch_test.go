package resolvers

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"wmco/bundle"
	upstream "wmco/gateway/registry"
	"wmco/payload/fetch"
)

// TestExecutablesAreFetched by wmco from registries that demand nothing, a password, and a token.
func TestExecutablesAreFetched(t *testing.T) {
	const folder = "../../../golden/payload"
	s := newStores(t)
	n := world(t, s)
	image := payloadImage(t, folder)
	for _, x := range []storage{s.source, s.one} {
		if err := Push(t.Context(), Client{Root: t.TempDir()}, x.plain+"/team/wmco:1", image); err != nil {
			t.Fatal(err)
		}
	}
	verified, insecure := upstream.Options{}.Transports()
	verified.DialContext = n.dial
	login := bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
	for _, c := range []struct {
		registry string
		login    bundle.Secret
		fails    bool
	}{
		{"source.test", bundle.Secret{}, false}, {"source.test:8443", bundle.Secret{}, false}, {"locked.test", login, false}, {"tokened.test", login, false},
		{"locked.test", bundle.Secret{}, true}, {"tokened.test", bundle.Secret{}, true}, {"strange.test", bundle.Secret{}, true}, {"empty.test", bundle.Secret{}, true}, {"down.test", bundle.Secret{}, true},
	} {
		name, err := fetch.ParseImage(c.registry + "/team/wmco:1")
		if err != nil {
			t.Fatal(err)
		}
		client := &upstream.Client{Verified: verified, Insecure: insecure, Now: time.Now}
		fetched, err := fetch.Source{Image: name, Auth: c.login, Cache: t.TempDir(), Client: client}.FetchExecutables(t.Context())
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", c.registry, err)
		}
		if err == nil && !bytes.Equal(layerOf(t, fetched), image.Layer) {
			t.Errorf("%s: other executables were fetched", c.registry)
		}
	}
}

// layerOf returns the files of a folder as a layer.
func layerOf(t *testing.T, folder string) []byte {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: fetch.Folder + "/" + f.Name(), Mode: 0o644, Size: int64(len(data))})
		}
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}

// payloadImage is an image of a folder of executables.
func payloadImage(t *testing.T, folder string) Image {
	t.Helper()
	i := Image{Layer: layerOf(t, folder), Config: []byte(`{"os":"linux","architecture":"amd64"}`)}
	var err error
	i.Manifest, err = json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: describe(ocispec.MediaTypeImageConfig, i.Config), Layers: []ocispec.Descriptor{describe(ocispec.MediaTypeImageLayer, i.Layer)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}
