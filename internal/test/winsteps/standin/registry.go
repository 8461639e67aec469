package standin

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// Registry is a registry for pulls, which hands every request on to another one. Redirects go to the client, which
// follows them.
type Registry struct {
	// Upstream is the URL of a registry that needs no credentials.
	Upstream string

	mu    sync.Mutex
	asked []string
}

// Asked returns the paths of requests for manifests.
func (x *Registry) Asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.asked...)
}

// ServeHTTP implements http.Handler.
func (x *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "/manifests/") {
		x.mu.Lock()
		x.asked = append(x.asked, r.URL.Path)
		x.mu.Unlock()
	}
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
