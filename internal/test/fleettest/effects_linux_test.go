package fleettest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

// agentProgram is the user agent of node agents. Their kubelets have the same users.
const agentProgram = "wmco-node"

// effects are what a change costs.
type effects struct {
	// Operator and Agents are the writes to the API server that had no conflict, by verb and resource: of the operator, and of all node
	// agents together. A request whose answer is late is sent again, so there may be a third more of a kind.
	Operator, Agents map[string]int
	// Node is what happens on each node.
	Node nodeEffects
}

// nodeEffects are what happens on one node.
type nodeEffects struct {
	// Files are operations on files, Services those on services and settings, both in their order.
	Files, Services []string
	// Starts is how often each service was started.
	Starts map[string]int
	// Boots are boots of the machine, Logins those over SSH.
	Boots, Logins int
}

// reading is the state from which effects are counted.
type reading struct {
	bundles  map[string]bundle.Digest
	requests int
	machines map[string]nodeEffects
	begun    time.Time
}

// read begins to count.
func (f *fleet) read(t *testing.T) reading {
	t.Helper()
	r := reading{bundles: f.bundles(t), requests: len(f.requests(t)), machines: map[string]nodeEffects{}}
	for _, m := range f.machines {
		m.ForgetOperations()
		r.machines[m.name] = nodeEffects{Starts: m.Starts(), Boots: m.Boots(), Logins: m.logins(t)}
	}
	r.begun = time.Now()
	return r
}

func (f *fleet) requests(t *testing.T) []controlplane.Request {
	t.Helper()
	all, err := f.plane.Requests()
	must(t, err)
	return all
}

// followed waits until all nodes have another bundle than before, and say so.
func (f *fleet) followed(t *testing.T, r reading) {
	t.Helper()
	var left []string
	if err := testenv.Eventually(t.Context(), "reports of another bundle by all nodes", func() bool {
		// The bundles are those of the same list: one that is published after the list was read is not the one that the report in it names.
		nodes := f.nodes(t)
		now := desiredBundles(nodes)
		left = nil
		for _, n := range nodes {
			if now[n.Name] == r.bundles[n.Name] || !observer.IsCurrent(n) {
				left = append(left, fmt.Sprintf("%s: has another bundle: %t, is Ready: %t, reports %s", n.Name, now[n.Name] != r.bundles[n.Name], observer.IsReady(n), n.Annotations[published.ReportAnnotation]))
			}
		}
		return len(left) == 0 && len(nodes) == len(f.machines)
	}); err != nil {
		t.Fatalf("%v: %d nodes are left: %q", err, len(left), left[:min(len(left), 1)])
	}
}

// check compares what has happened since the reading with what was expected. It returns the number of writes of the operator and of the
// node agents.
func (f *fleet) check(t *testing.T, r reading, want effects) (operator, agents int) {
	t.Helper()
	got := f.writes(t, r)
	// Events are written by goroutines of their own: the last may come after all nodes are as they should be.
	for end := time.Now().Add(controlplane.Patience); time.Now().Before(end) && (lacks(got.Operator, want.Operator) || lacks(got.Agents, want.Agents)); got = f.writes(t, r) {
		time.Sleep(100 * time.Millisecond)
	}
	if diff := cmp.Diff(want.Operator, withoutRetries(got.Operator, want.Operator), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes of the operator (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Agents, withoutRetries(got.Agents, want.Agents), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes of the node agents (-want +got):\n%s", diff)
	}
	for _, m := range f.machines {
		if diff := cmp.Diff(want.Node, m.since(t, r.machines[m.name]), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.name, diff)
		}
	}
	return sum(got.Operator), sum(got.Agents)
}

// writes counts those since the reading.
func (f *fleet) writes(t *testing.T, r reading) effects {
	t.Helper()
	got := effects{Operator: map[string]int{}, Agents: map[string]int{}}
	for _, q := range f.requests(t)[r.requests:] {
		switch key := what(q); {
		case !q.IsWrite() || q.Resource == "leases": // leader election goes by the clock
		case q.Status == http.StatusConflict: // a kubelet wrote on the Node at the same time; it is retried
		case q.User == operatorUser:
			got.Operator[key]++
		case q.Agent == agentProgram:
			got.Agents[key]++
		}
	}
	return got
}

// withoutRetries returns the counts without possible retries: a third of the wanted count of a kind, and one at least.
func withoutRetries(got, want map[string]int) map[string]int {
	counts := maps.Clone(got)
	for kind, n := range want {
		if more := got[kind] - n; more > 0 && more <= max(1, n/3) {
			counts[kind] = n
		}
	}
	return counts
}

// lacks reports whether there are fewer writes of a kind than wanted.
func lacks(got, want map[string]int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(kind string) bool { return got[kind] < want[kind] })
}

// what names a request by its verb and its resource.
func what(q controlplane.Request) string {
	text := q.Verb + " " + q.Resource
	if q.Group != "" {
		text += "." + q.Group
	}
	return text
}

// logins is the number of logins.
func (m *machine) logins(t *testing.T) int {
	t.Helper()
	if m.server == nil {
		return 0
	}
	n, err := simnode.Logins(m.server)
	must(t, err)
	return n
}

// since returns what has happened on a machine.
func (m *machine) since(t *testing.T, before nodeEffects) nodeEffects {
	t.Helper()
	n := nodeEffects{Starts: map[string]int{}, Boots: m.Boots() - before.Boots, Logins: m.logins(t) - before.Logins}
	for _, op := range m.Operations() {
		text := string(op.Verb) + " " + op.Target
		switch op.Verb {
		case simulation.VerbWrite, simulation.VerbMake, simulation.VerbLink, simulation.VerbMove, simulation.VerbRemove, simulation.VerbTruncate:
			n.Files = append(n.Files, text)
		case simulation.VerbPut, simulation.VerbDelete, simulation.VerbStart, simulation.VerbStop, simulation.VerbRetire, simulation.VerbSet, simulation.VerbUnset, simulation.VerbReboot:
			n.Services = append(n.Services, text)
		}
	}
	now := m.Starts()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if more := now[name] - before.Starts[name]; more != 0 {
			n.Starts[name] = more
		}
	}
	return n
}

// sum adds up writes.
func sum(writes map[string]int) int {
	total := 0
	for _, n := range writes {
		total += n
	}
	return total
}
