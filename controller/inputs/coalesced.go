package inputs

import (
	"context"
	"sync"
	"time"

	"wmco/controller/inputs/desired"
)

// Coalesced shares readings of the inputs among those who wait for one: a thousand Machines that join would read the objects of a thousand
// Machines a thousand times otherwise.
type Coalesced struct {
	// Source reads them.
	Source func(context.Context) (*desired.Hosts, error)

	// mu guards what is below. Next is the reading that begins when the one that is running has ended.
	mu      sync.Mutex
	next    *shared
	running bool
}

// shared is one reading. Its callers share what was read and do not change it.
type shared struct {
	done  chan struct{}
	hosts *desired.Hosts
	err   error
}

// readLimit is for one reading, which is from a cache but for the answers of the resolver.
const readLimit = time.Minute

// Read returns a reading that began after the call.
func (s *Coalesced) Read(ctx context.Context) (*desired.Hosts, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &shared{done: make(chan struct{})}
	}
	mine := s.next
	if !s.running {
		s.running = true
		go s.readUntilServed(context.WithoutCancel(ctx))
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.hosts, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readUntilServed reads until no caller waits.
func (s *Coalesced) readUntilServed(ctx context.Context) {
	for {
		s.mu.Lock()
		now := s.next
		s.next, s.running = nil, now != nil
		s.mu.Unlock()
		if now == nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, readLimit)
		now.hosts, now.err = s.Source(limited)
		cancel()
		close(now.done)
	}
}
