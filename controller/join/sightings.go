package join

import (
	"sync"
	"time"
)

// sightings are when this process saw things first, by a monotonic clock: setting the clock of a computer changes nothing. A new process begins
// again. The zero value has none.
type sightings struct {
	mu  sync.Mutex
	all map[string]sighting
}

// sighting is what was seen, and when first.
type sighting struct {
	what  string
	first time.Duration
}

// since notes what is seen under a name at a time of the monotonic clock, and returns for how long it has been the same.
func (s *sightings) since(name, what string, now time.Duration) time.Duration {
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

// forget ends what was seen under a name.
func (s *sightings) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}
