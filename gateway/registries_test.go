package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"wmco/bundle"
	"wmco/gateway"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/gateway/signatures"
)

// network is registries without connections, by host.
type network map[string]*store

// RoundTrip implements http.RoundTripper.
func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := n[r.URL.Host]
	if !ok {
		return nil, fmt.Errorf("no such host")
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	if a := r.Header.Get("Authorization"); a != "" {
		s.given = append(s.given, a)
	}
	if s.fails != nil {
		return nil, s.fails
	}
	if r.URL.Scheme != "https" && !s.plain {
		return nil, fmt.Errorf("connection refused")
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	response := w.Result()
	response.Request, response.ContentLength = r, int64(w.Body.Len())
	response.Body = &cutBody{data: w.Body.Bytes(), at: s.cut, stalls: s.stalls, ended: r.Context().Done()}
	if r.Method == http.MethodHead {
		response.ContentLength, _ = strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64) // none is 0
		response.Body = http.NoBody
	}
	return response, nil
}

// cutBody breaks off at a position, or sends nothing more there.
type cutBody struct {
	data   []byte
	at     int
	stalls bool
	ended  <-chan struct{}
}

func (b *cutBody) Read(p []byte) (int, error) {
	switch {
	case b.at == 0 && b.stalls:
		<-b.ended
		return 0, fmt.Errorf("cancelled")
	case b.at == 0:
		return 0, io.ErrUnexpectedEOF
	case len(b.data) == 0:
		return 0, io.EOF
	}
	n := copy(p, b.data)
	if b.at > 0 {
		n = min(n, b.at)
		b.at -= n
	}
	b.data = b.data[n:]
	return n, nil
}

func (b *cutBody) Close() error { return nil }

// store is a registry.
type store struct {
	// content is by path below /v2/.
	content map[string][]byte
	// status answers everything, if it is not zero.
	status int
	// user is demanded with Basic; realm makes it Bearer.
	user, realm string
	redirect    string
	plain       bool
	// cut is after how many bytes of a body it breaks off, or stalls; negative for never.
	cut    int
	stalls bool
	// fails ends every connection.
	fails error
	// asked are the requests, given the Authorization headers.
	asked, given []string
}

func newStore() *store { return &store{content: map[string][]byte{}, cut: -1} }

func (s *store) add(path string, data []byte) { s.content["/v2/"+path] = data }

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		user, _, _ := r.BasicAuth()
		_ = json.NewEncoder(w).Encode(map[string]any{"token": "for-" + user, "expires_in": 60})
		return
	}
	want := "Basic " + auth(s.user).Reveal()
	demand := `Basic realm="r"`
	if s.realm != "" {
		want, demand = "Bearer for-"+s.user, `Bearer realm="`+s.realm+`",service="s",scope="repository:x:pull"`
	}
	if s.user != "" && r.Header.Get("Authorization") != want {
		w.Header().Set("WWW-Authenticate", demand)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	data, ok := s.content[r.URL.Path]
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case s.redirect != "":
		http.Redirect(w, r, s.redirect+r.URL.Path, http.StatusTemporaryRedirect)
	default:
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// auth is the credentials of a user.
func auth(user string) bundle.Secret {
	return bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte(user + ":secret-of-" + user)))
}

// image is one layer with its manifest.
type image struct{ layer, manifest []byte }

func newImage(text string) image {
	layer := []byte(strings.Repeat(text, 9<<10))
	d := digest.FromBytes(layer)
	return image{layer, fmt.Appendf(nil, `{"layers":[{"digest":%q}],"config":{"digest":%q}}`, d, d)}
}

func (i image) digest() string { return digest.FromBytes(i.manifest).String() }

func (i image) layerDigest() string { return digest.FromBytes(i.layer).String() }

// addImage adds an image under a tag and its digest.
func (s *store) addImage(repository string, i image, tags ...string) *store {
	for _, reference := range append(tags, i.digest()) {
		s.add(repository+"/manifests/"+reference, i.manifest)
	}
	s.add(repository+"/blobs/"+i.layerDigest(), i.layer)
	return s
}

// fixture is a gateway with its clock, asked by one client.
type fixture struct {
	*gateway.Handler
	now   time.Time
	token string
	log   bytes.Buffer
	// troubles are the lists of registries without a place, as they were written.
	troubles [][]places.Trouble
	// failing is how writing them fails.
	failing error
	// questions are those about signatures. signed answers them.
	questions []signatures.Question
	signed    func(signatures.Question) (signatures.Answer, error)
	// counts are the last numbers that were written, counting how writing them fails.
	counts   []byte
	counting error
}

func newFixture(t *testing.T, n network, table places.Table) *fixture {
	t.Helper()
	f := &fixture{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	count := byte(0)
	now := func() time.Time { return f.now }
	f.Handler = gateway.New(gateway.Options{
		Address: "127.0.0.1:9999", Now: now, Log: slog.New(slog.NewTextHandler(&f.log, nil)),
		Client:  &registry.Client{Verified: n, Insecure: n, Now: now},
		Trouble: func(list []places.Trouble) error { f.troubles = append(f.troubles, list); return f.failing },
		Random:  func(b []byte) { count++; b[0] = count },
		Counts: func(data []byte) error {
			if f.counting == nil {
				f.counts = data
			}
			return f.counting
		},
		Verify: func(_ context.Context, q signatures.Question) (signatures.Answer, error) {
			f.questions = append(f.questions, q)
			return f.signed(q)
		},
	})
	f.SetTable(table)
	f.login(t, "")
	return f
}

// login exchanges the credentials of a user for a token, as containerd does.
func (f *fixture) login(t *testing.T, user string) {
	t.Helper()
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {"secret-of-" + user}}
	r := httptest.NewRequest(http.MethodPost, "https://127.0.0.1:9999/token?ns=quay.io", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	var answer struct{ Token string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Token == "" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	f.token = answer.Token
}

// ask asks for a path with ns=quay.io.
func (f *fixture) ask(method, path string, header ...string) *httptest.ResponseRecorder {
	return f.askFor(method, path, "quay.io", header...)
}

// askFor asks for a path of a registry.
func (f *fixture) askFor(method, path, registry string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://127.0.0.1:9999/v2/"+path+"?ns="+registry, nil)
	r.Header.Set("Authorization", "Bearer "+f.token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler { //nolint:errorlint // the value that net/http documents
					panic(p)
				}
				w.Code = -1
			}
		}()
		f.ServeHTTP(w, r)
	}()
	return w
}

// mirrored is a table with mirrors of quay.io/team for digests and tags.
func mirrored(blocked bool, digests, tags []string) places.Table {
	r := places.Registry{Scope: "quay.io/team", Blocked: blocked, Objects: []string{"ImageDigestMirrorSet/team"}}
	for _, m := range digests {
		r.Mirrors = append(r.Mirrors, places.Mirror{Location: m, Use: places.Digests})
	}
	for _, m := range tags {
		r.Mirrors = append(r.Mirrors, places.Mirror{Location: m, Use: places.Tags})
	}
	return places.Table{Routed: []string{"quay.io"}, Registries: []places.Registry{r}}
}
