// Package registrytest has images of the operator, with a layer for each executable as make release builds them: in a
// registry in this process, or pushed to another one.
package registrytest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"wmco/gateway/registry"
	"wmco/payload/fetch"
)

// Images are images of the operator. It answers as a registry does in which each repository has all of them.
type Images struct {
	content map[string][]byte
	mu      sync.Mutex
	sent    map[string]int
}

// AddImage adds an image with the executables of a folder, and returns its digest.
func (i *Images) AddImage(folder string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.content == nil {
		i.content, i.sent = map[string][]byte{}, map[string]int{}
	}
	d, err := eachObject(folder, func(kind string, data []byte, d descriptor) error {
		i.content[kind+"/"+d.Digest.String()] = data
		return nil
	})
	return d.String(), err
}

// CountLayers returns how many layers were sent.
func (i *Images) CountLayers() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sent["blobs"]
}

// ServeHTTP implements http.Handler.
func (i *Images) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	folder, name := path.Split(r.URL.Path)
	kind := path.Base(folder)
	i.mu.Lock()
	data, ok := i.content[kind+"/"+name]
	if ok {
		i.sent[kind]++
	}
	i.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// Server is a registry in this process with one image.
type Server struct {
	*httptest.Server
	Images
	// Image is the name of the image by digest.
	Image string
}

const repository = "team/wmco"

// New returns a registry with the executables of a folder.
func New(t testing.TB, folder string) *Server {
	t.Helper()
	s, err := ServeImage("127.0.0.1:0", folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ServeImage returns a registry at an address with the executables of a folder.
func ServeImage(address, folder string) (*Server, error) {
	s := &Server{}
	d, err := s.AddImage(folder)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // loopback only
	if err != nil {
		return nil, err
	}
	s.Server = httptest.NewUnstartedServer(&s.Images)
	if err := s.Listener.Close(); err != nil {
		return nil, err
	}
	s.Listener = listener
	s.StartTLS()
	s.Image = fmt.Sprintf("%s/%s@%s", s.HostPort(), repository, d)
	return s, nil
}

// HostPort is the registry's name.
func (s *Server) HostPort() string { return strings.TrimPrefix(s.URL, "https://") }

// NewFetcher returns what a node agent fetches with. It accepts any certificate, as of a registry in insecureRegistries.
func NewFetcher() *fetch.Single { return NewFetcherWith(registry.Options{}) }

// NewFetcherWith returns what a node agent fetches with that reaches registries so.
func NewFetcherWith(o registry.Options) *fetch.Single {
	verified, insecure := o.Transports()
	return &fetch.Single{Client: &registry.Client{Verified: verified, Insecure: insecure, Now: time.Now}}
}
