package fetch_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/payload/fetch"
	"wmco/payload/store"
)

const executables = "../../golden/payload"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entry is a file of a layer.
type entry struct {
	name string
	data []byte
	kind byte
}

// form is how a layer is compressed.
type form string

const (
	gzipped form = "gzip"
	zstded  form = "zstd"
	plain   form = "tar"
)

func (f form) layer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := map[form]func() io.WriteCloser{
		gzipped: func() io.WriteCloser { return gzip.NewWriter(&out) },
		zstded: func() io.WriteCloser {
			w, err := zstd.NewWriter(&out)
			must(t, err)
			return w
		},
		plain: func() io.WriteCloser { return nopCloser{&out} },
	}[f]()
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.data))}
		if e.kind != tar.TypeReg {
			h.Size, h.Linkname = 0, "/etc/passwd"
		}
		must(t, w.WriteHeader(h))
		if e.kind == tar.TypeReg {
			_, err := w.Write(e.data)
			must(t, err)
		}
	}
	must(t, w.Close())
	must(t, compressed.Close())
	return out.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// registryServer is a registry with one image.
type registryServer struct {
	*httptest.Server
	content map[string][]byte
	// password is demanded if it is not empty, status is answered if it is not 0.
	password string
	status   int
	// realm is the token server that it names; empty for none.
	realm string
	// cut ends the answers of blobs after so many bytes, until there is none left; ranges is false if the registry ignores Range.
	cuts   int
	cut    int
	ranges bool
	// failAfterCuts makes it answer 503 when none is left.
	failAfterCuts bool
	// changed is what blobs contain in place of what they should.
	changed func([]byte) []byte

	mu    sync.Mutex
	asked []string
}

func newRegistry(t *testing.T) *registryServer {
	t.Helper()
	r := &registryServer{content: map[string][]byte{}, ranges: true}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *registryServer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := strings.TrimPrefix(q.URL.Path, "/v2/team/wmco/")
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, given, _ := q.BasicAuth(); r.password != "" && given != r.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.realm != "" {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", r.realm))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.asked = append(r.asked, strings.TrimSpace(path+" "+q.Header.Get("Range")))
	data, ok := r.content[path]
	switch {
	case r.status != 0:
		w.WriteHeader(r.status)
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if strings.HasPrefix(path, "blobs/") {
		r.serveBlob(w, q, data)
		return
	}
	_, _ = w.Write(data)
}

func (r *registryServer) serveBlob(w http.ResponseWriter, q *http.Request, data []byte) {
	if r.changed != nil {
		data = r.changed(data)
	}
	begin := 0
	if _, err := fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-", &begin); err == nil && r.ranges {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)-begin))
		w.WriteHeader(http.StatusPartialContent)
		data = data[begin:]
	}
	if r.cuts > 0 && len(data) > r.cut {
		r.cuts--
		if r.cuts == 0 && r.failAfterCuts {
			r.status = http.StatusServiceUnavailable
		}
		_, _ = w.Write(data[:r.cut])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(data)
}

// taken returns what the registry was asked for since the last call, with the digests of blobs as the number of their layer.
func (r *registryServer) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.asked
	r.asked = nil
	return list
}

// add adds an object under its digest, and returns its descriptor.
func (r *registryServer) add(kind string, data []byte) map[string]any {
	d := digest.FromBytes(data).String()
	r.content[kind+"/"+d] = data
	return map[string]any{"mediaType": "any", "digest": d, "size": len(data)}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return data
}

// addImage adds an image with layers, and an index of it with the tag v1.
func (r *registryServer) addImage(t *testing.T, layers []map[string]any) {
	t.Helper()
	config := r.add("blobs", []byte("{}"))
	one := r.add("manifests", encoded(t, map[string]any{"schemaVersion": 2, "config": config, "layers": layers}))
	one["platform"] = map[string]any{"os": "linux", "architecture": "amd64"}
	other := map[string]any{"digest": digest.FromString("arm").String(), "size": 3, "platform": map[string]any{"os": "linux", "architecture": "arm64"}}
	r.content["manifests/v1"] = encoded(t, map[string]any{"schemaVersion": 2, "manifests": []any{other, one}})
}

// addOperator adds an image as the release has it: a layer for each executable, between others.
func (r *registryServer) addOperator(t *testing.T, f form, named bool) {
	t.Helper()
	layers := []map[string]any{r.add("blobs", f.layer(t, entry{name: "licenses/LICENSE", data: []byte("free")}))}
	files, err := os.ReadDir(executables)
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(executables, file.Name()))
		must(t, err)
		l := r.add("blobs", f.layer(t, entry{name: "payload/", kind: tar.TypeDir}, entry{name: "payload/" + file.Name(), data: data}))
		if named {
			l["annotations"] = map[string]string{fetch.LayerAnnotation: file.Name()}
		}
		layers = append(layers, l)
	}
	layers = append(layers, r.add("blobs", f.layer(t,
		entry{name: "usr/bin/wmco", data: []byte("operator")}, entry{name: "payload/sub/kubelet-1.36.exe.zst", data: []byte("x")}, entry{name: "payload/notes.txt", data: []byte("x")},
		entry{name: "payload/../payload.json", data: []byte("x")}, entry{name: "payload/linked.exe.zst", kind: tar.TypeSymlink},
	)))
	r.addImage(t, layers)
}

