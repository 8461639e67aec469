// Package registrytest is a registry in this process that has one image of the operator, with a layer for each executable as make release builds it.
package registrytest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"time"
	"wmco/gateway/registry"
	"wmco/payload/fetch"
	"wmco/payload/store"
)

// Server is the registry.
type Server struct {
	*httptest.Server
	// Image is the name of the image by digest.
	Image string

	content map[string][]byte
	mu      sync.Mutex
	sent    map[string]int
}

const repository = "team/wmco"

// New returns a registry with the executables of a folder.
func New(t *testing.T, folder string) *Server {
	t.Helper()
	s := &Server{content: map[string][]byte{}, sent: map[string]int{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	opened, err := store.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	var layers []map[string]any
	for _, e := range opened.Entries() {
		data, err := os.ReadFile(filepath.Join(folder, e.File()))
		if err != nil {
			t.Fatal(err)
		}
		l := s.addObject("blobs", layerOf(t, fetch.Folder+"/"+e.File(), data))
		l["annotations"] = map[string]string{fetch.LayerAnnotation: e.File()}
		layers = append(layers, l)
	}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "config": s.addObject("blobs", []byte("{}")), "layers": layers})
	if err != nil {
		t.Fatal(err)
	}
	s.Image = fmt.Sprintf("%s/%s@%s", s.HostPort(), repository, s.addObject("manifests", manifest)["digest"])
	return s
}

// HostPort is the registry's name.
func (s *Server) HostPort() string { return strings.TrimPrefix(s.URL, "https://") }

// layerOf returns a layer with one file.
func layerOf(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = compressed.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// addObject adds an object, and returns its descriptor.
func (s *Server) addObject(kind string, data []byte) map[string]any {
	d := digest.FromBytes(data).String()
	s.content[kind+"/"+d] = data
	return map[string]any{"mediaType": "any", "digest": d, "size": len(data)}
}

// CountLayers returns how many layers were sent.
func (s *Server) CountLayers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent["blobs"]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/v2/"+repository+"/")
	s.mu.Lock()
	data, ok := s.content[name]
	if ok {
		s.sent[path.Dir(name)]++
	}
	s.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(data)
}

// NewFetcher returns what a node agent fetches with. It accepts any certificate, as of a registry in insecureRegistries.
func NewFetcher() *fetch.Single {
	verified, insecure := registry.Options{}.Transports()
	return &fetch.Single{Client: &registry.Client{Verified: verified, Insecure: insecure, Now: time.Now}}
}
