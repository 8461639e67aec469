package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"wmco/bundle"
	"wmco/gateway/places"
)

// Client asks registries. Tokens are kept until they end.
type Client struct {
	// Verified and Insecure send requests; the latter accepts any certificate.
	Verified, Insecure http.RoundTripper
	Now                func() time.Time

	tokens tokens
	plain  sync.Map // registries without TLS, by name
}

// Request is for one thing below the repository of a place, such as manifests/latest or blobs/sha256:....
type Request struct {
	Method string
	Place  places.Place
	Path   string
	// Auth are the credentials, base64 of user:password; zero for none.
	Auth bundle.Secret
	// Header is Accept and Range at most.
	Header http.Header
}

// hub is Docker Hub, whose API has another name than its images.
const hub, hubAPI = "docker.io", "registry-1.docker.io"

// Do sends a request, and answers a challenge once. Redirects are followed. The caller closes the body, of which each part has to come within readLimit.
// Errors have no credentials.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	key := tokenKey{r.Place.Registry, r.Place.Repository, r.Auth}
	authorization, known := c.tokens.findToken(key, c.Now())
	response, err := c.sendOnce(ctx, r, authorization)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	demanded := chooseChallenge(response.Header.Values("WWW-Authenticate"))
	switch {
	case demanded.scheme == "bearer":
		t, err := c.fetchToken(ctx, r, demanded)
		if err != nil {
			discardBody(response)
			return nil, err
		}
		c.tokens.keepToken(key, t)
		authorization = t.header
	case demanded.scheme == "basic" && !r.Auth.IsZero() && !known:
		authorization = bundle.NewSecret("Basic " + r.Auth.Reveal())
		c.tokens.keepToken(key, token{header: authorization, end: c.Now().Add(basicLife)})
	default:
		return response, nil
	}
	discardBody(response)
	return c.sendOnce(ctx, r, authorization)
}

// discardBody reads the rest of a short answer, so that its connection can be used again.
func discardBody(r *http.Response) {
	_, _ = io.CopyN(io.Discard, r.Body, 4<<10)
	_ = r.Body.Close()
}

// sendOnce sends a request with an Authorization header. An insecure registry is asked with TLS first, and without it if it has none.
func (c *Client) sendOnce(ctx context.Context, r Request, authorization bundle.Secret) (*http.Response, error) {
	schemes := []string{"https"}
	if r.Place.Insecure {
		schemes = []string{"https", "http"}
		if _, is := c.plain.Load(r.Place.Registry); is {
			schemes = []string{"http", "https"}
		}
	}
	var failed error
	for _, s := range schemes {
		response, err := c.sendBy(ctx, s, r, authorization)
		if err == nil {
			if s == "http" {
				c.plain.Store(r.Place.Registry, true)
			}
			return response, nil
		}
		failed = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

func (c *Client) sendBy(ctx context.Context, scheme string, r Request, authorization bundle.Secret) (*http.Response, error) {
	host := r.Place.Registry
	if host == hub {
		host = hubAPI
	}
	u := url.URL{Scheme: scheme, Host: host, Path: "/v2/" + r.Place.Repository + "/" + r.Path}
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), nil)
	if err != nil {
		return nil, errors.New("its name is not that of a registry")
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	if !authorization.IsZero() {
		request.Header.Set("Authorization", authorization.Reveal())
	}
	return c.sendRequest(r.Place, request)
}

const maxRedirects = 10

// sendRequest sends a request by the transport of a place. A registry or token server that is silent for readLimit ends the body.
func (c *Client) sendRequest(p places.Place, request *http.Request) (*http.Response, error) {
	first, left := request.URL, false
	client := http.Client{Transport: c.Verified, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= maxRedirects:
			return errors.New("too many redirects")
		case next.URL.Scheme != "https" && first.Scheme == "https" && !p.Insecure:
			return errors.New("a redirect to plain HTTP")
		}
		// net/http keeps the header for another port and for a subdomain, and restores it with each redirect.
		if left = left || next.URL.Host != first.Host || next.URL.Scheme != first.Scheme; left {
			next.Header.Del("Authorization")
		}
		return nil
	}}
	if p.Insecure {
		client.Transport = c.Insecure
	}
	ctx, cancel := context.WithCancel(request.Context())
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, withoutURL(err)
	}
	response.Body = newLimitedBody(response.Body, cancel)
	return response, nil
}

