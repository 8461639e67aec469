package resolvers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/credentialprovider/secrets"

	"wmco/render"
)

// kubeletConfig is the file of the pull secret on nodes, in the root directory of the kubelet.
const kubeletConfig = `C:\var\lib\kubelet\config.json`

// bundleOf returns the files of a node and the arguments of its kubelet.
func bundleOf(t *testing.T, c render.Cluster) (files map[string]string, kubelet []string) {
	t.Helper()
	fleet, findings, err := render.NewFleet(c, render.Options{})
	if err != nil || fleet == nil {
		t.Fatalf("%v %+v", err, findings)
	}
	n := someNode()
	n.Facts.MetadataName, n.Facts.ProviderID = "win-a", "" // clouds name their nodes
	b, more, err := fleet.Node(n)
	if err != nil || more.Refused() {
		t.Fatalf("%v %+v", err, more)
	}
	files = map[string]string{}
	for _, f := range b.Files() {
		files[f.Path] = string(f.Content.Data)
	}
	for _, s := range b.Node.Services {
		if s.Name == "kubelet" {
			kubelet = s.Argv
		}
	}
	return files, kubelet
}

// hostsFiles returns those files that are hosts files, by their directories.
func hostsFiles(files map[string]string) Files {
	list := Files{}
	for path, text := range files {
		if rest, ok := strings.CutPrefix(path, registries); ok {
			list[strings.TrimSuffix(rest, `\hosts.toml`)] = text
		}
	}
	return list
}

// nodeKeyring returns the credentials of a kubelet that starts with that config.json in its root directory.
func nodeKeyring(t *testing.T, text string) credentialprovider.DockerKeyring {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	credentialprovider.SetPreferredDockercfgPath(directory)
	keyring := credentialprovider.NewDefaultDockerKeyring()
	keyring.Lookup("registry.test/app") // it reads the file at the first question, and keeps it for five minutes
	return keyring
}

// lookUp returns the credentials with which a kubelet pulls an image for a Pod with these imagePullSecrets, in its order
// (pkg/kubelet/images, EnsureImageExists): theirs, then those of the node.
func lookUp(t *testing.T, own credentialprovider.DockerKeyring, repository string, pullSecrets ...corev1.Secret) []credentialprovider.TrackedAuthConfig {
	t.Helper()
	keyring, err := secrets.MakeDockerKeyring(pullSecrets, own)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := keyring.Lookup(repository)
	return list
}

// pullWith pulls an image as a kubelet has containerd pull it: with one of its credentials after the other, or without any if it
// has none (pkg/kubelet/kuberuntime, PullImage).
func pullWith(t *testing.T, e Engine, c Client, image string, list []credentialprovider.TrackedAuthConfig) (pulled Pulled, err error) {
	t.Helper()
	for _, a := range append(list, make([]credentialprovider.TrackedAuthConfig, max(0, 1-len(list)))...) {
		// containerd would keep them to that server (internal/cri/server/images, ParseAuth).
		if a.ServerAddress != "" || a.Auth != "" || a.IdentityToken != "" {
			t.Fatal("the kubelet gives containerd more than a user and a password")
		}
		c.Credentials = func(string) (string, string, error) { return a.Username, a.Password, nil }
		if pulled, err = e.Pull(t.Context(), c, image); err == nil {
			break
		}
	}
	return pulled, err
}

// challenge is how a registry asks for credentials.
type challenge string

const (
	anonymous challenge = ""
	asksBasic challenge = "Basic"
	// asksToken is for a token server that takes a POST, asksTokenByGet for one that refuses it, as Azure's does.
	asksToken      challenge = "Bearer"
	asksTokenByGet challenge = "Bearer, by GET"
)

// oneImage is a registry that has one image under all names, and its token server.
type oneImage struct {
	image Image
	asks  challenge
	// realm is the URL of the token server.
	realm string
	// accepts reports whether the registry accepts a user with a password.
	accepts func(user, password string) bool
	// blobs, if not empty, is the URL of the store to which requests for blobs are redirected.
	blobs string
}

func (o oneImage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, basic := r.BasicAuth()
	token := "token-" + r.Host
	if r.URL.Path == "/token" {
		_ = r.ParseForm()
		token = "token-" + r.Form.Get("service")
		if r.Method == http.MethodPost {
			user, password = r.PostForm.Get("username"), r.PostForm.Get("password")
		}
		switch {
		case r.Method == http.MethodPost && o.asks == asksTokenByGet:
			http.Error(w, "unsupported grant", http.StatusBadRequest)
		case !o.accepts(user, password):
			http.Error(w, "wrong password", http.StatusUnauthorized)
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{"access_token": token})
		}
		return
	}
	switch {
	case o.asks == asksBasic && !(basic && o.accepts(user, password)):
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	case (o.asks == asksToken || o.asks == asksTokenByGet) && r.Header.Get("Authorization") != "Bearer "+token:
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service=%q`, o.realm, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
	default:
		o.serve(w, r)
	}
}

func (o oneImage) serve(w http.ResponseWriter, r *http.Request) {
	kind := "application/octet-stream"
	var data []byte
	switch name := filepath.Base(r.URL.Path); {
	case strings.Contains(r.URL.Path, "/manifests/"):
		kind, data = "application/vnd.oci.image.manifest.v1+json", o.image.Manifest
	case name == describe("", o.image.Config).Digest.String():
		data = o.image.Config
	case name == describe("", o.image.Layer).Digest.String():
		data = o.image.Layer
	default:
		http.NotFound(w, r)
		return
	}
	if o.blobs != "" && strings.Contains(r.URL.Path, "/blobs/") {
		http.Redirect(w, r, o.blobs+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	w.Header().Set("Docker-Content-Digest", describe("", data).Digest.String())
	_, _ = w.Write(data)
}

// wire is a network in memory: it records all of each request, and answers it with the handler of its host.
type wire struct {
	handler func(host string) http.Handler
	sent    []sent
}

// sent is a request: its host, and everything that was sent to it.
type sent struct{ host, text string }

func (n *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	var headers bytes.Buffer
	_ = r.Header.Write(&headers)
	n.sent = append(n.sent, sent{r.URL.Host, fmt.Sprintf("%s %s\n%s\n%s", r.Method, r.URL, headers.String(), body)})
	h := n.handler(r.URL.Host)
	if h == nil {
		return nil, fmt.Errorf("dialing %s: nothing listens", r.URL.Host)
	}
	served, recorder := r.Clone(r.Context()), httptest.NewRecorder()
	served.Body, served.Host = io.NopCloser(bytes.NewReader(body)), r.URL.Host
	h.ServeHTTP(recorder, served)
	response := recorder.Result()
	response.Request = r
	if r.Method == http.MethodHead {
		response.Body = http.NoBody
	}
	return response, nil
}

func (n *wire) client(root string) Client {
	return Client{Root: root, Update: func(c *http.Client) error { c.Transport = n; return nil }}
}

// keyHost returns the host of a key of the pull secret, with the wildcards in it, and one name for Docker Hub.
func keyHost(key string) string {
	_, rest, found := strings.Cut(key, "://")
	if !found {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	return hub(strings.ToLower(host[strings.LastIndex(host, "@")+1:]))
}

func hub(host string) string {
	if slices.Contains([]string{"index.docker.io", "registry-1.docker.io"}, host) {
		return "docker.io"
	}
	return host
}

// owns reports whether an entry of the pull secret is for a registry, by the kubelet's own comparison.
func owns(key, host string) bool {
	matches, _ := credentialprovider.URLsMatchStr(keyHost(key), hub(host))
	return matches
}
