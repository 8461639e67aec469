// Package images pulls and pins the images that a bundle lists: the kubelet does not collect a pinned image as garbage.
// It works beside the node agent and changes nothing else on the host. A failed pull is retried, and never changes the
// bundle.
package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Runtime is the container runtime of the host.
type Runtime interface { //nolint:interfacebloat // all that is asked of the runtime, seen at one place
	// FindImage returns what the runtime has of an image; ErrAway where it does not answer.
	FindImage(ctx context.Context, name string) (Image, error)
	// PullImage pulls an image, with credentials for its own registry alone: base64 of user:password, or none. It
	// returns when the image is there, or the context ends.
	PullImage(ctx context.Context, name string, auth bundle.Secret) error
	// PinImage keeps an image that is there from being collected. Its mark shows that it was done here.
	PinImage(ctx context.Context, name string) error
	// ListPinned returns the names that have the mark of PinImage, and UnpinImage takes the mark and the pin from one
	// of them.
	ListPinned(ctx context.Context) ([]string, error)
	UnpinImage(ctx context.Context, name string) error
	// DiskSpace returns the size and the free space of the disk that has the images, in bytes.
	DiskSpace(ctx context.Context) (Disk, error)
}

// Image is what the runtime has of an image.
type Image struct{ Present, Pinned bool }

// Disk is in bytes.
type Disk struct{ Size, Free uint64 }

// ErrAway means that the runtime does not answer: it is stopped, or starts.
var ErrAway = errors.New("containerd does not answer")

// Free space that stays free. The kubelet evicts Pods and collects images below 15 % (imagefs.available and
// imageGCHighThresholdPercent, as rendered).
const (
	// keepFreePercent of the disk has to be free while an image is pulled: below it, the pull is ended.
	keepFreePercent = 20
	// pullNeeds has to be free besides before a pull begins, in bytes. Only its registry knows how large an image is.
	// The largest base image of Windows takes as much compressed and unpacked (windows/server, 3.6 GiB and 8 GiB).
	pullNeeds = 12 << 30
)

// Times.
const (
	// pollInterval is the time between two looks at the list, and at the disk while an image is pulled.
	pollInterval = 5 * time.Second
	// recheckInterval is the time between two looks at images that are there: a pull of a Pod writes the labels of an
	// image again, without the pin.
	recheckInterval = 5 * time.Minute
	// pullLimit is the longest time that one pull may take.
	pullLimit = 30 * time.Minute
	// firstPause and longestPause lie between two tries of one image.
	firstPause, longestPause = 15 * time.Second, 30 * time.Minute
	// tries is after how many of them nothing waits for the image any longer; it is retried.
	tries = 3
	// settledWithin is when nothing waits for a list any longer, however far it is.
	settledWithin = 40 * time.Minute
)

// Clock is that of the host.
type Clock interface {
	SinceBoot() time.Duration
	After(d time.Duration) <-chan time.Time
}

// Keeper keeps the images of one host.
type Keeper struct {
	Runtime Runtime
	// List returns the content of bundle.PinnedImagesFile, nil if there is none.
	List func(ctx context.Context) ([]byte, error)
	// Credentials returns the content of bundle.PinnedCredentialsFile, nil if there is none.
	Credentials func(ctx context.Context) ([]byte, error)
	Clock       Clock
	Log         *slog.Logger
	// Changed is called when Progress has changed, Warn once for each list and image that cannot be pulled.
	Changed func()
	Warn    func(ctx context.Context, message string)
	// Jitter returns a time that differs from host to host.
	Jitter func(time.Duration) time.Duration

	mu       sync.Mutex
	progress published.ImageProgress

	list   bundle.Digest
	images []string
	// auth are the credentials by image, authOf is the digest of the file that they are from.
	auth     map[string]bundle.Secret
	authOf   bundle.Digest
	since    time.Duration
	attempts map[string]attempt
	checkAt  time.Duration
	// released is true once what was pinned and is not listed is unpinned.
	released bool
	logged   string
}

