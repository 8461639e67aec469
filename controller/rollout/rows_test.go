package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
	"wmco/report/fleet"
)

// TestRowsThatAreKeptAreThoseOfAllNodes compares them after each of many events: a Node changes, comes, goes, is another one of its name, or its agent
// falls silent and reports again without another version of its Node.
func TestRowsThatAreKeptAreThoseOfAllNodes(t *testing.T) {
	const runs, events = 200, 30
	states := map[nodestate.State]int{}
	reused := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		nodes, silent, kept := map[string]windowsnode.Node{}, map[string]time.Duration{}, keptRows{}
		silence := func(n windowsnode.Node) time.Duration { return silent[n.Name] }
		for version := range events {
			name := fmt.Sprintf("win-%d", r.IntN(5))
			switch r.IntN(6) {
			case 0:
				silent[name] = time.Duration(r.IntN(3)) * published.SilentAfter
			case 1:
				delete(nodes, name)
			default:
				nodes[name] = randomNode(t, r, name, version)
			}
			kept.retainNodes(nodes)
			if names := kept.differing(nodes, silence); len(names) > 0 {
				t.Fatalf("seed %d, event %d: the rows of %v differ", seed, version, names)
			}
			for name, node := range nodes {
				if _, known := kept[name]; known {
					reused++
				}
				want := fleet.Of(node, silence)
				if diff := cmp.Diff(want, kept.rowOf(node, silence)); diff != "" {
					t.Fatalf("seed %d, event %d: %s -whole +kept:\n%s", seed, version, name, diff)
				}
				states[want.State]++
			}
			if len(kept) > len(nodes) {
				t.Fatalf("%d rows are kept of %d nodes", len(kept), len(nodes))
			}
		}
	}
	for _, s := range []nodestate.State{nodestate.Updated, nodestate.Stale, nodestate.Updating, nodestate.Joining, nodestate.Waiting, nodestate.NotReporting, nodestate.Degraded} {
		if states[s] == 0 {
			t.Errorf("no node was %s", s)
		}
	}
	if reused == 0 {
		t.Error("no row was kept")
	}
}

// randomNode returns a Node with any report about any bundle.
func randomNode(t *testing.T, r *rand.Rand, name string, version int) windowsnode.Node {
	t.Helper()
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	wanted := []bundle.Digest{bundle.Of([]byte("1")), bundle.Of([]byte("2"))}
	reports := []published.State{
		published.StateApplied, published.StateApplying, published.StateFailed, published.StateRolledBack, published.StateNeedsPermission, published.StateRebootPending,
	}
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(r.IntN(2))), ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
	}
	if r.IntN(5) > 0 {
		text, err := published.Report{State: reports[r.IntN(len(reports))], Desired: wanted[r.IntN(2)], Message: "any"}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		n.Annotations[published.ReportAnnotation] = text
	}
	node := windowsnode.Decode(n)
	if r.IntN(5) > 0 { // what an operator has published, decoded
		node.Annotations[published.DesiredAnnotation] = "published"
		node.Desired, node.DesiredError = published.Desired{Bundle: wanted[r.IntN(2)], MaxImpact: bundle.ImpactRestart}, nil
	}
	return node
}

// TestARowThatIsKeptWronglyIsFound: the check of all rows says which, and the next row is that of the Node.
func TestARowThatIsKeptWronglyIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	nodes, kept := map[string]windowsnode.Node{}, keptRows{}
	never := func(windowsnode.Node) time.Duration { return 0 }
	for i := range 3 {
		name := fmt.Sprintf("win-%d", i)
		n := randomNode(t, r, name, i)
		n.Report.State, n.ReportError = published.StateApplied, nil
		nodes[name] = n
		kept.rowOf(n, never)
	}
	wrong, known := kept["win-1"]
	if !known {
		t.Fatal("no row is kept")
	}
	wrong.row.State = nodestate.Removing
	kept["win-1"] = wrong
	if got := kept.differing(nodes, never); !slices.Equal(got, []string{"win-1"}) {
		t.Errorf("%v differ", got)
	}
	if diff := cmp.Diff(fleet.Of(nodes["win-1"], never), kept.rowOf(nodes["win-1"], never)); diff != "" {
		t.Errorf("-whole +kept:\n%s", diff)
	}
}
