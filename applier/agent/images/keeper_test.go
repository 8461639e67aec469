package images

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
)

var digest = "@sha256:" + strings.Repeat("ab", 32)

func image(name string) string { return "a.example.com/" + name + digest }

// fakeRuntime has images, and refuses some.
type fakeRuntime struct {
	present map[string]bool
	pinned  map[string]bool
	// refused are the errors of pulls, pulls is what was asked for.
	refused map[string]error
	pulls   []string
	// auths are the credentials of each pull.
	auths []bundle.Secret
	// away is the error of every question.
	away error
	disk Disk
	// pulling is called during a pull; the pull goes on until it returns or the context ends.
	pulling func(ctx context.Context)
}

func (f *fakeRuntime) FindImage(_ context.Context, name string) (Image, error) {
	return Image{f.present[name], f.pinned[name]}, f.away
}

func (f *fakeRuntime) PullImage(ctx context.Context, name string, auth bundle.Secret) error {
	f.pulls, f.auths = append(f.pulls, name), append(f.auths, auth)
	if f.pulling != nil {
		f.pulling(ctx)
	}
	if err := errors.Join(f.refused[name], f.away, ctx.Err()); err != nil {
		return err
	}
	f.present[name] = true
	return nil
}

func (f *fakeRuntime) PinImage(_ context.Context, name string) error {
	f.pinned[name] = true
	return f.away
}

func (f *fakeRuntime) ListPinned(context.Context) (names []string, err error) {
	for name, pinned := range f.pinned {
		if pinned {
			names = append(names, name)
		}
	}
	return names, f.away
}

func (f *fakeRuntime) UnpinImage(_ context.Context, name string) error {
	f.pinned[name] = false
	return f.away
}

func (f *fakeRuntime) DiskSpace(context.Context) (Disk, error) { return f.disk, f.away }

// bubbleClock is the time of a bubble of testing/synctest, which passes while everybody waits.
type bubbleClock struct{ booted time.Time }

func (c bubbleClock) SinceBoot() time.Duration             { return time.Since(c.booted) }
func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// host is a keeper with what it works on.
type host struct {
	*Keeper
	runtime  *fakeRuntime
	warnings []string
	list     []byte
	// credentials is the content of the file with them.
	credentials []byte
}

func newHost(t *testing.T, names ...string) *host {
	t.Helper()
	h := &host{
		runtime: &fakeRuntime{present: map[string]bool{}, pinned: map[string]bool{}, refused: map[string]error{}, disk: Disk{Size: 100 << 30, Free: 90 << 30}},
	}
	h.want(t, names...)
	h.Keeper = &Keeper{
		Runtime: h.runtime, Clock: bubbleClock{time.Now().Add(-time.Hour)}, Log: slog.New(slog.DiscardHandler), Changed: func() {}, Jitter: func(d time.Duration) time.Duration { return d },
		List: func(context.Context) ([]byte, error) { return h.list, nil }, Credentials: func(context.Context) ([]byte, error) { return h.credentials, nil },
		Warn: func(_ context.Context, message string) { h.warnings = append(h.warnings, message) },
	}
	return h
}

// want changes the list; without names there is none.
func (h *host) want(t *testing.T, names ...string) {
	t.Helper()
	h.list = nil
	if len(names) == 0 {
		return
	}
	var err error
	if h.list, err = bundle.EncodePinnedImages(names); err != nil {
		t.Fatal(err)
	}
}

// work does the steps for so long.
func (h *host) work(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pollInterval) {
		_ = h.doNextStep(t.Context()) // errors are in the progress
	}
}