func (r *registryServer) source(t *testing.T, cache string) fetch.Source {
	t.Helper()
	name, err := fetch.ParseImage(strings.TrimPrefix(r.URL, "https://") + "/team/wmco:v1")
	must(t, err)
	return fetch.Source{Image: name, Cache: cache, Client: &registry.Client{Verified: r.Client().Transport, Now: time.Now}}
}

// contents returns the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(folder)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		must(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

// blobsOf returns the requests for blobs.
func blobsOf(asked []string) []string {
	return slices.DeleteFunc(asked, func(a string) bool { return !strings.HasPrefix(a, "blobs/") })
}

// TestExecutablesAreFetched once, from layers of any kind.
func TestExecutablesAreFetched(t *testing.T) {
	t.Parallel()
	want := contents(t, executables)
	for _, f := range []form{gzipped, zstded, plain} {
		for _, named := range []bool{true, false} {
			t.Run(fmt.Sprint(f, " ", named), func(t *testing.T) {
				t.Parallel()
				r := newRegistry(t)
				r.addOperator(t, f, named)
				var last, all int64
				s := r.source(t, t.TempDir())
				s.Progress = func(have, of int64) { last, all = have, of }
				folder, err := s.FetchExecutables(t.Context())
				must(t, err)
				if diff := cmp.Diff(want, contents(t, folder)); diff != "" {
					t.Errorf("-want +got:\n%.500s", diff)
				}
				layers := len(want)
				if !named {
					layers += 2
				}
				if got := blobsOf(r.taken()); len(got) != layers || last != all || all == 0 {
					t.Errorf("%d layers were fetched, %d of %d bytes: %q", len(got), last, all, got)
				}
				again, err := s.FetchExecutables(t.Context())
				if got := blobsOf(r.taken()); err != nil || again != folder || len(got) > 0 {
					t.Errorf("the second time: %s, %v, %q", again, err, got)
				}
				must(t, os.Remove(filepath.Join(folder, store.FileOf("containerd"))))
				again, err = s.FetchExecutables(t.Context())
				if diff := cmp.Diff(want, contents(t, again)); err != nil || again != folder || diff != "" {
					t.Errorf("after a file was removed: %v\n%.500s", err, diff)
				}
				if left, err := os.ReadDir(s.Cache); err != nil || len(left) != 2 {
					t.Errorf("the cache has %v, %v", left, err)
				}
			})
		}
	}
}