// withoutURL takes the URL off an error: that of a redirect can hold a signature with which anyone can read a layer.
func withoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return withoutURL(e.Err)
	}
	return err
}

// basicLife is how long a registry is sent a user and password unasked, and tokenLife how long a token is used whose server does not say it
// (distribution.github.io/distribution/spec/auth/token: 60 seconds).
const (
	basicLife = time.Hour
	tokenLife = time.Minute
	// maxTokenLife bounds what a server says.
	maxTokenLife = 24 * time.Hour
	// margin is taken off, for the time that a request takes.
	margin = 10 * time.Second
	// maxToken is the size of the largest answer of a token server, in bytes.
	maxToken = 1 << 20
)

// fetchToken asks the server that the challenge names. Without credentials it asks for an anonymous token.
func (c *Client) fetchToken(ctx context.Context, r Request, demanded challenge) (token, error) {
	realm, err := url.Parse(demanded.parameters["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && (realm.Scheme != "http" || !r.Place.Insecure) {
		return token{}, errors.New("it names no token server that can be used")
	}
	query := realm.Query()
	if s := demanded.parameters["service"]; s != "" {
		query.Set("service", s)
	}
	scope := demanded.parameters["scope"]
	if scope == "" {
		scope = "repository:" + r.Place.Repository + ":pull"
	}
	query.Set("scope", scope)
	realm.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return token{}, errors.New("it names no token server that can be used")
	}
	if !r.Auth.IsZero() {
		request.Header.Set("Authorization", "Basic "+r.Auth.Reveal())
	}
	at := r.Place
	at.Insecure = at.Insecure && realm.Host == at.Registry // any certificate is accepted of the registry itself alone
	response, err := c.sendRequest(at, request)
	if err != nil {
		return token{}, fmt.Errorf("its token server %s: %w", realm.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return token{}, &TokenError{Server: realm.Host, Status: response.StatusCode}
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"` //nolint:gosec // the name of a field
		ExpiresIn   int    `json:"expires_in"`
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxToken+1))
	if err != nil || len(data) > maxToken || json.Unmarshal(data, &answer) != nil || answer.Token+answer.AccessToken == "" {
		return token{}, fmt.Errorf("its token server %s gave no token", realm.Host)
	}
	if answer.Token == "" {
		answer.Token = answer.AccessToken
	}
	life := tokenLife
	if answer.ExpiresIn > 0 {
		life = min(time.Duration(answer.ExpiresIn)*time.Second, maxTokenLife)
	}
	return token{header: bundle.NewSecret("Bearer " + answer.Token), end: c.Now().Add(life - margin)}, nil
}

// TokenError is the answer of a token server that gave no token.
type TokenError struct {
	Server string
	Status int
}

func (e *TokenError) Error() string {
	return "its token server " + e.Server + " answered " + strings.TrimSpace(strconv.Itoa(e.Status)+" "+http.StatusText(e.Status))
}

// token is an Authorization header with its end.
type token struct {
	header bundle.Secret
	end    time.Time
}

// tokenKey is what a token is for.
type tokenKey struct {
	registry, repository string
	auth                 bundle.Secret
}

// maxTokens is more than a node pulls from at a time.
const maxTokens = 256

// tokens are kept by key. Its zero value is empty.
type tokens struct {
	once sync.Once
	list *lru.Cache
}

func (t *tokens) lazyList() *lru.Cache {
	t.once.Do(func() { t.list = lru.New(maxTokens) })
	return t.list
}

func (t *tokens) findToken(key tokenKey, now time.Time) (bundle.Secret, bool) {
	v, ok := t.lazyList().Get(key)
	if !ok || !now.Before(v.(token).end) {
		return bundle.Secret{}, false
	}
	return v.(token).header, true
}

func (t *tokens) keepToken(key tokenKey, v token) { t.lazyList().Add(key, v) }
