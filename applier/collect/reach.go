package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/preflight"
)

// manifestTypes are the forms of a manifest (github.com/opencontainers/image-spec, media-types.md; Docker's second
// schema).
var manifestTypes = []string{
	"application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
}

// most URLs that are asked at the same time.
const mostAtOnce = 8

// reachAll asks all URLs, and compares the host's clock with that of the first API server whose certificate is right.
func reachAll(ctx context.Context, q preflight.Question, o Options) ([]preflight.Reach, *float64) {
	p := prober{question: q, options: o}
	skews := make([]*float64, len(q.API))
	asks := len(q.API) + len(q.Places)
	if q.Identity.Platform != "" {
		asks++
	}
	all := make([]preflight.Reach, asks)
	slots := make(chan struct{}, mostAtOnce)
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			limited, cancel := context.WithTimeout(ctx, o.Limit)
			defer cancel()
			switch {
			case i < len(q.API):
				all[i], skews[i] = p.askAPI(limited, q.API[i])
			case i < len(q.API)+len(q.Places):
				all[i] = p.askRegistry(limited, q.Places[i-len(q.API)])
			default:
				all[i] = p.askIdentity(limited)
			}
		})
	}
	asked.Wait()
	for _, s := range skews {
		if s != nil {
			return all, s
		}
	}
	return all, nil
}

// prober asks URLs as services of a node do.
type prober struct {
	question preflight.Question
	options  Options
}

// client returns an HTTP client that trusts a pool and goes by the cluster's proxy.
func (p prober) client(pool *x509.CertPool, skipVerify bool) *http.Client {
	proxy := httpproxy.Config{HTTPProxy: p.question.Proxy.HTTP, HTTPSProxy: p.question.Proxy.HTTPS, NoProxy: p.question.Proxy.NoProxy}
	choose := proxy.ProxyFunc()
	return &http.Client{
		Timeout: p.options.Limit,
		Transport: &http.Transport{
			Proxy:                  func(r *http.Request) (*url.URL, error) { return choose(r.URL) },
			DialContext:            (&net.Dialer{Timeout: p.options.Limit, Resolver: p.options.Resolver}).DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: pool, InsecureSkipVerify: skipVerify, Time: p.options.Now, MinVersion: tls.VersionTLS12}, //nolint:gosec // as containerd does for such a registry
			TLSHandshakeTimeout:    p.options.Limit,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		},
	}
}

// byProxy reports whether an URL is asked through the proxy.
func (p prober) byProxy(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	proxy := httpproxy.Config{HTTPProxy: p.question.Proxy.HTTP, HTTPSProxy: p.question.Proxy.HTTPS, NoProxy: p.question.Proxy.NoProxy}
	used, err := proxy.ProxyFunc()(u)
	return err == nil && used != nil
}

// askAPI asks an API server for its version. Who may not read it gets 401 or 403, which an API server alone answers as
// well: its certificate is that of the cluster.
func (p prober) askAPI(ctx context.Context, address string) (preflight.Reach, *float64) {
	r := preflight.Reach{Kind: preflight.ReachAPI, URL: preflight.Shown(address), ByProxy: p.byProxy(address)}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(p.question.CA))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/version", nil)
	if err != nil {
		r.Problem, r.Text = preflight.ProblemAnswer, "not an URL"
		return r, nil
	}
	before := p.options.Now()
	response, err := p.client(pool, false).Do(request)
	if err != nil {
		p.fail(&r, err)
		return r, nil
	}
	after := p.options.Now()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden:
		return r, skewOf(response.Header.Get("Date"), before, after)
	}
	r.Problem, r.Text = preflight.ProblemAnswer, response.Status
	return r, nil
}

// skewOf returns how much the host's clock is ahead of that of a server, in seconds. Date has whole seconds, cut off
// (RFC 9110, 6.6.1); half of one is added.
func skewOf(date string, before, after time.Time) *float64 {
	server, err := http.ParseTime(date)
	if err != nil {
		return nil
	}
	middle := before.Add(after.Sub(before) / 2)
	skew := middle.Sub(server.Add(time.Second / 2)).Seconds()
	return &skew
}

// askRegistry asks for the manifest of the image, with HEAD: nothing is pulled.
func (p prober) askRegistry(ctx context.Context, place preflight.Place) preflight.Reach {
	r := preflight.Reach{Kind: preflight.ReachRegistry, URL: preflight.Shown(place.Manifest), ByProxy: p.byProxy(place.Manifest)}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM([]byte(p.question.TrustedCAs))
	at, path, ok := parsePlace(place.Manifest)
	if !ok {
		r.Problem, r.Text = preflight.ProblemAnswer, "not an URL"
		return r
	}
	at.Insecure = place.SkipVerify
	asker := registry.Client{Verified: p.client(pool, false).Transport, Insecure: p.client(pool, true).Transport, Now: p.options.Now}
	response, err := asker.Do(ctx, registry.Request{
		Method: http.MethodHead, Place: at, Path: path, Header: http.Header{"Accept": manifestTypes},
		Auth: bundle.NewSecret(strings.TrimPrefix(place.Authorization, "Basic ")),
	})
	if err != nil {
		p.fail(&r, err)
		return r
	}
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		r.Problem, r.Text = preflight.ProblemDenied, response.Status
	case http.StatusNotFound:
		r.Problem, r.Text = preflight.ProblemMissing, response.Status
	case http.StatusProxyAuthRequired:
		r.Problem, r.Text = preflight.ProblemProxy, response.Status
	default:
		r.Problem, r.Text = preflight.ProblemAnswer, response.Status
	}
	return r
}

// parsePlace returns the place of the URL of a manifest, and the rest of the path.
func parsePlace(manifest string) (at places.Place, path string, ok bool) {
	u, err := url.Parse(manifest)
	if err != nil {
		return places.Place{}, "", false
	}
	repository, reference, ok := strings.Cut(strings.TrimPrefix(u.Path, "/v2/"), "/manifests/")
	return places.Place{Registry: u.Host, Repository: repository}, "manifests/" + reference, ok
}

// fail returns why an URL was not reached. The error's own text may have the URL of the proxy with its password, so it is
// not used.
func (p prober) fail(r *preflight.Reach, err error) {
	r.Problem, r.Text = classify(err, r.ByProxy)
}

func classify(err error, byProxy bool) (preflight.Problem, string) {
	var name *net.DNSError
	var operation *net.OpError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var late net.Error
	var refused *registry.TokenError
	switch {
	case errors.As(err, &operation) && operation.Op == "proxyconnect":
		return preflight.ProblemProxy, "the proxy does not answer"
	case errors.As(err, &name):
		return preflight.ProblemName, fmt.Sprintf("the name %s has no address", name.Name)
	case errors.As(err, &unknown):
		return preflight.ProblemCertificate, "its certificate is of an unknown CA"
	case errors.As(err, &host):
		return preflight.ProblemCertificate, "its certificate is of another name"
	case errors.As(err, &invalid):
		return preflight.ProblemCertificate, invalid.Error()
	case errors.As(err, &verification):
		return preflight.ProblemCertificate, "its certificate is not trusted"
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		return preflight.ProblemDenied, fmt.Sprintf("it refuses the credentials (%d)", refused.Status)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return preflight.ProblemConnect, "it does not answer in time"
	case errors.As(err, &operation):
		return preflight.ProblemConnect, operation.Err.Error()
	case byProxy:
		return preflight.ProblemProxy, "the proxy refuses the connection"
	}
	return preflight.ProblemAnswer, "it answers with something else"
}
