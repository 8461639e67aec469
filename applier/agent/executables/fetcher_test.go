package executables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/gateway/places"
	"wmco/payload"
	"wmco/payload/sources"
)

func listOf(version string) sources.List {
	l := sources.List{
		Payload: bundle.Of([]byte(version)),
		Image:   places.Image{Registry: "r.example.com", Repository: "wmco", Reference: string(bundle.Of([]byte("image " + version)))},
	}
	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		data := []byte(version + name)
		b := payload.Blob{Digest: bundle.Of(data), Size: int64(len(data))}
		l.Executables = append(l.Executables, sources.Executable{Name: name, Raw: b, Stored: b})
	}
	slices.SortFunc(l.Executables, func(a, b sources.Executable) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// host is a fetcher with what it works on.
type host struct {
	*Fetcher
	list *sources.List
	// has are the contents of the host.
	has map[bundle.Digest]bool
	// down is the error of the registry, locked that of the host; damaged is an executable that cannot be kept.
	down, locked error
	damaged      string
	fetched      []string
	warnings     []string
	reports      int
	// during is called with each fetch.
	during func()
}

// FetchStored implements Registry.
func (h *host) FetchStored(ctx context.Context, l sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	h.fetched = append(h.fetched, x.Name)
	report(1)
	if h.during != nil {
		h.during()
	}
	if h.down != nil || ctx.Err() != nil {
		return nil, errors.Join(h.down, ctx.Err())
	}
	return []byte(x.Name), nil
}

func (h *host) stage(_ context.Context, all []archive.Content, from archive.Source) (missing []bundle.Digest, err error) {
	for _, c := range from.Contents() {
		r, err := from.Open(c.SHA256)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		h.has[c.Digest] = string(data) != h.damaged
	}
	for _, c := range all {
		if !h.has[c.Digest] {
			missing = append(missing, c.Digest)
		}
	}
	return missing, h.locked
}

type bubbleClock struct{ booted time.Time }

func (c bubbleClock) SinceBoot() time.Duration             { return time.Since(c.booted) }
func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func newHost(version string) *host {
	l := listOf(version)
	h := &host{list: &l, has: map[bundle.Digest]bool{}}
	h.Fetcher = &Fetcher{
		Registry: h, Stage: h.stage, Clock: bubbleClock{time.Now().Add(-time.Hour)}, Log: slog.New(slog.DiscardHandler),
		Changed: func() { h.reports++ }, Warn: func(_ context.Context, message string) { h.warnings = append(h.warnings, message) },
		Jitter: func(d time.Duration) time.Duration { return d },
		List: func(context.Context) ([]byte, error) {
			if h.list == nil {
				return nil, nil
			}
			return h.list.Encode()
		},
	}
	return h
}

// during runs the fetcher for a time.
func (h *host) runFor(t *testing.T, d time.Duration) published.FetchProgress {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		h.Run(ctx)
		close(ended)
	}()
	time.Sleep(d)
	synctest.Wait()
	stop()
	<-ended
	return h.Progress()
}

// TestExecutablesAreFetchedWherePermitted, each once, and only those that the host lacks.
func TestExecutablesAreFetchedWherePermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.has[h.list.Executables[0].Raw.Digest] = true
		for _, permitted := range []bundle.Digest{"", bundle.Of([]byte("2"))} {
			h.PermitPayload(permitted)
			if p := h.runFor(t, time.Hour); len(h.fetched) > 0 || p != (published.FetchProgress{}) || h.reports > 0 {
				t.Errorf("permitted %q: %q, %+v", permitted.Short(), h.fetched, p)
			}
		}
		h.PermitPayload(h.list.Payload)
		p := h.runFor(t, time.Minute)
		if want := []string{"kube-proxy", "kubelet"}; !slices.Equal(h.fetched, want) || !p.Done || p.Failed || p.Present != p.Wanted || p.Wanted == 0 || p.Payload != h.list.Payload {
			t.Errorf("%q, want %q; %+v", h.fetched, want, p)
		}
		if p := h.runFor(t, time.Hour); len(h.fetched) != 2 || !p.Done {
			t.Errorf("an hour later: %q, %+v", h.fetched, p)
		}
		next := listOf("2")
		h.list = &next
		if p := h.runFor(t, time.Minute); p != (published.FetchProgress{}) {
			t.Errorf("a list that is not permitted: %+v", p)
		}
		h.list = nil
		if p := h.runFor(t, time.Minute); p != (published.FetchProgress{}) || len(h.warnings) > 0 {
			t.Errorf("without a list: %+v, %q", p, h.warnings)
		}
	})
}

