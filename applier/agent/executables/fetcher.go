// Package executables fetches the executables that a host's newest bundle lists, before a bundle that needs them is
// applied. It works beside the node agent, and changes nothing that runs.
package executables

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/payload/sources"
)

// Clock is that of the host.
type Clock interface {
	SinceBoot() time.Duration
	After(d time.Duration) <-chan time.Time
}

// Times.
const (
	// pollInterval is the time between two looks at the list.
	pollInterval = 5 * time.Second
	// firstPause and longestPause lie between two tries.
	firstPause, longestPause = 15 * time.Second, 30 * time.Minute
	// tries is after how many of them without progress the operator need not wait for the host. It is retried.
	tries = 3
	// reportInterval is the time between two reports of progress.
	reportInterval = 10 * time.Second
)

// Fetcher fetches the executables of one host.
type Fetcher struct {
	Registry Registry
	// List returns the content of sources.File in the newest bundle, nil if there is none.
	List func(ctx context.Context) ([]byte, error)
	// Stage keeps the contents that the source has, and returns which of all the host lacks then.
	Stage func(ctx context.Context, all []archive.Content, from archive.Source) ([]bundle.Digest, error)
	Clock Clock
	Log   *slog.Logger
	// Changed is called when Progress has changed, Warn when the operator need not wait any longer.
	Changed func()
	Warn    func(ctx context.Context, message string)
	// Jitter returns a time that differs from host to host.
	Jitter func(time.Duration) time.Duration

	mu        sync.Mutex
	permitted bundle.Digest
	progress  published.FetchProgress
	reported  time.Duration
	ended     int

	// of is the content that list is decoded from.
	of     bundle.Digest
	list   sources.List
	failed int
	next   time.Duration
	logged string
}

// PermitPayload names the payload that the operator permits to fetch; empty for none.
func (f *Fetcher) PermitPayload(payload bundle.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.permitted = payload
}

// CountEnded returns how often all executables of a list were there.
func (f *Fetcher) CountEnded() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// FetchAgain has it looked again at what the host lacks.
func (f *Fetcher) FetchAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.Done = false
}

// Progress returns how far the host is; zero where nothing is permitted.
func (f *Fetcher) Progress() published.FetchProgress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress
}

// Run works until the context ends.
func (f *Fetcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		f.FetchDue(ctx)
		select {
		case <-ctx.Done():
		case <-f.Clock.After(f.Jitter(pollInterval)):
		}
	}
}

// FetchDue fetches what the host lacks, if that is permitted and due.
func (f *Fetcher) FetchDue(ctx context.Context) {
	f.mu.Lock()
	permitted, before := f.permitted, f.progress
	f.mu.Unlock()
	if permitted == "" { // nothing is read at rest
		f.failed, f.next = 0, 0
		f.setProgress(published.FetchProgress{})
		return
	}
	if err := f.readList(ctx); err != nil {
		f.logOnce(err)
		return
	}
	switch {
	case f.list.Payload != permitted:
		f.setProgress(published.FetchProgress{})
		return
	case before.Payload != permitted:
		f.failed, f.next = 0, 0
		f.setProgress(published.FetchProgress{Payload: permitted})
	case before.Done, f.Clock.SinceBoot() < f.next:
		return
	}
	if err := f.fetchMissing(ctx); err != nil && ctx.Err() == nil {
		f.noteFailure(ctx, err)
	}
}

// readList reads the list. A new one is tried at once.
func (f *Fetcher) readList(ctx context.Context) error {
	data, err := f.List(ctx)
	if err != nil {
		return fmt.Errorf("reading %s: %w", sources.File, err)
	}
	of := bundle.Of(data)
	if of == f.of {
		return nil
	}
	l := sources.List{}
	if data != nil {
		if l, err = sources.Decode(data); err != nil {
			return err
		}
	}
	f.of, f.list, f.failed, f.next = of, l, 0, 0
	return nil
}

// fetchMissing fetches what the host lacks.
func (f *Fetcher) fetchMissing(ctx context.Context) error {
	list, p := f.list, f.Progress()
	p = published.FetchProgress{Payload: list.Payload, Failed: p.Failed, Message: p.Message} // until one comes
	all := Missing{Registry: f.Registry, Stage: f.Stage, Log: f.Log, MayFetch: func() bool { return f.isPermitted(list.Payload) }}
	all.Note = func(b Bytes) {
		if b.Kept {
			f.failed, p.Failed, p.Message = 0, false, ""
		}
		p.Present, p.Wanted = b.Present, b.Wanted
		f.setProgress(p)
	}
	if whole, err := all.FetchMissing(ctx, list); err != nil || !whole {
		return err
	}
	f.logged = ""
	f.Log.Info("the executables are on this host", "payload", list.Payload.Short(), "bytes", p.Wanted)
	f.setProgress(published.FetchProgress{Payload: p.Payload, Wanted: p.Wanted, Present: p.Wanted, Done: true})
	return nil
}

func (f *Fetcher) isPermitted(payload bundle.Digest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.permitted == payload
}

// noteFailure has it retried later.
func (f *Fetcher) noteFailure(ctx context.Context, err error) {
	f.failed++
	f.next = f.Clock.SinceBoot() + f.Jitter(min(firstPause<<min(2*(f.failed-1), 16), longestPause))
	text := published.Shorten(bundle.MaskText(err.Error()))
	f.logOnce(err)
	p := f.Progress()
	p.Message = text
	first := f.failed >= tries && !p.Failed
	p.Failed = f.failed >= tries
	f.setProgress(p)
	if first {
		f.Warn(ctx, published.Shorten("executables cannot be fetched from the registry: "+text))
	}
}

func (f *Fetcher) logOnce(err error) {
	if text := bundle.MaskText(err.Error()); text != f.logged {
		f.logged = text
		f.Log.Warn("fetching executables; it is retried", "error", text)
	}
}

// setProgress notes how far the host is. More bytes alone are not reported at once: each report is a write of the Node.
func (f *Fetcher) setProgress(p published.FetchProgress) {
	f.mu.Lock()
	now, before := f.Clock.SinceBoot(), f.progress
	before.Present, before.Wanted = p.Present, p.Wanted
	due := p != before || p != f.progress && now-f.reported >= reportInterval
	if due {
		f.reported = now
	}
	if p != f.progress && p.Done {
		f.ended++
	}
	f.progress = p
	f.mu.Unlock()
	if due {
		f.Changed()
	}
}
