// Package registrytest has images of the operator, with a layer for each executable as make release builds them: in a
// registry in this process, or pushed to another one.
package registrytest

import (
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

// Server is a registry in this process with one image.
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
func New(t testing.TB, folder string) *Server {
	t.Helper()
	s, err := Listen("127.0.0.1:0", folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Listen returns a registry at an address with the executables of a folder.
func Listen(address, folder string) (*Server, error) {
	s := &Server{content: map[string][]byte{}, sent: map[string]int{}}
	d, err := eachObject(folder, func(kind string, data []byte, d descriptor) error {
		s.content[kind+"/"+d.Digest.String()] = data
		return nil
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // loopback only
	if err != nil {
		return nil, err
	}
	s.Server = httptest.NewUnstartedServer(s)
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
func NewFetcher() *fetch.Single { return NewFetcherWith(registry.Options{}) }

// NewFetcherWith returns what a node agent fetches with that reaches registries so.
func NewFetcherWith(o registry.Options) *fetch.Single {
	verified, insecure := o.Transports()
	return &fetch.Single{Client: &registry.Client{Verified: verified, Insecure: insecure, Now: time.Now}}
}