// TestARegistryThatFails: it is retried with a growing pause, reported once after three tries, and goes on when it answers.
func TestARegistryThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.PermitPayload(h.list.Payload)
		h.down = errors.New("mirror.example.com/wmco: answered 503")
		if p := h.runFor(t, 30*time.Second); p.Failed || !strings.Contains(p.Message, "503") || len(h.warnings) > 0 {
			t.Errorf("after two tries: %+v, %q", p, h.warnings)
		}
		if p := h.runFor(t, 10*time.Minute); !p.Failed || p.Done || len(h.warnings) != 1 || !strings.Contains(h.warnings[0], "mirror.example.com") {
			t.Errorf("later: %+v, %q", p, h.warnings)
		}
		h.runFor(t, 5*time.Hour)
		if n := len(h.fetched); n < 10 || n > 20 || len(h.warnings) != 1 {
			t.Errorf("%d tries in five hours, %d warnings", n, len(h.warnings))
		}
		h.down = nil
		if p := h.runFor(t, longestPause+time.Minute); !p.Done || p.Failed || p.Message != "" {
			t.Errorf("when it answers: %+v", p)
		}
	})
}

// TestProgressForgivesFailures: a registry that gives one executable between failures is not given up.
func TestProgressForgivesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.PermitPayload(h.list.Payload)
		n := 0
		h.during = func() {
			n++
			h.down = nil
			if n%3 > 0 { // each comes at the third try
				h.down = errors.New("reset")
			}
		}
		if p := h.runFor(t, 10*time.Minute); !p.Done || len(h.warnings) > 0 {
			t.Errorf("%+v, %q", p, h.warnings)
		}
	})
}

// TestWhatEndsAFetch: permission that is withdrawn, a host that is locked, an executable that is not what the bundle names, and the end of the agent.
func TestWhatEndsAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.PermitPayload(h.list.Payload)
		h.during = func() { h.PermitPayload("") }
		if p := h.runFor(t, time.Minute); len(h.fetched) != 1 || p.Done {
			t.Errorf("permission was withdrawn: %q, %+v", h.fetched, p)
		}
		h = newHost("1")
		h.PermitPayload(h.list.Payload)
		h.locked = errors.New("locked")
		if p := h.runFor(t, 5*time.Minute); len(h.fetched) > 0 || !p.Failed || p.Message != "locked" {
			t.Errorf("a locked host: %q, %+v", h.fetched, p)
		}
		h = newHost("1")
		h.PermitPayload(h.list.Payload)
		h.damaged = "kubelet"
		if p := h.runFor(t, 5*time.Minute); !p.Failed || !strings.Contains(p.Message, "kubelet could not be kept") {
			t.Errorf("a damaged executable: %+v", p)
		}
		h = newHost("1")
		h.PermitPayload(h.list.Payload)
		ctx, stop := context.WithCancel(t.Context())
		h.during = stop
		h.Run(ctx)
		if p := h.Progress(); p.Failed || p.Message != "" || len(h.warnings) > 0 {
			t.Errorf("the agent ends: %+v", p)
		}
	})
}

// TestReportsOfProgress are few.
func TestReportsOfProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.PermitPayload(h.list.Payload)
		slow := &reporting{h: h, bytes: 100}
		h.Fetcher.Registry = slow
		for i := range h.list.Executables {
			h.list.Executables[i].Stored.Size = 100
		}
		h.runFor(t, 10*time.Minute)
		if text := published.FetchProgress.DisplayText(slow.seen); !strings.HasPrefix(text, "fetching executables: ") || h.reports < 30 || h.reports > 40 {
			t.Errorf("%d reports in 300 seconds with 300 reads, %q", h.reports, text)
		}
	})
}

// reporting reads a byte each second.
type reporting struct {
	h     *host
	bytes int
	seen  published.FetchProgress
}

// FetchStored implements Registry.
func (r *reporting) FetchStored(_ context.Context, _ sources.List, x sources.Executable, report func(int64)) ([]byte, error) {
	for i := range r.bytes {
		time.Sleep(time.Second)
		report(int64(i))
		r.seen = r.h.Progress()
	}
	return []byte(x.Name), nil
}

// TestListsThatCannotBeRead change nothing.
func TestListsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		h.PermitPayload(h.list.Payload)
		for i, list := range []func(context.Context) ([]byte, error){
			func(context.Context) ([]byte, error) { return nil, errors.New("sharing violation") },
			func(context.Context) ([]byte, error) { return []byte(`{"schema":7}`), nil },
		} {
			h.List = list
			if p := h.runFor(t, time.Minute); len(h.fetched) > 0 || p.Done {
				t.Error(fmt.Sprint(i), h.fetched, p)
			}
		}
	})
}

// TestNothingIsReadAtRest: a thousand nodes have nothing to fetch for months.
func TestNothingIsReadAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost("1")
		read, list := 0, h.List
		h.List = func(ctx context.Context) ([]byte, error) {
			read++
			return list(ctx)
		}
		if h.runFor(t, time.Hour); read > 0 || h.reports > 0 {
			t.Errorf("the list was read %d times, and %d reports were sent", read, h.reports)
		}
	})
}
