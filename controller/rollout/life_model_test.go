package rollout

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"wmco/internal/test/seed"
)

// The model of the life of a node (docs/architecture.md): removal, join, upgrade, adoption and rollout work on the same hosts, in any order.
//
//	seed --randomLife--> events --lifeWorld.play--> Reconcile of the controllers, agents, kubelets, hosts, people
//	                        ^                          '--settle--> the law: each node is at rest, or a person is told what to do
//	                        '------- shortest -------------- fails
//
// The controllers, the planner, its executor and what renders are those of the operator. Hosts, node agents, kubelets and pods are small stand-ins, the API
// server is controller-runtime's fake client, and no watch decides when a controller is called: each is called at any time. Machines, certificates,
// maintenance windows, pinned images, bundles that do not work and caches that are behind are not in the model.

// lifeVariable is how many events TestTheLifeOfNodes plays.
const lifeVariable = "WMCO_LIFE_STEPS"

// lifeEvent is one thing that happens. Events name the host by its number, and carry all that was chosen at random: any part of a list can be played.
type lifeEvent struct {
	what  string
	host  int
	value int
}

// lifeWeights are how often each event happens: first what the cluster and its hosts do by themselves, then what people and failures do.
var lifeWeights = []struct {
	what   string
	weight int
	values int
}{
	{"join", 14, 1}, {"node", 14, 1}, {"publish", 14, 1}, {"drain", 8, 1}, {"agent", 18, 1}, {"kubelet", 8, 1}, {"time", 10, 40},
	{"entry", 4, 1},                                      // of windows-instances is removed, or there again
	{"inputs", 2, lifeVariants},                          // other settings of the nodes
	{"operator", 2, 2},                                   // another process, of this version or of another one
	{"minor", 1, 2},                                      // another minor version of the cluster
	{"budget", 3, 1},                                     // a PodDisruptionBudget that allows nothing, or again something
	{"power", 3, 1},                                      // the host is off, or on again
	{"slow", 2, 4},                                       // the agent does nothing for a while
	{"lost", 3, 4},                                       // its next reports do not arrive
	{"stop", 1, 1},                                       // its service is stopped
	{"existing", 3, 2}, {"adopt", 2, 1}, {"pause", 1, 2}, // a node of the existing operator, whose upgrade was interrupted; the rollout is paused
}

// randomLife returns some events. At their end, what keeps nodes from their rest stays in half of the lists.
func randomLife(r *rand.Rand) []lifeEvent {
	total := 0
	for _, w := range lifeWeights {
		total += w.weight
	}
	events := []lifeEvent{{"entry", 0, 0}, {"entry", 1, 0}}
	if r.IntN(2) == 0 {
		events = append(events, lifeEvent{"settle", 0, 0})
	}
	for range 60 + r.IntN(200) {
		at := r.IntN(total)
		i := 0
		for ; at >= lifeWeights[i].weight; i++ {
			at -= lifeWeights[i].weight
		}
		events = append(events, lifeEvent{lifeWeights[i].what, r.IntN(lifeHosts), r.IntN(lifeWeights[i].values)})
	}
	if r.IntN(2) == 0 {
		events = append(events, lifeEvent{"clear", 0, 0})
	}
	return events
}

// TestTheLifeOfNodes: when events end, each node is Joined with its wanted bundle, or deleted, or its state names what a person has to do. Each
// processor plays its part of the lives.
func TestTheLifeOfNodes(t *testing.T) {
	steps, err := strconv.Atoi(os.Getenv(lifeVariable))
	if err != nil {
		steps = 1_000
	}
	first, err := strconv.ParseUint(os.Getenv(seed.Variable), 10, 64)
	if err != nil {
		first = 1
	}
	counts, lives := map[string]int{}, uint64(0)
	var mu sync.Mutex
	t.Run("parts", func(t *testing.T) {
		parts := runtime.GOMAXPROCS(0)
		for part := range parts {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				own, number := map[string]int{}, first+uint64(part)
				for left := steps / parts; left > 0; number += uint64(parts) {
					left -= playRandomLife(t, number, own)
				}
				mu.Lock()
				defer mu.Unlock()
				for end, n := range own {
					counts[end] += n
				}
				lives += (number - first) / uint64(parts)
			})
		}
	})
	t.Logf("%s=%d, %d lives; how nodes ended: %v", seed.Variable, first, lives, counts)
	for _, end := range []string{endJoined, endGone, endForeign, endInterrupted, endOff, endDrain} {
		if counts[end] == 0 && lives > 100 {
			t.Errorf("no node ended as %q", end)
		}
	}
}

// playRandomLife plays the life of a number, and returns how many events it has.
func playRandomLife(t *testing.T, number uint64, counts map[string]int) int {
	events := randomLife(rand.New(rand.NewPCG(number, 0))) //nolint:gosec // no secret
	if why := playLife(t, events, counts); why != "" {
		short, why := shortestLife(t, events, why)
		t.Fatalf("%s=%d: %s\nafter\n%s", seed.Variable, number, why, describeLife(short))
	}
	return len(events)
}