// attempt is how it goes with an image that is not there.
type attempt struct {
	failed int
	next   time.Duration
	why    string
}

// Progress returns how far the list is; zero where there is none.
func (k *Keeper) Progress() published.ImageProgress {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.progress
}

// Run works until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.doNextStep(ctx); err != nil && ctx.Err() == nil && err.Error() != k.logged {
			k.logged = err.Error()
			k.Log.Warn("pinned images; it is retried", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-k.Clock.After(k.Jitter(pollInterval)):
		}
	}
}

// doNextStep reads the list and does the next step: one pull at most, so that a change of the list is seen after it.
func (k *Keeper) doNextStep(ctx context.Context) error {
	if err := k.readList(ctx); err != nil {
		return err
	}
	if err := k.readCredentials(ctx); err != nil {
		return err
	}
	now := k.Clock.SinceBoot()
	if err := k.unpinUnlisted(ctx); err != nil {
		return err
	}
	if len(k.images) == 0 {
		k.setProgress(published.ImageProgress{})
		return nil
	}
	missing, err := k.findMissing(ctx, now)
	if err != nil {
		if k.Progress().List != k.list { // else what was seen holds until it is seen again
			k.reportProgress(len(k.images), bundle.MaskText(err.Error()))
		}
		return err
	}
	k.reportProgress(len(missing), "")
	for _, name := range missing {
		if a := k.attempts[name]; a.next <= now {
			err := k.pullImage(ctx, name)
			k.checkAt = 0
			if ctx.Err() == nil {
				k.noteAttempt(ctx, name, err)
			}
			return nil
		}
	}
	return nil
}

// readList reads the list. One that cannot be read changes nothing.
func (k *Keeper) readList(ctx context.Context) error {
	data, err := k.List(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", bundle.PinnedImagesFile, err)
	}
	list, images := bundle.Digest(""), []string(nil)
	if data != nil {
		list = bundle.Of(data)
		if images, err = bundle.DecodePinnedImages(data); err != nil {
			return err
		}
	}
	if list == k.list && k.attempts != nil {
		return nil
	}
	k.list, k.images, k.since, k.attempts = list, images, k.Clock.SinceBoot(), map[string]attempt{}
	k.checkAt, k.released, k.logged = 0, false, ""
	return nil
}

// readCredentials reads the credentials. With other ones, what was refused is retried at once.
func (k *Keeper) readCredentials(ctx context.Context) error {
	data, err := k.Credentials(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", bundle.PinnedCredentialsFile, err)
	}
	of := bundle.Of(data)
	if of == k.authOf {
		return nil
	}
	k.auth, k.authOf = nil, of
	if data != nil {
		if k.auth, err = bundle.DecodePinnedCredentials(data); err != nil {
			k.Log.Warn("images are pulled without the credentials of the pull secret", "error", err)
		}
	}
	for name, a := range k.attempts {
		a.next = 0
		k.attempts[name] = a
	}
	return nil
}

// unpinUnlisted unpins images that are listed no longer. Without a list and a runtime there is nothing to wait for: a host may
// have none yet.
func (k *Keeper) unpinUnlisted(ctx context.Context) error {
	if k.released {
		return nil
	}
	pinned, err := k.Runtime.ListPinned(ctx)
	if err != nil {
		return fmt.Errorf("listing pinned images: %w", err)
	}
	for _, name := range pinned {
		if slices.Contains(k.images, name) {
			continue
		}
		if err := k.Runtime.UnpinImage(ctx, name); err != nil {
			return fmt.Errorf("unpinning %s: %w", name, err)
		}
		k.Log.Info("image unpinned", "image", name)
	}
	k.released = true
	return nil
}

