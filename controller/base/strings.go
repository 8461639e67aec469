package base

import "sync"

const (
	// longestShared is the length in bytes of the longest string that is shared: longer ones, such as a layer or a report, are of one node.
	longestShared = 128
	// mostShared is how many strings are known at a time: those of a few thousand nodes.
	mostShared = 16384
)

// sharedStrings gives equal strings one place in memory: the keys and most values of labels and annotations are the same on all Nodes, and each Node that is
// read has its own copies. What it knows is forgotten when that is too much, so that Nodes that are gone do not stay. It may be used by several
// goroutines; the zero value knows no string.
type sharedStrings struct {
	mu    sync.Mutex
	known map[string]string
}

// shareString returns an equal string, which has the memory of the first one.
func (s *sharedStrings) shareString(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shareLocked(text)
}

func (s *sharedStrings) shareLocked(text string) string {
	if len(text) > longestShared {
		return text
	}
	if known, ok := s.known[text]; ok {
		return known
	}
	if s.known == nil || len(s.known) >= mostShared {
		s.known = map[string]string{}
	}
	s.known[text] = text
	return text
}

// shareMap returns an equal map of shared strings; nil for nil.
func (s *sharedStrings) shareMap(all map[string]string) map[string]string {
	if all == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := make(map[string]string, len(all))
	for key, value := range all {
		shared[s.shareLocked(key)] = s.shareLocked(value)
	}
	return shared
}