func (h *host) wantProgress(t *testing.T, want published.ImageProgress) {
	t.Helper()
	if len(h.list) > 0 {
		want.List = bundle.Of(h.list)
	}
	if diff := cmp.Diff(want, h.Progress()); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestImagesArePulledOneAfterTheOtherAndPinned(t *testing.T) {
	synctest.Test(t, imagesArePulledOneAfterTheOtherAndPinned)
}

func imagesArePulledOneAfterTheOtherAndPinned(t *testing.T) {
	t.Helper()
	a, b, c := image("a"), image("b"), image("c")
	h := newHost(t, a, b, c)
	h.runtime.present[b] = true // a Pod has pulled it
	h.work(t, time.Minute)
	h.wantProgress(t, published.ImageProgress{Wanted: 3, Present: 3, Settled: true})
	if diff := cmp.Diff([]string{a, c}, h.runtime.pulls); diff != "" {
		t.Errorf("pulls (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{a: true, b: true, c: true}, h.runtime.pinned); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
	// A pull of a Pod takes the labels off, and a person removes an image.
	h.runtime.pinned[b] = false
	delete(h.runtime.present, c)
	h.work(t, recheckInterval+time.Minute)
	if !h.runtime.pinned[b] || !h.runtime.present[c] || len(h.runtime.pulls) != 3 {
		t.Errorf("not restored: %+v", h.runtime)
	}
	// One leaves the list, then the list goes.
	h.want(t, a, c)
	h.work(t, time.Minute)
	if diff := cmp.Diff(map[string]bool{a: true, b: false, c: true}, h.runtime.pinned); diff != "" {
		t.Errorf("pinned after a change (-want +got):\n%s", diff)
	}
	h.want(t)
	h.work(t, time.Minute)
	if slices.Contains([]bool{h.runtime.pinned[a], h.runtime.pinned[c]}, true) || !h.runtime.present[a] {
		t.Errorf("without a list: %+v", h.runtime)
	}
	h.wantProgress(t, published.ImageProgress{})
}

// TestAnImageThatCannotBePulled holds up neither the others nor, after three tries, the node; and it is retried, less and less often.
func TestAnImageThatCannotBePulled(t *testing.T) { synctest.Test(t, anImageThatCannotBePulled) }

func anImageThatCannotBePulled(t *testing.T) {
	t.Helper()
	a, b := image("a"), image("b")
	h := newHost(t, a, b)
	h.runtime.refused[a] = errors.New("https://user:password@a.example.com/v2/: denied")
	h.work(t, 30*time.Second)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 1, Message: a + ": https://****:****@a.example.com/v2/: denied"})
	if len(h.warnings) > 0 {
		t.Errorf("warnings %q after two tries", h.warnings)
	}
	h.work(t, 2*time.Minute)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 1, Settled: true, Message: a + ": https://****:****@a.example.com/v2/: denied"})
	h.work(t, 24*time.Hour)
	if tried := len(h.runtime.pulls); tried < 40 || tried > 60 {
		t.Errorf("%d pulls within a day", tried)
	}
	if len(h.warnings) != 1 || !strings.Contains(h.warnings[0], a) || strings.Contains(h.warnings[0], "password") {
		t.Errorf("warnings %q", h.warnings)
	}
	delete(h.runtime.refused, a)
	h.work(t, time.Hour)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 2, Settled: true})
}

// TestNothingIsPulledOntoAFullDisk: not begun without room, and ended when it gets scarce.
func TestNothingIsPulledOntoAFullDisk(t *testing.T) { synctest.Test(t, nothingIsPulledOntoAFullDisk) }

func nothingIsPulledOntoAFullDisk(t *testing.T) {
	t.Helper()
	a := image("a")
	h := newHost(t, a)
	h.runtime.disk.Free = 31 << 30
	h.work(t, time.Minute)
	const full = "the disk has 31744 MiB free, and pulls of pinned images leave 20 % of it (20480 MiB) free: 32768 MiB are needed"
	h.wantProgress(t, published.ImageProgress{Wanted: 1, Settled: true, Message: a + ": " + full})
	if len(h.runtime.pulls) > 0 || len(h.warnings) != 1 {
		t.Errorf("pulls %q, warnings %q", h.runtime.pulls, h.warnings)
	}
	h = newHost(t, a)
	h.runtime.pulling = func(ctx context.Context) {
		h.runtime.disk.Free = 19 << 30
		<-ctx.Done()
	}
	h.work(t, time.Minute)
	if got := h.Progress(); !strings.Contains(got.Message, "19456 MiB free") || !got.Settled || h.runtime.present[a] || len(h.runtime.pulls) != 1 {
		t.Errorf("%+v, pulls %q", got, h.runtime.pulls)
	}
}

func TestAPullThatDoesNotEndIsEnded(t *testing.T) { synctest.Test(t, aPullThatDoesNotEndIsEnded) }