// TestABrokenFetchGoesOn where it ended: in the same call, and in the next one.
func TestABrokenFetchGoesOn(t *testing.T) {
	t.Parallel()
	for name, ranges := range map[string]bool{"by range": true, "from the start": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t)
			r.addOperator(t, plain, true)
			r.ranges, r.cut, r.cuts = ranges, 700, 4
			s := r.source(t, t.TempDir())
			folder, err := s.FetchExecutables(t.Context())
			must(t, err)
			if diff := cmp.Diff(contents(t, executables), contents(t, folder)); diff != "" {
				t.Errorf("-want +got:\n%.500s", diff)
			}
			if asked := strings.Join(r.taken(), "\n"); strings.Count(asked, "bytes=700-") == 0 || r.cuts > 0 {
				t.Errorf("nothing was continued:\n%s", asked)
			}
		})
	}
	t.Run("in the next call", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		r.addOperator(t, plain, true)
		r.cut, r.cuts = 100, 1<<10
		s := r.source(t, t.TempDir())
		if folder, err := s.FetchExecutables(t.Context()); err == nil || !strings.Contains(err.Error(), "layer ") {
			t.Fatalf("%s, %v", folder, err)
		}
		r.taken()
		r.cuts = 0
		_, err := s.FetchExecutables(t.Context())
		if asked := blobsOf(r.taken()); err != nil || !strings.HasSuffix(asked[0], " bytes=500-") {
			t.Errorf("%v: %q", err, asked[0])
		}
	})
	t.Run("until it is stopped", func(t *testing.T) {
		t.Parallel()
		r := newRegistry(t)
		r.addOperator(t, plain, true)
		r.cut, r.cuts = 100, 1<<10
		ctx, cancel := context.WithCancel(t.Context())
		s := r.source(t, t.TempDir())
		s.Progress = func(int64, int64) { cancel() }
		if _, err := s.FetchExecutables(ctx); err == nil || len(blobsOf(r.taken())) > 1 {
			t.Errorf("%v", err)
		}
	})
}

// TestWhatCannotBeUsed leaves no folder, and the error says what to do.
func TestWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	only := func(t *testing.T, r *registryServer, entries ...entry) {
		t.Helper()
		r.addImage(t, []map[string]any{r.add("blobs", gzipped.layer(t, entries...))})
	}
	list, err := os.ReadFile(filepath.Join(executables, store.ListFile))
	must(t, err)
	for name, c := range map[string]struct {
		damage func(*testing.T, *registryServer)
		want   string
	}{
		"other bytes": {func(_ *testing.T, r *registryServer) {
			r.changed = func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1) }
		}, "the registry sent other bytes than the digest names"},
		"fewer bytes":         {func(_ *testing.T, r *registryServer) { r.changed = func(b []byte) []byte { return b[:len(b)-1] } }, " bytes"},
		"no tag":              {func(_ *testing.T, r *registryServer) { delete(r.content, "manifests/v1") }, "404 Not Found: it has no such image"},
		"no login":            {func(_ *testing.T, r *registryServer) { r.password = "p" }, "401 Unauthorized"},
		"an error":            {func(_ *testing.T, r *registryServer) { r.status = http.StatusServiceUnavailable }, "503 Service Unavailable"},
		"no manifest":         {func(_ *testing.T, r *registryServer) { r.content["manifests/v1"] = []byte("<html>") }, "did not send a manifest"},
		"no layers":           {func(_ *testing.T, r *registryServer) { r.content["manifests/v1"] = []byte("{}") }, "it has 0 layers"},
		"another platform":    {func(_ *testing.T, r *registryServer) { r.content["manifests/v1"] = []byte(`{"manifests":[]}`) }, "no image for linux/amd64"},
		"another image":       {func(t *testing.T, r *registryServer) { only(t, r, entry{name: "etc/passwd", data: []byte("x")}) }, "it is not an image of this operator"},
		"an incomplete image": {func(t *testing.T, r *registryServer) { only(t, r, entry{name: "payload/payload.json", data: list}) }, "is missing: use the wmco and the image of one release"},
		"another release": {func(t *testing.T, r *registryServer) {
			other := bytes.Replace(list, []byte(`"version": "v1.36.`), []byte(`"version": "v0.36.`), 1)
			only(t, r, entry{name: "payload/payload.json", data: other})
		}, "use the wmco and the image of one release"},
		"a layer that is no archive": {func(t *testing.T, r *registryServer) {
			r.addImage(t, []map[string]any{r.add("blobs", []byte("not an archive"))})
		}, "layer "},
		"a layer that is too large": {func(t *testing.T, r *registryServer) {
			r.addImage(t, []map[string]any{{"digest": digest.FromString("x").String(), "size": 2 << 30}})
		}, "is not valid"},
		"a digest that leads elsewhere": {func(t *testing.T, r *registryServer) {
			r.addImage(t, []map[string]any{{"digest": "sha256:../../x", "size": 1}})
		}, "is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t)
			r.addOperator(t, gzipped, true)
			c.damage(t, r)
			s := r.source(t, t.TempDir())
			folder, err := s.FetchExecutables(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v", folder, err)
			}
			left, _ := os.ReadDir(s.Cache)
			for _, e := range left {
				if e.Name() != "layers" {
					t.Errorf("it leaves %s", e.Name())
				}
			}
		})
	}
}

