package cri

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	keeper "wmco/applier/agent/images"
	"wmco/bundle"
)

// registry serves images of one layer.
type registry struct {
	*httptest.Server
	blobs map[string]blob
	// asks is the user and password that the registry asks for; empty is none.
	asks string
	mu   sync.Mutex
	// got are the users and passwords that it was given.
	got []string
}

type blob struct {
	kind string
	data []byte
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{blobs: map[string]blob{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) serve(w http.ResponseWriter, q *http.Request) {
	user, password, given := q.BasicAuth()
	if given {
		r.mu.Lock()
		r.got = append(r.got, user+":"+password)
		r.mu.Unlock()
	}
	if r.asks != "" && user+":"+password != r.asks {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	b, ok := r.blobs[q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]]
	switch {
	case q.URL.Path == "/v2/":
	case !ok:
		http.NotFound(w, q)
	default:
		w.Header().Set("Content-Type", b.kind)
		w.Header().Set("Content-Length", fmt.Sprint(len(b.data)))
		_, _ = w.Write(b.data)
	}
}

// add adds a blob and returns its descriptor.
func (r *registry) add(kind string, data []byte) map[string]any {
	d := string(bundle.Of(data))
	r.blobs[d] = blob{kind, data}
	return map[string]any{"mediaType": kind, "digest": d, "size": len(data)}
}

// image adds an image and returns its name in the registry that the hosts file sends to this one.
func (r *registry) image(t *testing.T, name, system string) string {
	t.Helper()
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if err := errors.Join(files.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: 1}), writeAll(files, "x"), files.Close()); err != nil {
		t.Fatal(err)
	}
	encode := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	config := encode(map[string]any{"os": system, "architecture": "amd64", "rootfs": map[string]any{"type": "layers", "diff_ids": []string{string(bundle.Of(layer.Bytes()))}}})
	const kind = "application/vnd.oci.image.manifest.v1+json"
	manifest := r.add(kind, encode(map[string]any{
		"schemaVersion": 2, "mediaType": kind, "config": r.add("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{r.add("application/vnd.oci.image.layer.v1.tar", layer.Bytes())},
	}))
	return fmt.Sprintf("pinned.example.com/%s@%s", name, manifest["digest"])
}

func writeAll(w *tar.Writer, text string) error {
	_, err := w.Write([]byte(text))
	return err
}

// configuration is that of nodes (templates/containerd_conf.toml.tmpl) where it bears on images, with what runs on Linux.
const configuration = `version = 3
root = '%[1]s/root'
state = '%[1]s/state'
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
  address = '%[1]s/containerd.sock'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'native'
  use_local_image_pull = true
  image_pull_progress_timeout = '30m0s'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '%[2]s'
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = '%[1]s/registries'
`

// realContainerd starts the containerd that nodes get, built for Linux, and returns a client of it.
func realContainerd(t *testing.T, upstream, pause string) *Containerd {
	t.Helper()
	program, err := filepath.Abs("../../../../bin/tools/containerd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil || os.Geteuid() != 0 {
		t.Skip("containerd runs as root, and make test-with-programs builds bin/tools/containerd")
	}
	folder := t.TempDir()
	hosts := filepath.Join(folder, "registries", "pinned.example.com")
	if err := os.MkdirAll(hosts, 0o700); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(folder, "containerd.toml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(hosts, "hosts.toml"), fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = ['pull']\n", upstream, upstream))
	write(conf, fmt.Sprintf(configuration, folder, pause))
	var log bytes.Buffer
	cmd := exec.Command(program, "--config", conf)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			_, _ = fmt.Fprintf(t.Output(), "containerd:\n%s\n", log.String())
		}
	})
	c, err := New(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, "containerd.sock"))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		_, err := c.FindImage(t.Context(), pause)
		if err == nil {
			return c
		}
		if !errors.Is(err, keeper.ErrAway) || time.Now().After(end) {
			t.Fatalf("containerd does not come up: %v", err)
		}
	}
}

