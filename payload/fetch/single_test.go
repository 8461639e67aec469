package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/payload/fetch"
	"wmco/payload/sources"
	"wmco/payload/store"
)

// listOf returns the list of the executables by the places of registries, which have the image of the first one.
func listOf(t *testing.T, registries ...*registryServer) sources.List {
	t.Helper()
	opened, err := store.Open(executables)
	must(t, err)
	l := sources.List{Payload: opened.Set().Digest(), Image: places.Image{Registry: "operators.example.com", Repository: "team/wmco"}}
	l.Image.Reference = string(bundle.Of(registries[0].content["manifests/v1"]))
	for _, r := range registries {
		r.content["manifests/"+l.Image.Reference] = registries[0].content["manifests/v1"]
		l.Places = append(l.Places, places.Place{Registry: strings.TrimPrefix(r.URL, "https://"), Repository: "team/wmco", Insecure: true})
	}
	for _, e := range opened.Entries() {
		l.Executables = append(l.Executables, sources.Executable{Name: e.Name, Raw: e.Raw, Stored: e.Stored})
	}
	return l
}

func newSingle(r *registryServer) *fetch.Single {
	return &fetch.Single{Client: &registry.Client{Verified: http.DefaultTransport, Insecure: r.Client().Transport, Now: time.Now}}
}

func newOperator(t *testing.T) *registryServer {
	t.Helper()
	r := newRegistry(t)
	r.addOperator(t, gzipped, true)
	return r
}

// TestSingleExecutables are the stored forms, each from its layer alone.
func TestSingleExecutables(t *testing.T) {
	t.Parallel()
	r := newOperator(t)
	l, s := listOf(t, r), newSingle(r)
	for _, x := range l.Executables {
		var last int64
		data, err := s.FetchStored(t.Context(), l, x, func(n int64) { last = n })
		if err != nil || bundle.Of(data) != x.Stored.Digest || last == 0 {
			t.Errorf("%s: %d bytes, %d reported, %v", x.Name, len(data), last, err)
		}
	}
	asked := r.taken()
	if got := len(blobsOf(asked)); got != len(l.Executables) || len(asked) != got+2 {
		t.Errorf("%d layers of %d executables, and the manifest once: %q", got, len(l.Executables), asked)
	}
}

// TestPlacesAreAskedInOrder: one that fails is followed by the next, and the error has the answer of each, without credentials.
func TestPlacesAreAskedInOrder(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*registryServer){
		"401":                  func(r *registryServer) { r.password = "p" },
		"429":                  func(r *registryServer) { r.status = http.StatusTooManyRequests },
		"500":                  func(r *registryServer) { r.status = http.StatusInternalServerError },
		"the image is missing": func(r *registryServer) { r.content = map[string][]byte{} },
		"it is off":            func(r *registryServer) { r.Close() },
		"other bytes": func(r *registryServer) {
			r.changed = func(data []byte) []byte { return append([]byte("x"), data[1:]...) }
		},
		"half of each answer": func(r *registryServer) { r.cut, r.cuts, r.ranges = 10, 1<<20, false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newOperator(t), newOperator(t)
			l := listOf(t, first, second)
			l.Places[0].Auth = bundle.NewSecret("dTpzZWNyZXQ=")
			fail(first)
			s := newSingle(second)
			x := l.Executables[0]
			data, err := s.FetchStored(t.Context(), l, x, func(int64) {})
			if err != nil || bundle.Of(data) != x.Stored.Digest {
				t.Errorf("by the second place: %d bytes, %v", len(data), err)
			}
			s = newSingle(second)
			second.status = http.StatusServiceUnavailable
			_, err = s.FetchStored(t.Context(), l, x, func(int64) {})
			if err == nil || !strings.Contains(err.Error(), l.Places[0].Name()) || !strings.Contains(err.Error(), l.Places[1].Name()+": ") ||
				!strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "dTpz") || strings.Contains(err.Error(), "\n") {
				t.Errorf("by none: %v", err)
			}
		})
	}
}