// TestCredentialsAreUsed of the registry.
func TestCredentialsAreUsed(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	r.addOperator(t, gzipped, true)
	r.password = "sesame"
	s := r.source(t, t.TempDir())
	s.Auth = bundle.NewSecret("dTpzZXNhbWU=") // u:sesame
	_, err := s.FetchExecutables(t.Context())
	must(t, err)
	s.Auth, s.Cache = bundle.NewSecret("dTp3cm9uZw=="), t.TempDir()
	if _, err := s.FetchExecutables(t.Context()); err == nil || strings.Contains(err.Error(), "wrong") || strings.Contains(err.Error(), "dTp3") {
		t.Errorf("%v", err)
	}
}

// TestATokenServerThatRefuses: the answer is the token server's, and what helps is a login to the registry.
func TestATokenServerThatRefuses(t *testing.T) {
	t.Parallel()
	tokens := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(tokens.Close)
	r := newRegistry(t)
	r.realm = tokens.URL
	s := r.source(t, t.TempDir())
	_, err := s.FetchExecutables(t.Context())
	var answered *fetch.StatusError
	if !errors.As(err, &answered) || answered.Server != strings.TrimPrefix(tokens.URL, "https://") || answered.Registry != s.Image.Registry || !answered.IsDenied() {
		t.Errorf("%v", err)
	}
}

// TestNamesOfImages are read as podman reads names with a registry.
func TestNamesOfImages(t *testing.T) {
	t.Parallel()
	d := digest.FromString("x").String()
	for text, want := range map[string]places.Image{
		"quay.io/team/wmco:0.1.0":       {Registry: "quay.io", Repository: "team/wmco", Reference: "0.1.0"},
		"Quay.io/wmco":                  {Registry: "quay.io", Repository: "wmco", Reference: "latest"},
		"localhost/wmco@" + d:           {Registry: "localhost", Repository: "wmco", Reference: d},
		"registry:5000/a/b/c:v1@" + d:   {Registry: "registry:5000", Repository: "a/b/c", Reference: d},
		"10.0.0.1:5000/wmco":            {Registry: "10.0.0.1:5000", Repository: "wmco", Reference: "latest"},
		"[fd00::1]:5000/wmco:v1":        {Registry: "[fd00::1]:5000", Repository: "wmco", Reference: "v1"},
		"a-b.example.com/x__y/z-1.2:V_": {Registry: "a-b.example.com", Repository: "x__y/z-1.2", Reference: "V_"},
	} {
		if got, err := fetch.ParseImage(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "wmco", "team/wmco:v1", "quay.io", "quay.io/", "https://quay.io/team/wmco", "quay.io/Team/wmco", "quay.io/a/../b", "quay.io/a:b:c", "quay.io/a@sha256:12", "docker://quay.io/a"} {
		if got, err := fetch.ParseImage(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