func aPullThatDoesNotEndIsEnded(t *testing.T) {
	t.Helper()
	a, b := image("a"), image("b")
	h := newHost(t, a, b)
	h.runtime.pulling = func(ctx context.Context) {
		if h.runtime.pulls[len(h.runtime.pulls)-1] == a {
			<-ctx.Done()
		}
	}
	h.work(t, pullLimit+time.Minute)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 1, Message: fmt.Sprintf("%s: it was not pulled within %s", a, pullLimit)})
	h.work(t, settledWithin-pullLimit)
	if !h.Progress().Settled {
		t.Error("the list is never settled")
	}
}

// TestContainerdThatRestarts changes nothing in the reports, and costs no tries.
func TestContainerdThatRestarts(t *testing.T) { synctest.Test(t, containerdThatRestarts) }

func containerdThatRestarts(t *testing.T) {
	t.Helper()
	a, b := image("a"), image("b")
	h := newHost(t, a, b)
	h.runtime.away = fmt.Errorf("%w: the pipe is not there", ErrAway)
	h.work(t, 10*time.Minute)
	if got := h.Progress(); got != (published.ImageProgress{}) {
		t.Errorf("progress of a host without containerd: %+v", got)
	}
	h.runtime.away = nil
	h.runtime.pulling = func(context.Context) { h.runtime.away = ErrAway }
	h.work(t, 2*pollInterval)
	h.runtime.away, h.runtime.pulling = nil, nil
	h.work(t, time.Minute)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 2, Settled: true})
	h.runtime.away = ErrAway
	h.work(t, 10*time.Minute)
	h.wantProgress(t, published.ImageProgress{Wanted: 2, Present: 2, Settled: true})
	if len(h.warnings) > 0 {
		t.Errorf("warnings %q", h.warnings)
	}
}

// TestCredentialsOfImages: each image is pulled with its own ones or none, and one that was refused is tried at once with other ones. Credentials that
// cannot be read keep no other image.
func TestCredentialsOfImages(t *testing.T) { synctest.Test(t, credentialsOfImages) }

func credentialsOfImages(t *testing.T) {
	t.Helper()
	a, b := image("a"), image("b")
	auth := func(text string) bundle.Secret {
		return bundle.NewSecret(base64.StdEncoding.EncodeToString([]byte(text)))
	}
	give := func(h *host, secret bundle.Secret) {
		t.Helper()
		var err error
		if h.credentials, err = bundle.EncodePinnedCredentials([]bundle.PinnedCredential{{Auth: secret, Images: []string{b}}}); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(t, a, b)
	give(h, auth("user:old"))
	h.runtime.refused[b] = errors.New("denied")
	h.work(t, 10*time.Second)
	if diff := cmp.Diff([]string{"", auth("user:old").Reveal()}, revealed(h.runtime.auths)); diff != "" {
		t.Fatalf("credentials of pulls (-want +got):\n%s", diff)
	}
	h.work(t, 24*time.Hour)
	tried := len(h.runtime.pulls)
	delete(h.runtime.refused, b)
	give(h, auth("user:new"))
	h.work(t, 2*pollInterval)
	if got := revealed(h.runtime.auths); len(got) != tried+1 || got[tried] != auth("user:new").Reveal() || !h.runtime.present[b] {
		t.Errorf("%d pulls after %d, the last one with other credentials: %t", len(got), tried, got[len(got)-1] != auth("user:old").Reveal())
	}
	h = newHost(t, a, b)
	h.credentials = []byte("{")
	h.work(t, time.Minute)
	if got := revealed(h.runtime.auths); !h.runtime.present[a] || !h.runtime.present[b] || got[0]+got[1] != "" {
		t.Errorf("with credentials that cannot be read: %+v", h.runtime.present)
	}
}

func revealed(list []bundle.Secret) (all []string) {
	for _, s := range list {
		all = append(all, s.Reveal())
	}
	return all
}

func TestAListThatCannotBeReadChangesNothing(t *testing.T) {
	synctest.Test(t, aListThatCannotBeReadChangesNothing)
}

func aListThatCannotBeReadChangesNothing(t *testing.T) {
	t.Helper()
	a := image("a")
	h := newHost(t, a)
	h.work(t, time.Minute)
	before := h.Progress()
	h.list = []byte("{")
	h.work(t, time.Minute)
	if !h.runtime.pinned[a] || h.Progress() != before {
		t.Errorf("%+v %+v", h.runtime.pinned, h.Progress())
	}
}
