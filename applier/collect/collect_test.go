package collect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/preflight"
)

const password = "s3cret-of-the-mirror"

// pemOf returns the certificate of a server, which is its own CA.
func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func options() Options { return Options{Now: time.Now, Limit: 2 * time.Second} }

// ask returns how the URLs answer.
func ask(t *testing.T, q preflight.Question) ([]preflight.Reach, *float64) {
	t.Helper()
	reached, skew := reachAll(t.Context(), q, options())
	text, err := json.Marshal(reached)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), password) {
		t.Errorf("the answer has the password: %s", text)
	}
	return reached, skew
}

func TestAPIServers(t *testing.T) {
	t.Parallel()
	status := http.StatusForbidden
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	reached, skew := ask(t, preflight.Question{API: []string{server.URL}, CA: pemOf(server)})
	if reached[0].Problem != preflight.ProblemNone || skew == nil || *skew < 3590 || *skew > 3610 {
		t.Errorf("got %+v, skew %v", reached, skew)
	}
	if reached, skew = ask(t, preflight.Question{API: []string{server.URL}}); reached[0].Problem != preflight.ProblemCertificate || skew != nil {
		t.Errorf("without the CA: %+v, skew %v", reached, skew)
	}
	status = http.StatusTeapot
	if reached, _ = ask(t, preflight.Question{API: []string{server.URL}, CA: pemOf(server)}); reached[0].Problem != preflight.ProblemAnswer {
		t.Errorf("another answer: %+v", reached)
	}
	server.Close()
	if reached, _ = ask(t, preflight.Question{API: []string{server.URL}, CA: pemOf(server)}); reached[0].Problem != preflight.ProblemConnect {
		t.Errorf("a closed port: %+v", reached)
	}
}

// lockedRegistry is a registry with one image, behind a password or a token.
func lockedRegistry(t *testing.T, tokens bool) *httptest.Server {
	t.Helper()
	var server *httptest.Server
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))
	server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch given := r.Header.Get("Authorization"); {
		case r.URL.Path == "/token" && given == basic:
			fmt.Fprint(w, `{"token": "t0ken"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case tokens && given != "Bearer t0ken":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="registry",scope="repository:pause:pull"`, server.URL))
			w.WriteHeader(http.StatusUnauthorized)
		case !tokens && given != basic:
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method != http.MethodHead:
			t.Errorf("%s %s: an image must not be pulled", r.Method, r.URL)
		case r.URL.Path != "/v2/pause/manifests/3.9":
			w.WriteHeader(http.StatusNotFound)
		case !strings.Contains(strings.Join(r.Header["Accept"], ","), "manifest"):
			w.WriteHeader(http.StatusNotAcceptable)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestRegistries(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]bool{"with a password": false, "with a token server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := lockedRegistry(t, tokens)
			good := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))
			bad := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:other"))
			q := preflight.Question{TrustedCAs: pemOf(server), Places: []preflight.Place{
				{Manifest: server.URL + "/v2/pause/manifests/3.9", Authorization: good},
				{Manifest: server.URL + "/v2/none/manifests/3.9", Authorization: good},
				{Manifest: server.URL + "/v2/pause/manifests/3.9", Authorization: bad},
				{Manifest: server.URL + "/v2/pause/manifests/3.9"},
			}}
			reached, _ := ask(t, q)
			var got []preflight.Problem
			for _, r := range reached {
				got = append(got, r.Problem)
			}
			want := []preflight.Problem{preflight.ProblemNone, preflight.ProblemMissing, preflight.ProblemDenied, preflight.ProblemDenied}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%+v", diff, reached)
			}
			q.TrustedCAs = ""
			q.Places = q.Places[:1]
			if reached, _ = ask(t, q); reached[0].Problem != preflight.ProblemCertificate {
				t.Errorf("without the CA: %+v", reached)
			}
			q.Places[0].SkipVerify = true
			if reached, _ = ask(t, q); reached[0].Problem != preflight.ProblemNone {
				t.Errorf("without verification: %+v", reached)
			}
		})
	}
}

func TestAProxyThatRefuses(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(proxy.Close)
	q := preflight.Question{
		Places: []preflight.Place{{Manifest: "https://registry.example.com/v2/pause/manifests/3.9"}},
		Proxy:  preflight.Proxy{HTTPS: strings.Replace(proxy.URL, "http://", "http://user:"+password+"@", 1)},
	}
	reached, _ := ask(t, q)
	if reached[0].Problem != preflight.ProblemProxy || !reached[0].ByProxy {
		t.Errorf("got %+v", reached)
	}
	proxy.Close()
	if reached, _ = ask(t, q); reached[0].Problem != preflight.ProblemProxy {
		t.Errorf("a proxy that does not answer: %+v", reached)
	}
	q.Proxy.NoProxy = "registry.example.com"
	if reached, _ = ask(t, q); reached[0].ByProxy {
		t.Errorf("noProxy is not honoured: %+v", reached)
	}
}

// TestASilentServerCostsABoundedTime connects to one that never answers.
func TestASilentServerCostsABoundedTime(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	q := preflight.Question{}
	for range 20 {
		q.API = append(q.API, "https://"+listener.Addr().String())
	}
	begin := time.Now()
	reached, _ := ask(t, q)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, r := range reached {
		if r.Problem != preflight.ProblemConnect {
			t.Errorf("got %+v", r)
		}
	}
}