// TestRealContainerd pulls through the hosts file, reports as pinned what was pinned, as the kubelet sees it, and unpins it again.
func TestRealContainerd(t *testing.T) {
	r := newRegistry(t)
	name, pause, foreign := r.image(t, "team/app", "linux"), r.image(t, "pause", "linux"), r.image(t, "team/other", "windows")
	c := realContainerd(t, r.URL, pause)
	ctx := t.Context()
	wantImage := func(name string, want keeper.Image) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) { // its CRI follows events
			got, err := c.FindImage(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is %+v, want %+v", name, got, want)
			}
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantPinned := func(want ...string) {
		t.Helper()
		got, err := c.ListPinned(ctx)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("pinned here: %q, want %q (%v)", got, want, err)
		}
	}
	wantImage(name, keeper.Image{})
	do(c.PullImage(ctx, name, bundle.Secret{}))
	wantImage(name, keeper.Image{Present: true})
	wantPinned()
	do(c.PinImage(ctx, name))
	wantImage(name, keeper.Image{Present: true, Pinned: true})
	wantPinned(name)
	do(c.PullImage(ctx, name, bundle.Secret{})) // as for a Pod with imagePullPolicy Always: it takes the labels off
	wantImage(name, keeper.Image{Present: true})
	do(c.PinImage(ctx, name))
	wantImage(name, keeper.Image{Present: true, Pinned: true})
	do(c.UnpinImage(ctx, name))
	wantImage(name, keeper.Image{Present: true})
	wantPinned()

	// The pause image is pinned by the configuration, and nothing of it is changed.
	do(c.PullImage(ctx, pause, bundle.Secret{}))
	wantImage(pause, keeper.Image{Present: true, Pinned: true})
	wantPinned()

	if err := c.PullImage(ctx, "pinned.example.com/team/none@"+string(bundle.Of(nil)), bundle.Secret{}); err == nil || errors.Is(err, keeper.ErrAway) || !strings.HasPrefix(err.Error(), "the registry has no such image") {
		t.Errorf("an image that is not there: %v", err)
	}
	// A manifest without an index is pulled with all its layers, for whatever system it is: therefore sets for Linux nodes are not taken.
	do(c.PullImage(ctx, foreign, bundle.Secret{}))
	stopped, stop := context.WithCancel(ctx)
	stop()
	if err := c.PullImage(stopped, name, bundle.Secret{}); err == nil {
		t.Error("a pull went on after its context had ended")
	}
}

// TestRealContainerdTakesCredentials for the image's own registry, and gives them to no mirror.
func TestRealContainerdTakesCredentials(t *testing.T) {
	mirror, own := newRegistry(t), newRegistry(t)
	own.asks = "user:pass:word"
	auth := bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte(own.asks)))
	c := realContainerd(t, mirror.URL, mirror.image(t, "pause", "linux"))
	ctx := t.Context()
	_, rest, _ := strings.Cut(own.image(t, "team/app", "linux"), "/")
	private := strings.TrimPrefix(own.URL, "http://") + "/" + rest // containerd speaks http with this computer
	if err := c.PullImage(ctx, private, bundle.Secret{}); err == nil || strings.Contains(err.Error(), "pass") {
		t.Errorf("without credentials: %v", err)
	}
	other := bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte("user:wrong")))
	if err := c.PullImage(ctx, private, other); err == nil || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), other.Reveal()) {
		t.Errorf("with a wrong password: %v", err)
	}
	if err := c.PullImage(ctx, private, auth); err != nil {
		t.Fatal(err)
	}
	if got, err := c.FindImage(ctx, private); err != nil || !got.Present {
		t.Errorf("%+v, %v", got, err)
	}
	mirror.asks = "other:word"
	if err := c.PullImage(ctx, mirror.image(t, "team/other", "linux"), auth); err == nil {
		t.Error("a mirror has accepted the credentials of the source")
	}
	mirror.mu.Lock()
	defer mirror.mu.Unlock()
	if len(mirror.got) > 0 {
		t.Errorf("a mirror was given %d times the credentials of the source", len(mirror.got))
	}
}

func TestServersOfImages(t *testing.T) {
	for name, want := range map[string]string{"a.example.com:5000/x/y@sha256:ab": "https://a.example.com:5000", "docker.io/library/x@sha256:ab": "https://registry-1.docker.io"} {
		if got := serverOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestErrorsOfContainerd(t *testing.T) {
	if describeError(nil) != nil {
		t.Error("an error out of nothing")
	}
	for code, away := range map[codes.Code]bool{codes.Unavailable: true, codes.Unimplemented: true, codes.NotFound: false, codes.Unknown: false, codes.ResourceExhausted: false} {
		err := describeError(status.Error(code, "why"))
		if errors.Is(err, keeper.ErrAway) != away || !strings.Contains(err.Error(), "why") && code != codes.Unimplemented || strings.Contains(err.Error(), "rpc error") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestNamesInContainerd(t *testing.T) {
	const digest = "@sha256:ab"
	for _, c := range []struct{ name, want string }{
		{"a.example.com/x" + digest, "a.example.com/x" + digest},
		{"docker.io/x" + digest, "docker.io/library/x" + digest},
		{"b.example.com/x" + digest, ""},
	} {
		if got := referenceOf(c.name, []string{"a.example.com/x" + digest, "docker.io/library/x" + digest}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
