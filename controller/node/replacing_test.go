package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/applier/remote"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// replacer notes which Machines are to be replaced.
type replacer struct {
	asked []types.UID
	why   string
	err   error
}

func (r *replacer) ReplaceNode(_ context.Context, machine types.UID, _ string) (string, error) {
	r.asked = append(r.asked, machine)
	return r.why, r.err
}

// refusal is a host of a Machine that refuses a key which its node agent has written, where Machines are to be replaced.
func refusal() loginAttempt {
	inputs := &desired.Hosts{LoginKey: "ssh-ed25519 new"}
	inputs.Cluster.Settings = render.DefaultSettings()
	inputs.Cluster.Settings.Keys = render.KeysReplace
	return loginAttempt{
		node:   windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", UID: "node-a", Annotations: map[string]string{}}}),
		record: record.Record{Machine: "machine-a", HostKey: "pinned"}, host: configure.Host{Wanted: inputs, Node: render.Node{Name: "win-a", Backing: render.BackingMachine}},
		hasKey: true, isKnown: true, count: 2,
	}
}

// silent returns the Node without a report whose agent has renewed its condition last that long before the kubelet.
func silent(n windowsnode.Node, since time.Duration) windowsnode.Node {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now.Add(-since))},
	}
	return windowsnode.Decode(*n.Node)
}

// TestWhichMachinesAreReplaced: those of hosts that refuse the key for half an hour and whose node agent cannot write it, where that is asked for. What
// whoever may patch Nodes can write is no reason alone.
func TestWhichMachinesAreReplaced(t *testing.T) {
	closed := []render.RolloutWindow{{Start: "0 0 1 1 *", Duration: "1m"}}
	for name, c := range map[string]struct {
		change func(*loginAttempt)
		after  time.Duration
		asked  int
		shown  string
	}{
		"asked for":                         {func(*loginAttempt) {}, 31 * time.Minute, 1, "its Machine is replaced"},
		"not asked for":                     {func(a *loginAttempt) { a.host.Wanted.Cluster.Settings.Keys = render.KeysRotate }, 31 * time.Minute, 0, ""},
		"too early":                         {func(*loginAttempt) {}, 29 * time.Minute, 0, "for 30m0s"},
		"an instance":                       {func(a *loginAttempt) { a.host.Backing, a.record.Machine = render.BackingInstance, "" }, 31 * time.Minute, 0, "has none"},
		"no pinned key":                     {func(a *loginAttempt) { a.record.HostKey = "" }, 31 * time.Minute, 0, "no host key is pinned"},
		"the agent is to write it":          {func(a *loginAttempt) { a.hasKey = false }, 31 * time.Minute, 0, "with its next bundle"},
		"an agent that reports to be older": {func(a *loginAttempt) { a.hasKey, a.host.NoKeys = false, true }, 31 * time.Minute, 0, "changes no keys, which is no reason to delete anything (fix: "},
		"one that reports to have applied a bundle without keys": {func(a *loginAttempt) { a.host.NoKeys = true }, 31 * time.Minute, 0, "changes no keys"},
		"one that reports to read no names":                      {func(a *loginAttempt) { a.host.OlderAgent = true }, 31 * time.Minute, 0, "changes no keys"},
		"a Node without a report":                                {func(a *loginAttempt) { a.hasKey, a.node = false, silent(a.node, time.Minute) }, 31 * time.Minute, 0, "with its next bundle"},
		"an agent that has died":                                 {func(a *loginAttempt) { a.hasKey, a.node = false, silent(a.node, time.Hour) }, 31 * time.Minute, 1, "its Machine is replaced"},
		"it is not known what it accepts":                        {func(a *loginAttempt) { a.hasKey, a.isKnown = false, false }, 31 * time.Minute, 1, "its Machine is replaced"},
		"the rollout is paused":                                  {func(a *loginAttempt) { a.host.Wanted.Cluster.Settings.Rollout.Paused = true }, 31 * time.Minute, 0, "paused"},
		"the node is paused": {func(a *loginAttempt) {
			a.node.Annotations[published.PausedAnnotation] = "true"
			a.node = windowsnode.Decode(*a.node.Node)
		}, 31 * time.Minute, 0, "paused"},
		"no window is open": {func(a *loginAttempt) { a.host.Wanted.Cluster.Settings.Rollout.Windows = closed }, 31 * time.Minute, 0, "2027-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a, r, now := refusal(), &replacer{}, time.Duration(0)
			c.change(&a)
			lc := &loginConfirmer{machines: r, log: logr.Discard(), joiner: &configure.Joiner{
				Silence: windowsnode.SilenceByKubelet, Elapsed: func() time.Duration { return now }, Now: func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
			}}
			refused := &remote.AuthError{Err: errors.New("no")}
			lc.noteRefusal(a, refused)
			now = c.after
			if got := lc.replaceRefusing(t.Context(), a, lc.noteRefusal(a, refused)); len(r.asked) != c.asked || !strings.Contains(got, c.shown) || (c.shown == "") != (got == "") {
				t.Errorf("%d are replaced, %q", len(r.asked), got)
			}
			if c.asked == 1 && r.asked[0] != "machine-a" {
				t.Errorf("%s is replaced", r.asked[0])
			}
		})
	}
}

// TestARefusalBeginsAgain after another failure: the host was away, or is another one.
func TestARefusalBeginsAgain(t *testing.T) {
	now := time.Duration(0)
	lc := &loginConfirmer{joiner: &configure.Joiner{Silence: windowsnode.SilenceByKubelet, Elapsed: func() time.Duration { return now }}}
	refused := &remote.AuthError{Err: errors.New("no")}
	lc.noteRefusal(refusal(), refused)
	now = time.Hour
	if got := lc.noteRefusal(refusal(), refused); got != time.Hour {
		t.Errorf("it has been refused for %s", got)
	}
	if got := lc.noteRefusal(refusal(), errors.New("cut off")); got != 0 {
		t.Errorf("another failure is a refusal of %s", got)
	}
	if got := lc.noteRefusal(refusal(), refused); got > time.Second {
		t.Errorf("after another failure: %s", got)
	}
}

// TestAReportThatChangesBeginsAgain: a report that is changed for a moment replaces no Machine, however long the host has refused the key before.
func TestAReportThatChangesBeginsAgain(t *testing.T) {
	now := time.Duration(0)
	lc := &loginConfirmer{joiner: &configure.Joiner{Silence: windowsnode.SilenceByKubelet, Elapsed: func() time.Duration { return now }}}
	refused := &remote.AuthError{Err: errors.New("no")}
	waits := refusal()
	waits.hasKey = false
	lc.noteRefusal(waits, refused)
	now = time.Hour
	if got := lc.noteRefusal(refusal(), refused); got > time.Second {
		t.Errorf("an agent that has reported the bundle with the key now counts as refused for %s with it", got)
	}
}

// TestWhatIsSaidOfAMachineThatIsNotReplaced has the reason.
func TestWhatIsSaidOfAMachineThatIsNotReplaced(t *testing.T) {
	for want, r := range map[string]*replacer{"another one": {why: "another one is being deleted"}, "forbidden": {err: errors.New("forbidden")}} {
		lc := &loginConfirmer{machines: r, log: logr.Discard(), joiner: &configure.Joiner{Silence: windowsnode.SilenceByKubelet, Now: time.Now}}
		if got := lc.replaceRefusing(t.Context(), refusal(), time.Hour); !strings.HasPrefix(got, "; its Machine is not replaced: ") || !strings.Contains(got, want) {
			t.Errorf("%q", got)
		}
	}
}
