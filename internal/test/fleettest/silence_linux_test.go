package fleettest

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/configure"
	fleetstate "wmco/controller/fleet"
	"wmco/controller/node"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
	"wmco/internal/hostsim/simulation"
)

// checkSilence: a user has stopped and disabled the service of a node agent. Half an hour later the operator starts it over SSH, and
// reaches no other host. While the host cannot be reached, the kubelet's signs of life cause no more attempts.
func (f *fleet) checkSilence(t *testing.T) {
	f.stop()
	hosts := f.reached()
	f.operate(t, hosts.hosts(t))
	eventually(t, "nodes that the operator has taken over", func() bool {
		return !slices.ContainsFunc(f.nodes(t), func(n corev1.Node) bool {
			return n.Annotations[configure.VersionAnnotation] != version || n.Annotations[published.PayloadAnnotation] == ""
		})
	})
	// It has looked whether the hosts have the executables of its version.
	r, taken := f.read(t), map[string]int{}
	for _, m := range f.machines {
		taken[m.name] = hosts.count(m)
	}
	silent := f.machines[2]
	must(t, silent.StopService(t.Context(), bundle.AgentService))
	must(t, silent.Edit(t.Context(), func(s *simulation.State) {
		service := s.Services[simulation.Key(bundle.AgentService)]
		service.Start = plan.StartDisabled
		s.Services[simulation.Key(bundle.AgentService)] = service
	}))
	silent.server.Stop()
	f.age(t, silent.name)
	eventually(t, "an event about the host that cannot be reached", func() bool { return len(f.notes(t, node.EventAgentSilent, silent.name)) > 0 })
	// What the new operator publishes is a reason to try it again, and comes in a few steps. Signs of life do not end.
	asked, again := 0, hosts.count(silent)
	for range 4 {
		if asked == again {
			break
		}
		asked = again
		f.awaitHeartbeats(t, silent.name, 2)
		again = hosts.count(silent)
	}
	if again != asked {
		t.Errorf("the host was asked %d times, and %d times after two more signs of life of its kubelet", asked, again)
	}
	must(t, silent.server.Restart())
	f.age(t, silent.name)
	eventually(t, "an event about the repaired node agent", func() bool { return len(f.notes(t, node.EventAgentRepaired, silent.name)) > 0 })
	eventually(t, "a node agent that reports again", func() bool {
		row := fleetstate.Of(windowsnode.Decode(*f.node(t, silent.name)), windowsnode.SilenceByKubelet)
		return silent.Status(bundle.AgentService) == plan.ServiceRunning && row.State == nodestate.Updated
	})
	saysSo := func(note string) bool { return strings.Contains(note, "1 service started") }
	if notes := f.notes(t, node.EventAgentRepaired, silent.name); !slices.ContainsFunc(notes, saysSo) {
		t.Errorf("the events are %q", notes)
	}
	for _, m := range f.machines {
		got := m.since(t, r.machines[m.name])
		switch {
		case m == silent && got.Logins == 0, m != silent && (got.Logins > 0 || hosts.count(m) > taken[m.name]):
			t.Errorf("%d logins at %s", got.Logins, m.name)
		case got.Boots > 0:
			t.Errorf("%s has booted", m.name)
		}
	}
}

// awaitHeartbeats waits for signs of life of a kubelet, in the status of its Node.
func (f *fleet) awaitHeartbeats(t *testing.T, name string, n int) {
	t.Helper()
	last := func() time.Time {
		for _, c := range f.node(t, name).Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.LastHeartbeatTime.Time
			}
		}
		return time.Time{}
	}
	for range n {
		before := last()
		eventually(t, "a sign of life of the kubelet", func() bool { return !last().Equal(before) })
	}
}

// age gives a node agent a sign of life, and half an hour passes for the operator without another one.
func (f *fleet) age(t *testing.T, name string) {
	t.Helper()
	n := f.node(t, name)
	before := n.DeepCopy()
	for i, c := range n.Status.Conditions {
		if c.Type == published.Condition {
			last := metav1.NewTime(c.LastHeartbeatTime.Add(time.Second).Truncate(time.Second))
			n.Status.Conditions[i].LastHeartbeatTime = last
			f.aged.Store(name, last.Unix())
		}
	}
	must(t, f.Status().Patch(t.Context(), n, client.StrategicMergeFrom(before)))
}

// silence is what the operator observes, but for the sign of life of age.
func (f *fleet) silence() windowsnode.Silence {
	observed := heartbeat.NewWatch(time.Now, heartbeat.MonotonicClock(clock.RealClock{}))
	return func(n windowsnode.Node) time.Duration {
		at, aged := f.aged.Load(n.Name)
		if aged && n.AgentCondition.LastHeartbeatTime.Unix() == at {
			return published.SilentAfter + time.Minute
		}
		return observed.SilentFor(n)
	}
}

// notes are the texts of the events about a Node with a reason.
func (f *fleet) notes(t *testing.T, reason, node string) []string {
	t.Helper()
	var list eventsv1.EventList
	must(t, f.List(t.Context(), &list))
	uid := f.node(t, node).UID
	var notes []string
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Kind == "Node" && e.Regarding.UID == uid {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