// windows is a simulated host with one fact of its Windows.
type windows struct{}

func (windows) Machine(_ context.Context, m *preflight.Machine) []error {
	m.Installation = "Server Core"
	return []error{errors.New("ports: access denied")}
}

// unreadable is a host whose facts cannot be read.
type unreadable struct{ applier.Host }

func (unreadable) Facts(context.Context) (bundle.Facts, error) {
	return bundle.Facts{}, errors.New("facts denied")
}

func TestAnswerOfAHost(t *testing.T) {
	t.Parallel()
	host := hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch()))
	secret := plan.ServiceConfig{Name: "containerd", Start: bundle.StartAuto, CommandLine: `"C:\Program Files\containerd\containerd.exe" --token ` + password}
	if err := host.PutService(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	a := Answer(t.Context(), preflight.Question{}, host, windows{}, options())
	if diff := cmp.Diff([]preflight.Service{{Name: "containerd", Program: `C:\Program Files\containerd\containerd.exe`}}, a.Machine.Services); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if a.Facts.HostName != hostsim.Facts().HostName || a.Machine.Installation != "Server Core" || a.Machine.FreeBytes <= 0 || len(a.Unread) != 1 {
		t.Errorf("got %+v", a)
	}
	a = Answer(t.Context(), preflight.Question{}, unreadable{host}, windows{}, options())
	if len(a.Unread) != 2 {
		t.Errorf("unread: %q", a.Unread)
	}
}

func TestProgramsHaveNoArguments(t *testing.T) {
	for line, want := range map[string]string{
		`C:\k\containerd.exe --token x`: `C:\k\containerd.exe`,
		`"C:\a b\c.exe" --token x`:      `C:\a b\c.exe`,
		`C:\a b\c.EXE --token x.exe`:    `C:\a b\c.EXE`,
		`svchost -k secret`:             `svchost`,
		`"unfinished`:                   `unfinished`,
		"":                              "",
	} {
		if got := ProgramOf(line); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// TestIdentities: what the instance metadata of each cloud answers about the identity of a machine. No answer of it is in what is reported.
func TestIdentities(t *testing.T) {
	t.Parallel()
	const missing = preflight.ProblemMissing
	for name, c := range map[string]struct {
		platform bundle.Platform
		status   int
		body     string
		want     preflight.Problem
	}{
		"a role":                                  {bundle.PlatformAWS, http.StatusOK, "worker\n", ""},
		"no role":                                 {bundle.PlatformAWS, http.StatusNotFound, "", missing},
		"an empty list of roles":                  {bundle.PlatformAWS, http.StatusOK, "", missing},
		"a managed identity":                      {bundle.PlatformAzure, http.StatusOK, `{"access_token": "` + password + `"}`, ""},
		"no managed identity":                     {bundle.PlatformAzure, http.StatusBadRequest, `{"error": "invalid_request", "error_description": "Identity not found"}`, missing},
		"metadata of Azure that fail":             {bundle.PlatformAzure, http.StatusInternalServerError, password, preflight.ProblemAnswer},
		"an account that may read storage":        {bundle.PlatformGCP, http.StatusOK, "https://www.googleapis.com/auth/logging.write\nhttps://www.googleapis.com/auth/devstorage.read_only\n", ""},
		"an account for all":                      {bundle.PlatformGCP, http.StatusOK, "https://www.googleapis.com/auth/cloud-platform", ""},
		"an account that may write messages only": {bundle.PlatformGCP, http.StatusOK, "https://www.googleapis.com/auth/logging.write", preflight.ProblemDenied},
		"no account":                              {bundle.PlatformGCP, http.StatusNotFound, "", missing},
	} {
		i := preflight.IdentityOf(c.platform, "")
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			own := map[bundle.Platform]string{bundle.PlatformAWS: "X-Aws-Ec2-Metadata-Token", bundle.PlatformAzure: "Metadata", bundle.PlatformGCP: "Metadata-Flavor"}[c.platform]
			switch {
			case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
				fmt.Fprint(w, "session")
			case r.Method != http.MethodGet || !strings.HasSuffix(i.URL, r.URL.RequestURI()) || r.Header.Get(own) == "":
				t.Errorf("%s: asked with %s %s %v", name, r.Method, r.URL, r.Header)
			default:
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			}
		}))
		t.Cleanup(server.Close)
		u, err := url.Parse(i.URL)
		if err != nil {
			t.Fatal(err)
		}
		i.URL = server.URL + u.RequestURI()
		reached, _ := ask(t, preflight.Question{Identity: i})
		if len(reached) != 1 || reached[0].Kind != preflight.ReachIdentity || reached[0].Problem != c.want || reached[0].URL != preflight.Shown(i.URL) {
			t.Errorf("%s: %+v, want %q", name, reached, c.want)
		}
		server.Close()
		if reached, _ = ask(t, preflight.Question{Identity: i}); reached[0].Problem != preflight.ProblemConnect {
			t.Errorf("%s: without the metadata: %+v", name, reached)
		}
	}
}