// findMissing returns the images that are not there, and pins the others. Those that were there are looked at again
// after a while.
func (k *Keeper) findMissing(ctx context.Context, now time.Duration) ([]string, error) {
	var missing []string
	for _, name := range k.images {
		_, failing := k.attempts[name]
		if now < k.checkAt && !failing {
			continue
		}
		image, err := k.Runtime.FindImage(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
		if !image.Present {
			missing = append(missing, name)
			continue
		}
		delete(k.attempts, name) // whoever has pulled it
		if !image.Pinned {
			if err := k.Runtime.PinImage(ctx, name); err != nil {
				return nil, fmt.Errorf("pinning %s: %w", name, err)
			}
			k.Log.Info("image pinned", "image", name)
		}
	}
	if now >= k.checkAt {
		k.checkAt = now + k.Jitter(recheckInterval)
	}
	return missing, nil
}

// pullImage pulls one image, while there is room on the disk.
func (k *Keeper) pullImage(ctx context.Context, name string) error {
	disk, err := k.Runtime.DiskSpace(ctx)
	if err != nil {
		return fmt.Errorf("looking at the disk: %w", err)
	}
	if disk.Free < disk.keptFree()+pullNeeds {
		return &roomError{disk, pullNeeds}
	}
	k.Log.Info("pulling an image", "image", name)
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- k.Runtime.PullImage(limited, name, k.auth[name]) }()
	begun := k.Clock.SinceBoot()
	for {
		select {
		case err := <-ended:
			if cause := context.Cause(limited); cause != nil {
				return cause
			}
			return err
		case <-k.Clock.After(pollInterval):
		}
		if disk, err := k.Runtime.DiskSpace(ctx); err == nil && disk.Free < disk.keptFree() {
			stop(&roomError{disk, 0})
		}
		if k.Clock.SinceBoot()-begun > pullLimit {
			stop(fmt.Errorf("it was not pulled within %s", pullLimit))
		}
	}
}

func (d Disk) keptFree() uint64 { return d.Size / 100 * keepFreePercent }

// roomError means that there is too little room on the disk.
type roomError struct {
	disk  Disk
	needs uint64
}

func (e *roomError) Error() string {
	return fmt.Sprintf("the disk has %d MiB free, and pulls of pinned images leave %d %% of it (%d MiB) free: %d MiB are needed", e.disk.Free>>20, keepFreePercent, e.disk.keptFree()>>20, (e.disk.keptFree()+e.needs)>>20)
}

// noteAttempt notes how a pull has ended.
func (k *Keeper) noteAttempt(ctx context.Context, name string, err error) {
	if err == nil {
		k.Log.Info("image pulled", "image", name)
		delete(k.attempts, name)
		return
	}
	a := k.attempts[name]
	if errors.Is(err, ErrAway) {
		a.next = k.Clock.SinceBoot() + pollInterval
		k.attempts[name] = a
		return
	}
	var room *roomError
	a.failed++
	if errors.As(err, &room) {
		a.failed = max(a.failed, tries) // a disk does not grow by waiting
	}
	a.why = bundle.MaskText(err.Error())
	a.next = k.Clock.SinceBoot() + k.Jitter(min(firstPause<<min(2*(a.failed-1), 16), longestPause))
	first := a.failed >= tries && k.attempts[name].failed < tries
	k.attempts[name] = a
	k.Log.Warn("pulling an image", "image", name, "error", a.why, "tries", a.failed)
	if first {
		k.Warn(ctx, published.Shorten(fmt.Sprintf("the pinned image %s is not on this node; it is retried: %s", name, a.why)))
	}
}

// reportProgress notes how far the list is.
func (k *Keeper) reportProgress(missing int, why string) {
	p := published.ImageProgress{List: k.list, Wanted: len(k.images), Present: len(k.images) - missing, Message: why}
	given := 0
	for _, name := range k.images {
		a := k.attempts[name]
		if a.failed >= tries {
			given++
		}
		if p.Message == "" && a.why != "" {
			p.Message = name + ": " + a.why
		}
	}
	p.Message = published.Shorten(p.Message)
	p.Settled = given >= missing || k.Clock.SinceBoot()-k.since >= settledWithin
	k.setProgress(p)
}

func (k *Keeper) setProgress(p published.ImageProgress) {
	k.mu.Lock()
	changed := p != k.progress
	k.progress = p
	k.mu.Unlock()
	if changed {
		k.Changed()
	}
}
