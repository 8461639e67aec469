package configure

import (
	"sync"
	"time"
)

// Sightings remember for how long this process has seen something, on a monotonic clock. The zero value is empty.
type Sightings struct {
	mu  sync.Mutex
	all map[string]sighting
}

// sighting is what was seen, and when it was first seen.
type sighting struct {
	what  string
	first time.Duration
}

// SeenFor records what is seen under a name at a time of the monotonic clock, and returns for how long it has been the
// same.
func (s *Sightings) SeenFor(name, what string, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]sighting{}
	}
	if seen, ok := s.all[name]; !ok || seen.what != what {
		s.all[name] = sighting{what, now}
	}
	return now - s.all[name].first
}

// ForgetHost deletes the sighting under a name.
func (s *Sightings) ForgetHost(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}
