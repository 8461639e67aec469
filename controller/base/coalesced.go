package base

import (
	"context"
	"sync"
	"time"
)

// Coalesced shares readings of a cluster among those who wait for one: a thousand Machines that join would read the
// objects of a thousand Machines a thousand times otherwise.
type Coalesced[T any] struct {
	// Source reads.
	Source func(context.Context) (T, error)

	// mu guards the fields below. Next is the reading that begins when the one that is running has ended.
	mu      sync.Mutex
	next    *shared[T]
	running bool
}

// shared is one reading. Its callers share what was read and do not change it.
type shared[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// readLimit is for one reading. That of the inputs is from a cache, but for the answers of the resolver.
const readLimit = time.Minute

// Read returns a reading that began after the call.
func (s *Coalesced[T]) Read(ctx context.Context) (T, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &shared[T]{done: make(chan struct{})}
	}
	mine := s.next
	if !s.running {
		s.running = true
		go s.readUntilServed(context.WithoutCancel(ctx))
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.value, mine.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// readUntilServed reads until no caller waits.
func (s *Coalesced[T]) readUntilServed(ctx context.Context) {
	for {
		s.mu.Lock()
		now := s.next
		s.next, s.running = nil, now != nil
		s.mu.Unlock()
		if now == nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, readLimit)
		now.value, now.err = s.Source(limited)
		cancel()
		close(now.done)
	}
}
