package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/gateway/places"
	"wmco/internal/hostsim/bundletest"
	"wmco/payload"
	"wmco/payload/sources"
)

// fakeRegistry has the stored forms of executables, by name.
type fakeRegistry struct {
	mu      sync.Mutex
	stored  map[string][]byte
	fetched []string
}

// FetchStored implements executables.Registry.
func (r *fakeRegistry) FetchStored(_ context.Context, _ sources.List, x sources.Executable, _ func(int64)) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	data, ok := r.stored[x.Name]
	if !ok {
		return nil, errors.New("r.example.com/wmco: answered 404")
	}
	r.fetched = append(r.fetched, x.Name)
	return data, nil
}

// listed returns a list of executables, and the registry that has them.
func listed(t *testing.T, texts map[string]string) (sources.List, *fakeRegistry) {
	t.Helper()
	l := sources.List{Payload: bundle.Of([]byte(texts["kubelet"])), Image: places.Image{Registry: "r.example.com", Repository: "wmco", Reference: string(bundle.Of([]byte("image")))}}
	r := &fakeRegistry{stored: map[string][]byte{}}
	for _, name := range []string{"containerd", "kubelet"} {
		text, ok := texts[name]
		if !ok {
			continue
		}
		stored := archive.Compress([]byte(text))
		r.stored[name] = stored
		l.Executables = append(l.Executables, sources.Executable{
			Name: name, Raw: payload.Blob{Digest: bundle.Of([]byte(text)), Size: int64(len(text))}, Stored: payload.Blob{Digest: bundle.Of(stored), Size: int64(len(stored))},
		})
	}
	return l, r
}

// fetchWith gives the agent a registry; the test does the steps of the fetcher.
func (w *world) fetchWith(r *fakeRegistry) {
	w.Registry = r
	w.fetcher = w.newFetcher(w.changed)
}

// fetch does one step of the fetcher, and one of the agent after it.
func (w *world) fetch(payload bundle.Digest) published.Report {
	w.t.Helper()
	w.cluster.node.Fetch = payload
	w.turn()
	w.fetcher.FetchDue(w.t.Context())
	return w.turn()
}

// TestExecutablesAreFetchedAheadOfTheirBundle, by the list of the bundle that the host has, and only where that is permitted.
func TestExecutablesAreFetchedAheadOfTheirBundle(t *testing.T) {
	w := newWorld(t)
	l, r := listed(t, map[string]string{"kubelet": "another kubelet", "containerd": w.bundle.Programs[`C:\k\containerd\containerd.exe`]})
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.change(sources.File, string(data))
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || got.Has(published.FeatureFetch) {
		t.Fatalf("an agent without a registry: %+v", got)
	}
	w.fetchWith(r)
	if got := w.fetch(""); !got.Has(published.FeatureFetch) || len(r.fetched) > 0 || got.Fetch != (published.FetchProgress{}) {
		t.Errorf("without permission: %+v", got.Fetch)
	}
	got := w.fetch(l.Payload)
	if p := got.Fetch; !p.Done || p.Payload != l.Payload || strings.Join(r.fetched, " ") != "kubelet" || got.State != published.StateApplied {
		t.Fatalf("%+v, fetched %q", got, r.fetched)
	}
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) { n.Programs[kubelet] = "another kubelet" })
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || w.file(kubelet) != "another kubelet" {
		t.Errorf("the bundle with it: %+v", got)
	}
}

// TestABundleThatLacksItsExecutablesIsAppliedWhenTheyCame: also one whose list no bundle of the host has, and a damaged executable of the host.
func TestABundleThatLacksItsExecutablesIsAppliedWhenTheyCame(t *testing.T) {
	w := newWorld(t)
	l, r := listed(t, map[string]string{"kubelet": "another kubelet"})
	data, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	w.fetchWith(r)
	w.change(sources.File, string(data))
	w.bundle = w.bundle.Changed(func(n *bundletest.Node) { n.Programs[kubelet] = "another kubelet" })
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StatePayloadMissing {
		t.Fatalf("%+v", got)
	}
	if got := w.fetch(l.Payload); got.State != published.StateApplied || w.file(kubelet) != "another kubelet" {
		t.Errorf("%+v", got)
	}
	// Its contents are swept, and its file is deleted.
	for path := range w.host.Snapshot().Files {
		if strings.HasPrefix(path, records.DirContents+`\`) {
			if err := w.host.Remove(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.host.Remove(t.Context(), kubelet); err != nil {
		t.Fatal(err)
	}
	if got := w.turnAfter(w.Options.Interval); got.State != published.StatePayloadMissing {
		t.Fatalf("after a repair without its kubelet: %+v", got)
	}
	if got := w.fetch(l.Payload); got.State != published.StateApplied || w.file(kubelet) != "another kubelet" || len(r.fetched) != 2 {
		t.Errorf("%+v, fetched %q", got, r.fetched)
	}
}
