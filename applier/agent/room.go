package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

const (
	// reserve is how much room is waited for beside what the plan writes, in bytes: the records of the run, and what
	// else is written at the same time.
	reserve = 32 << 20
	// roomInterval is the time between two looks at the room that is waited for.
	roomInterval = 30 * time.Second
	// triedFull is how often a run counts as tried that was rolled back because the disk was full: it has stopped
	// services, so that the first pause before the next one is half a minute.
	triedFull = 4
)

// roomError means that drive C: has not enough room for a bundle.
type roomError struct {
	// needs is how many bytes have to be free before it is retried, has how many are.
	needs, has int64
	// why is what could not be written; nil if nothing was begun.
	why error
}

func (e *roomError) Error() string {
	text := fmt.Sprintf("waits for room on drive C: needs %d MiB, has %d MiB", (e.needs+1<<20-1)>>20, e.has>>20)
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	return text
}

func (e *roomError) Is(target error) bool { return target == applier.ErrDiskFull }

func (e *roomError) Unwrap() error { return e.why }

// bytesToWrite returns how many bytes a plan writes: its files, each beside the one that it replaces, and the contents
// that are kept.
func bytesToWrite(r archive.Request, o protocol.Observation) int64 {
	var size int64
	for _, x := range o.Actions {
		size += x.Size
	}
	missing := map[bundle.Digest]bool{}
	for _, m := range o.Missing {
		missing[m.Digest] = true
	}
	for _, c := range r.Source.Contents() {
		if missing[c.Digest] {
			size += c.Stored
		}
	}
	return size
}

// checkRoom returns a *roomError if a plan cannot be made for want of room: nothing is stopped for it. Where the room
// is not known, it is tried.
func (a *Agent) checkRoom(ctx context.Context, r archive.Request, o protocol.Observation) error {
	f := &a.follower
	if f.size = bytesToWrite(r, o); f.size == 0 {
		return nil
	}
	free, err := a.Engine.Host.Free(ctx)
	if err != nil || free >= f.size {
		return nil //nolint:nilerr // the write shows whether there is room
	}
	return &roomError{needs: f.size + reserve, has: free}
}

// awaitRoom has what failed for want of room tried again when there is room.
func (a *Agent) awaitRoom(ctx context.Context, err error) *roomError {
	f := &a.follower
	var room *roomError
	if !errors.As(err, &room) {
		room = &roomError{needs: f.size + reserve, why: err}
		room.has, _ = a.Engine.Host.Free(ctx) // none where it is not known
	}
	f.room, f.saidAt = room, a.sinceBoot()
	return room
}

// hasRoom reports whether a run that waits for room is tried now. State that was published since, and requests of a person, do
// not wait. The room in the report is as old as the longest pause between two tries.
func (a *Agent) hasRoom(ctx context.Context, n Node) bool {
	f := &a.follower
	if f.room == nil || n.Desired != f.text || n.Retry != f.report.Retry {
		return true
	}
	free, err := a.Engine.Host.Free(ctx)
	if err != nil || free >= f.room.needs {
		return true
	}
	f.retryAt = a.sinceBoot() + roomInterval
	if a.sinceBoot()-f.saidAt >= lastRetry {
		f.room.has, f.saidAt = free, a.sinceBoot()
		f.report.Message = f.room.Error()
	}
	return false
}