// TestABrokenLayerGoesOnAtTheNextPlace: what the first one has sent is not fetched again.
func TestABrokenLayerGoesOnAtTheNextPlace(t *testing.T) {
	t.Parallel()
	first, second := newOperator(t), newOperator(t)
	l := listOf(t, first, second)
	x := l.Executables[0]
	first.cut, first.cuts = 20, 1
	s := newSingle(second)
	first.failAfterCuts = true
	if _, err := s.FetchStored(t.Context(), l, x, func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if got := blobsOf(second.taken()); len(got) != 1 || !strings.HasSuffix(got[0], " bytes=20-") {
		t.Errorf("%q", got)
	}
}

// TestImagesThatLack what a bundle names are refused.
func TestImagesThatLack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(l *sources.List, r *registryServer)
		want   string
	}{
		"no annotations": {func(l *sources.List, r *registryServer) {
			r.content = map[string][]byte{}
			r.addOperator(t, gzipped, false)
			l.Image.Reference = string(bundle.Of(r.content["manifests/v1"]))
			r.content["manifests/"+l.Image.Reference] = r.content["manifests/v1"]
		}, "has lost its annotations"},
		"another executable": {func(l *sources.List, _ *registryServer) { l.Executables[0].Stored.Digest = bundle.Of([]byte("other")) }, "another executable"},
		"another manifest":   {func(l *sources.List, r *registryServer) { r.content["manifests/"+l.Image.Reference] = []byte("{}") }, "sent another manifest"},
		"no place":           {func(l *sources.List, _ *registryServer) { l.Places = nil }, "no place may be asked"},
	} {
		r := newOperator(t)
		l := listOf(t, r)
		c.change(&l, r)
		if _, err := newSingle(r).FetchStored(t.Context(), l, l.Executables[0], func(int64) {}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLargeLayers are not taken into memory.
func TestLargeLayers(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	l := listOf(t, newOperator(t))
	x := l.Executables[0]
	data, err := store.Open(executables)
	must(t, err)
	stored, err := data.Stored(x.Name)
	must(t, err)
	content := make([]byte, x.Stored.Size)
	_, err = stored.Read(content)
	must(t, err)
	layer := r.add("blobs", plain.layer(t, entry{name: "payload/" + store.FileOf(x.Name), data: content}, entry{name: "more", data: make([]byte, 5<<20)}))
	layer["annotations"] = map[string]string{fetch.LayerAnnotation: store.FileOf(x.Name)}
	r.addImage(t, []map[string]any{layer})
	l = sources.List{Payload: l.Payload, Executables: l.Executables, Image: l.Image, Places: []places.Place{{Registry: strings.TrimPrefix(r.URL, "https://"), Repository: "team/wmco", Insecure: true}}}
	l.Image.Reference = string(bundle.Of(r.content["manifests/v1"]))
	r.content["manifests/"+l.Image.Reference] = r.content["manifests/v1"]
	if _, err := newSingle(r).FetchStored(t.Context(), l, x, func(int64) {}); err == nil || !strings.Contains(err.Error(), "more than") || len(blobsOf(r.taken())) > 0 {
		t.Errorf("%v", err)
	}
}

// TestTheRateIsKept: layers take as long as the rate demands, and a context ends the wait.
func TestTheRateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fetch.Single{Client: &registry.Client{Verified: bigLayer{size: 1 << 20}, Now: time.Now}}
		l := sources.List{Image: places.Image{Registry: "r.example.com", Repository: "wmco", Reference: string(bundle.Of(bigLayer{}.manifest()))}, Rate: 64 << 10}
		l.Places = []places.Place{{Registry: "r.example.com", Repository: "wmco"}}
		x := sources.Executable{Name: "kubelet"}
		x.Stored.Size = 1 << 20
		begun := time.Now()
		_, err := s.FetchStored(t.Context(), l, x, func(int64) {}) // its bytes are not those of the digest, so it is read five times
		if took := time.Since(begun); err == nil || took < 75*time.Second || took > 90*time.Second {
			t.Errorf("5 MiB at 64 KiB a second took %s, %v", took, err)
		}
		ctx, cancel := context.WithCancel(t.Context()) // as that of an agent, it has no deadline
		time.AfterFunc(time.Second, cancel)
		if _, err := s.FetchStored(ctx, l, x, func(int64) {}); err == nil || ctx.Err() == nil {
			t.Errorf("after its context has ended: %v", err)
		}
	})
}

// TestABusyHostReachesTheRate: it wakes up late, and takes then what it could have taken before.
func TestABusyHostReachesTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &fetch.Single{Client: &registry.Client{Verified: bigLayer{1 << 20, 50 * time.Millisecond}, Now: time.Now}}
		l := sources.List{Image: places.Image{Registry: "r.example.com", Repository: "wmco", Reference: string(bundle.Of(bigLayer{}.manifest()))}, Rate: 20 << 20}
		l.Places = []places.Place{{Registry: "r.example.com", Repository: "wmco"}}
		x := sources.Executable{Name: "kubelet"}
		x.Stored.Size = 1 << 20
		begun := time.Now()
		_, _ = s.FetchStored(t.Context(), l, x, func(int64) {}) // its bytes are not those of the digest, so it is read five times
		if took := time.Since(begun); took < 150*time.Millisecond || took > 300*time.Millisecond {
			t.Errorf("5 MiB at 20 MiB a second took %s", took)
		}
	})
}

// bigLayer is a registry with one layer of zeros, whose digest it is not. The host waits so long for each answer with it.
type bigLayer struct {
	size  int
	pause time.Duration
}

func (bigLayer) manifest() []byte {
	return fmt.Appendf(nil, `{"layers":[{"digest":%q,"size":1048576,"annotations":{%q:"kubelet.exe.zst"}}]}`, bundle.Of([]byte("other")), fetch.LayerAnnotation)
}

// RoundTrip implements http.RoundTripper.
func (b bigLayer) RoundTrip(r *http.Request) (*http.Response, error) {
	body := string(b.manifest())
	if strings.Contains(r.URL.Path, "/blobs/") {
		body = strings.Repeat("\x00", b.size)
		time.Sleep(b.pause)
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: closable{strings.NewReader(body)}}, nil
}

type closable struct{ *strings.Reader }

func (closable) Close() error { return nil }
