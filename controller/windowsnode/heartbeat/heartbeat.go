// Package heartbeat tracks for how long node agents have been silent, and which clocks differ.
//
//	Nodes, as they are read --Watch.SilentFor--> how long this process has seen no new sign of life, on its monotonic clock
//	                          `--------------> by how much the clock of a node differs: a hint for people
//
// The time of a heartbeat is the node's own. It is never subtracted from ours to decide something: only whether it has
// changed counts.
package heartbeat

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"wmco/controller/windowsnode"
)

// Tolerance is how much clocks may differ before people are told.
const Tolerance = 5 * time.Minute

// LongestLook is how much of the time between two looks counts at most. A process that runs looks at all Nodes every
// ten minutes; one that was frozen, or could do nothing else but wait for the API server, has observed nothing for
// longer.
const LongestLook = 15 * time.Minute

// Watch remembers the signs of life of all nodes. It may be used by several goroutines.
type Watch struct {
	now     func() time.Time
	elapsed func() time.Duration

	mu    sync.Mutex
	nodes map[string]*sign
}

// sign is the last sign of life of one node.
type sign struct {
	uid types.UID
	// beat is its time by the clock of the node, looked when this process looked last, silent for how long it had seen
	// no other one then.
	beat           time.Time
	looked, silent time.Duration
	// differences are those of the last two signs of life from our clock when they were seen.
	differences []time.Duration
}

// NewWatch returns a watch that has seen nothing. Elapsed is a monotonic clock, now the one that people see.
func NewWatch(now func() time.Time, elapsed func() time.Duration) *Watch {
	return &Watch{now: now, elapsed: elapsed, nodes: map[string]*sign{}}
}

// MonotonicClock returns how long ago it was called. Setting the time does not change that: a time.Time of time.Now has
// a monotonic reading, which time.Since uses (pkg.go.dev/time, Monotonic Clocks).
func MonotonicClock(c clock.PassiveClock) func() time.Duration {
	began := c.Now()
	return func() time.Duration { return c.Since(began) }
}

// SilentFor looks at a Node, and returns for how long this process has seen no new sign of life. It is zero when the
// process sees the Node for the first time. A Node that is older than the one before, from another cache, only begins
// that time again.
func (w *Watch) SilentFor(node windowsnode.Node) time.Duration {
	beat := node.AgentCondition.LastHeartbeatTime.Time
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.elapsed()
	s, known := w.nodes[node.Name]
	switch {
	case !known || s.uid != node.UID:
		s = &sign{uid: node.UID, beat: beat}
		w.nodes[node.Name] = s
		// It may have been written long ago, but not later than now.
		if by := beat.Sub(w.now()); by > 0 {
			s.differences = []time.Duration{by}
		}
	case !s.beat.Equal(beat):
		s.beat, s.silent = beat, 0
		s.differences = append(s.differences[max(0, len(s.differences)-1):], beat.Sub(w.now()))
	default:
		s.silent += min(now-s.looked, LongestLook)
	}
	s.looked = now
	return s.silent
}

// clockDifference returns by how much the clock of the node is ahead of ours, negative if it is behind. A sign of life
// is seen some time after it was written, so each makes the clock look slower than it is: of the last two the better
// one is taken.
func (s *sign) clockDifference() time.Duration {
	if len(s.differences) == 0 {
		return 0
	}
	best := slices.Max(s.differences)
	if best < 0 && len(s.differences) < 2 {
		return 0
	}
	return best
}

// RetainNodes forgets all nodes but these.
func (w *Watch) RetainNodes(nodes map[string]windowsnode.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.nodes, func(name string, _ *sign) bool { _, ok := nodes[name]; return !ok })
}

// Skew is a node, or a host that has none yet, whose clock differs from ours by more than Tolerance.
type Skew struct {
	// Node is the name of the Node, or the address of a host.
	Node string
	// By is positive for a clock that is ahead.
	By time.Duration
}

// String is the difference for people: "win-1 (1h0m behind)".
func (s Skew) String() string { return s.Node + " (" + SkewText(s.By) + ")" }

// SkewText is a difference for people: "1h0m behind".
func SkewText(by time.Duration) string {
	text := strings.TrimSuffix(by.Abs().Round(time.Minute).String(), "0s")
	if by < 0 {
		return text + " behind"
	}
	return text + " ahead"
}

// Fix is what to do about a clock that differs.
const Fix = "check the time service of the host, such as with w32tm /query /status"

// ClockSkews returns the nodes whose clocks differ, by name.
func (w *Watch) ClockSkews() []Skew {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []Skew
	for name, s := range w.nodes {
		if by := s.clockDifference(); by.Abs() > Tolerance {
			list = append(list, Skew{name, by})
		}
	}
	slices.SortFunc(list, func(a, b Skew) int { return cmp.Compare(a.Node, b.Node) })
	return list
}
