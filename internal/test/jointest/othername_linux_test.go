package jointest_test

import (
	"testing"
	"time"

	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/faults"
)

// TestAHostWithAnotherNameIsNotTheNode: a Node that is lost is not deleted because of a host that claims to be another node, although it
// has the address and the pinned key.
func TestAHostWithAnotherNameIsNotTheNode(t *testing.T) {
	w := newWorld(t)
	w.machine("instance-n", "192.0.2.73")
	w.machine("instance-o", "192.0.2.74")
	w.instances("192.0.2.73", "192.0.2.74")
	clock := faults.NewClock(t.Context())
	w.operateBy(clock)
	w.allJoin([]string{"instance-n", "instance-o"})
	before := w.node("instance-n")
	must(t, w.machines["instance-n"].Host.Edit(t.Context(), func(s *simulation.State) { s.NextHostName = "somebody-else" }))
	w.expire("instance-n", -24*time.Hour)
	if name := w.machines["instance-n"].Name(); name != "somebody-else" {
		t.Fatalf("the host is %s", name)
	}
	asked := w.reachedAgain("192.0.2.73")
	w.lose(clock, "instance-n")
	w.wakeUntil("instance-n", "a question to the host", asked)
	w.awaitJudged("instance-n")
	if n := w.findNode("instance-n"); n == nil || n.UID != before.UID {
		t.Fatal("a Node was deleted because of a host that is another node")
	}
}
