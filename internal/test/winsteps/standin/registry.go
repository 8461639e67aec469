package standin

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// Registry is a registry for pulls. With Upstream it hands every request on to that registry, without it has one manifest, under every name.
type Registry struct {
	// Upstream is the URL of a registry that needs no credentials.
	Upstream string

	mu    sync.Mutex
	asked []string
}

// Manifest is what a Registry without Upstream has: an image without layers.
const Manifest = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}`

// Asked returns the paths of requests for manifests.
func (x *Registry) Asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.asked...)
}

// ServeHTTP implements http.Handler.
func (x *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	manifest := strings.Contains(r.URL.Path, "/manifests/")
	if manifest {
		x.mu.Lock()
		x.asked = append(x.asked, r.URL.Path)
		x.mu.Unlock()
	}
	switch {
	case x.Upstream != "":
		x.forward(w, r)
	case manifest:
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(Manifest))))
		_, _ = w.Write([]byte(Manifest)) // whoever asked may have gone
	case r.URL.Path == "/v2/":
		w.WriteHeader(http.StatusOK)
	default:
		http.NotFound(w, r)
	}
}

// forward hands a request on. Redirects go to the client, which follows them.
func (x *Registry) forward(w http.ResponseWriter, r *http.Request) {
	upstream, err := url.Parse(x.Upstream)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(upstream)
		p.Out.Host = upstream.Host
	}}).ServeHTTP(w, r)
}
