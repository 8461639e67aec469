package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wmco/applier/agent/images"
	"wmco/bundle"
	"wmco/bundle/published"
)

// oneImage is a runtime that has what was pulled.
type oneImage struct {
	mu      sync.Mutex
	present bool
}

func (o *oneImage) FindImage(context.Context, string) (images.Image, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return images.Image{Present: o.present, Pinned: o.present}, nil
}

func (o *oneImage) PullImage(context.Context, string, bundle.Secret) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.present = true
	return nil
}

func (*oneImage) PinImage(context.Context, string) error       { return nil }
func (*oneImage) ListPinned(context.Context) ([]string, error) { return nil, nil }
func (*oneImage) UnpinImage(context.Context, string) error     { return nil }
func (*oneImage) DiskSpace(context.Context) (images.Disk, error) {
	return images.Disk{Size: 100 << 30, Free: 90 << 30}, nil
}

// TestPinnedImagesAreReported from the list in the bundle until they are there, and not by an agent that pulls none.
func TestPinnedImagesAreReported(t *testing.T) {
	w := newWorld(t)
	list, err := bundle.EncodePinnedImages([]string{"a.example.com/x@sha256:" + strings.Repeat("ab", 32)})
	if err != nil {
		t.Fatal(err)
	}
	w.change(bundle.PinnedImagesFile, string(list))
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || got.Has(published.FeaturePinnedImages) || got.Images != (published.ImageProgress{}) {
		t.Fatalf("an agent without a container runtime reports %+v", got)
	}
	w.Images = &oneImage{}
	if !w.keepsImages() {
		t.Fatal("the agent pulls no images")
	}
	w.images = w.newImageKeeper(w.changed)
	if got := w.turn(); !got.Has(published.FeaturePinnedImages) || !slices.IsSorted(got.Features) || got.Images != (published.ImageProgress{}) {
		t.Fatalf("before the list was read: %+v", got)
	}
	if text, err := w.readFile(bundle.PinnedImagesFile)(t.Context()); err != nil || string(text) != string(list) {
		t.Fatalf("the list is %q (%v)", text, err)
	}
	running, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { w.images.Run(running) })
	for end := time.Now().Add(10 * time.Second); w.images.Progress().Present == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	stop()
	done.Wait()
	want := published.ImageProgress{List: bundle.Of(list), Wanted: 1, Present: 1, Settled: true}
	if got := w.turn(); got.Images != want {
		t.Errorf("%+v, want %+v", got.Images, want)
	}
}

func TestAnAgentThatOnlyReportsPullsNothing(t *testing.T) {
	w := newWorld(t)
	w.Images = &oneImage{}
	w.Options.ReportOnly = true
	if w.keepsImages() {
		t.Error("images are pulled")
	}
}

func TestTheConditionSaysWhichImagesAreMissing(t *testing.T) {
	r := published.Report{State: published.StateApplied, Desired: bundle.Of(nil), Images: published.ImageProgress{Wanted: 5, Present: 2, Message: "a: denied"}}
	if got := conditionText(r); !strings.HasSuffix(got, " is applied; 2 of 5 pinned images on this node; a: denied") {
		t.Error(got)
	}
	r.Images.Present = 5
	if got := conditionText(r); strings.Contains(got, "image") {
		t.Error(got)
	}
}