// playLife plays events, and returns which law is broken; empty if none is.
func playLife(t *testing.T, events []lifeEvent, counts map[string]int) (why string) {
	defer func() {
		switch broken := recover().(type) {
		case nil:
		case brokenLaw:
			why = string(broken)
		default:
			panic(broken)
		}
	}()
	w := newLifeWorld(t)
	for _, e := range events {
		w.play(e)
	}
	for _, end := range w.settle() {
		counts[end]++
	}
	return ""
}

// mostReplays is how often events are played to find a shorter list that breaks a law.
const mostReplays = 150

// shortestLife removes events while a law stays broken, first many at once.
func shortestLife(t *testing.T, events []lifeEvent, why string) ([]lifeEvent, string) {
	replays := 0
	for part := len(events) / 2; part > 0 && replays < mostReplays; part /= 2 {
		for at := 0; at+part <= len(events) && replays < mostReplays; replays++ {
			fewer := slices.Delete(slices.Clone(events), at, at+part)
			if still := playLife(t, fewer, map[string]int{}); still != "" {
				events, why = fewer, still
			} else {
				at += part
			}
		}
	}
	return events, why
}

// describeLife returns the events, as a test has them.
func describeLife(events []lifeEvent) string {
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintf(&text, "{%q, %d, %d}, ", e.what, e.host, e.value)
	}
	return text.String()
}

// TestNodesFollowInAClusterOfAnUnknownVersion: those that have joined follow the inputs with the newest kubelet, and no host joins.
func TestNodesFollowInAClusterOfAnUnknownVersion(t *testing.T) {
	w := newLifeWorld(t)
	for _, e := range []lifeEvent{{"entry", 0, 0}, {"settle", 0, 0}, {"minor", 0, lifeUnknown}, {"inputs", 0, 1}} {
		w.play(e)
	}
	if ends := w.settle(); ends[0] != endJoined {
		t.Errorf("%q", ends)
	}
	w.play(lifeEvent{"entry", 1, 0})
	for range settleRounds {
		w.join(w.hosts[1])
	}
	if w.hosts[1].digest != "" {
		t.Error("a host joins a cluster of a version that is not supported")
	}
}

// TestLivesThatWereStuck plays what has kept nodes from their rest for ever, in the fewest events.
func TestLivesThatWereStuck(t *testing.T) {
	for name, events := range map[string][]lifeEvent{
		"the inputs change in a removal that is taken back": {
			{"entry", 0, 0}, {"entry", 1, 0}, {"settle", 0, 0}, {"entry", 0, 0}, {"node", 0, 0}, {"entry", 0, 0}, {"inputs", 0, 2},
		},
		"the operator is exchanged while a node joins": {
			{"entry", 0, 0}, {"join", 0, 0}, {"kubelet", 0, 0}, {"join", 0, 0}, {"join", 0, 0}, {"agent", 0, 0}, {"operator", 0, 1},
		},
		"an agent reports before its node is marked": {{"entry", 0, 0}, {"join", 0, 0}, {"kubelet", 0, 0}, {"agent", 0, 0}, {"join", 0, 0}, {"join", 0, 0}},
		"a node joins again that waited for its turn": {
			{"entry", 0, 0}, {"entry", 1, 0}, {"settle", 0, 0}, {"stop", 1, 0}, {"power", 1, 0}, {"time", 2, 27}, {"power", 1, 0}, {"operator", 1, 1}, {"existing", 2, 1}, {"time", 2, 15}, {"time", 1, 18}, {"join", 2, 0},
			{"publish", 1, 0}, {"node", 1, 0}, {"node", 1, 0}, {"time", 0, 23}, {"publish", 2, 0}, {"entry", 1, 0}, {"node", 1, 0}, {"node", 1, 0}, {"node", 1, 0}, {"entry", 1, 0}, {"node", 1, 0},
		},
		"the operator is exchanged while a node is adopted": {
			{"existing", 2, 0}, {"adopt", 2, 0}, {"join", 2, 0}, {"node", 2, 0}, {"publish", 2, 0}, {"operator", 2, 1},
		},
		"a canary needs the place of a node that the existing operator left cordoned": {
			{"existing", 2, 0}, {"entry", 2, 0}, {"adopt", 2, 0}, {"existing", 0, 0}, {"entry", 2, 0}, {"adopt", 0, 0},
		},
		"the existing operator has ended in an upgrade, with the version removed": {{"existing", 0, 1}},
		"the existing operator has ended in an upgrade":                           {{"existing", 0, 0}, {"adopt", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if why := playLife(t, events, map[string]int{}); why != "" {
				t.Error(why)
			}
		})
	}
}
