package controller

import (
	"context"
	"sync"
	"time"

	"wmco/controller/desired"
	"wmco/controller/join"
)

// sharing shares readings of the inputs among those who wait for one: a thousand Machines that join would read the objects of a thousand
// Machines a thousand times otherwise.
type sharing struct {
	read join.Inputs

	// mu guards what is below. Next is the reading that begins when the one that is running has ended.
	mu      sync.Mutex
	next    *shared
	running bool
}

// shared is one reading. What was read is not changed by anybody.
type shared struct {
	done  chan struct{}
	hosts *desired.Hosts
	err   error
}

// readLimit is for one reading, which is from a cache but for the answers of the resolver.
const readLimit = time.Minute

// get implements join.Inputs. It returns a reading that began after the call.
func (s *sharing) get(ctx context.Context) (*desired.Hosts, error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &shared{done: make(chan struct{})}
	}
	mine := s.next
	if !s.running {
		s.running = true
		go s.run(context.WithoutCancel(ctx))
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.hosts, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run reads until nobody waits.
func (s *sharing) run(ctx context.Context) {
	for {
		s.mu.Lock()
		now := s.next
		s.next, s.running = nil, now != nil
		s.mu.Unlock()
		if now == nil {
			return
		}
		limited, cancel := context.WithTimeout(ctx, readLimit)
		now.hosts, now.err = s.read(limited)
		cancel()
		close(now.done)
	}
}
