package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocks "k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/base"
	"wmco/controller/fleet"
	"wmco/controller/metrics"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// TestCountsAreWrittenWithPauses has a node more in each second of a minute. All but counts and messages is reported at once.
func TestCountsAreWrittenWithPauses(t *testing.T) {
	writes := 0
	nodes := map[string]windowsnode.Node{}
	cluster := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, status.Name)
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			writes++
			return nil
		},
	})
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	reporter := &statusReporter{
		writer: &status.Writer{Live: cluster, Client: cluster, Namespace: "windows", Owner: "test", Now: clock}, nodes: func(context.Context) (map[string]windowsnode.Node, error) { return nodes, nil }, log: logr.Discard(), now: clock, try: base.NewPauses(logr.Discard()).Try,
		events: events.NewFakeRecorder(10), counters: metrics.NewCounters(metrics.Known{}), upgrade: &status.Upgrade{},
		silence: windowsnode.SilenceByKubelet, heartbeats: heartbeat.NewWatch(clock, heartbeat.MonotonicClock(clocks.RealClock{})),
	}
	tell := func(o outcome) (again time.Duration) {
		t.Helper()
		again, err := reporter.reportOutcome(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	const seconds = 60
	for i := range seconds {
		nodes[fmt.Sprint("win-", i)] = windowsnode.Decode(corev1.Node{})
		before := writes
		// The rest is reported when the pause is over.
		if again, left := tell(outcome{}), StatusPause-time.Duration(i)*time.Second%StatusPause; writes == before && again != left {
			t.Errorf("after %d s: again in %s, want %s", i, again, left)
		}
		now = now.Add(time.Second)
	}
	if want := int(seconds * time.Second / StatusPause); writes != want {
		t.Errorf("%d writes, want %d", writes, want)
	}
	tell(outcome{})
	before := writes
	refused := outcome{rendering: rendering{blocking: bundle.Findings{{Severity: bundle.SeverityError, Reason: "Wrong", Message: "it is wrong"}}}}
	if again := tell(refused); again != 0 || writes != before+1 {
		t.Errorf("%d writes for another reason, again in %s", writes-before, again)
	}
}

// TestStepsOfHostsAreWrittenWithPauses: ten hosts have got further ten times a second for a minute, while inputs change.
func TestStepsOfHostsAreWrittenWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var writes int
		// moved is when the steps that are written were other ones than before.
		var moved []time.Duration
		var last []status.Host
		cluster := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return nil
			},
			SubResourceApply: func(_ context.Context, _ client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
				text, err := json.Marshal(o)
				if err != nil {
					return err
				}
				s, err := status.Decode(text)
				if writes++; !reflect.DeepEqual(s.Hosts, last) {
					last, moved = s.Hosts, append(moved, time.Since(begin))
				}
				return err
			},
		})
		reporter := &statusReporter{
			writer: &status.Writer{Live: cluster, Client: cluster, Namespace: "windows", Owner: "test", Now: time.Now}, nodes: func(context.Context) (map[string]windowsnode.Node, error) { return nil, nil }, log: logr.Discard(), now: time.Now, try: base.NewPauses(logr.Discard()).Try,
			events: events.NewFakeRecorder(10), counters: metrics.NewCounters(metrics.Known{}), upgrade: &status.Upgrade{}, silence: windowsnode.SilenceByKubelet, heartbeats: heartbeat.NewWatch(time.Now, heartbeat.MonotonicClock(clocks.RealClock{})),
		}
		w := work(t)
		var step atomic.Int64
		w.tell = reporter.reportOutcome
		w.unjoined = func() []status.Host {
			var hosts []status.Host
			for i := range 10 {
				hosts = append(hosts, status.Host{Name: fmt.Sprint("win-", i), State: nodestate.Joining, Reason: "Joining", Message: fmt.Sprint("copying ", step.Load())})
			}
			return hosts
		}
		w.inputs.requestRendering(w.queue)
		pass(2 * time.Second)
		if writes != 1 {
			t.Fatalf("%d writes before any step", writes)
		}
		renders := len(w.renders)
		for i := range 600 {
			step.Add(1)
			w.inputs.requestSteps(w.queue)
			if i%100 == 50 {
				w.inputs.requestRendering(w.queue)
			}
			pass(100 * time.Millisecond)
		}
		pass(2 * StepPause)
		for i := range moved[1:] {
			if apart := moved[i+1] - moved[i]; apart < StepPause || apart > StepPause+2*time.Second {
				t.Errorf("steps are written %s apart", apart)
			}
		}
		if most := int(time.Minute/StepPause) + 2; len(moved) < most-4 || len(moved) > most || len(w.renders) < renders+5 {
			t.Errorf("steps are written at %v, rendered at %v", moved, w.renders)
		}
		if want := "copying 600"; last[9].Message != want {
			t.Errorf("the last step is %q, want %q", last[9].Message, want)
		}
		before := writes
		for range 100 {
			w.inputs.requestSteps(w.queue)
			pass(time.Second)
		}
		if writes != before {
			t.Errorf("%d writes although nothing has changed", writes-before)
		}
	})
}

// TestADamagedLayerIsSaid with the name of its Secret, also while the rest of the status waits for its pause.
func TestADamagedLayerIsSaid(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	reporter := &statusReporter{writer: &status.Writer{Namespace: "windows"}, deployment: &corev1.ObjectReference{Namespace: "windows"}, events: recorder, log: logr.Discard()}
	reporter.reportDamaged(nil)
	reporter.reportDamaged([]string{"windows-layer-0-1of1"})
	select {
	case got := <-recorder.Events:
		if !strings.Contains(got, "Warning LayerReplaced the content of Secret windows-layer-0-1of1 had changed") || !strings.Contains(got, "fix: find out in the audit log who writes Secrets of namespace windows") {
			t.Errorf("%q", got)
		}
	default:
		t.Error("no event")
	}
	if n := len(recorder.Events); n > 0 {
		t.Errorf("%d more events", n)
	}
}

// TestClocksThatDifferAreNamed: it is a hint for people, with the nodes.
func TestClocksThatDifferAreNamed(t *testing.T) {
	if c := clocksAgree(nil); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "at most 5m") {
		t.Errorf("%+v", c)
	}
	c := clocksAgree([]heartbeat.Skew{{Node: "win-a", By: -time.Hour}, {Node: "win-b", By: 90 * time.Minute}, {Node: "win-c", By: time.Hour}, {Node: "win-d", By: time.Hour}})
	if c.Type != status.ClocksAgree || c.Status != metav1.ConditionFalse || c.Reason != "ClockSkew" {
		t.Errorf("%+v", c)
	}
	const want = "the clocks of nodes differ from the operator's: win-a (1h0m behind), win-b (1h30m ahead), win-c (1h0m ahead); and 1 more node; fix: "
	if !strings.HasPrefix(c.Message, want) {
		t.Errorf("%s", c.Message)
	}
}

// TestOldKubeletsAreSaidBeforeAnUpdate: those that OpenShift refuses an update for, with their nodes; to OLM too.
func TestOldKubeletsAreSaidBeforeAnUpdate(t *testing.T) {
	nodes := map[string]windowsnode.Node{}
	for name, kubelet := range map[string]string{"win-a": "v1.32.13", "win-b": "v1.33.13", "win-c": ""} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.NodeInfo.KubeletVersion = kubelet
		nodes[name] = windowsnode.Decode(n)
	}
	var forOLM status.Upgrade
	if forOLM.KubeletProblem() != "" {
		t.Errorf("before anything is known: %s", forOLM.KubeletProblem())
	}
	c := kubeletsUpgradeable("4.20.4", nodes)
	forOLM.NoteKubelets(c)
	if c.Type != "KubeletMinorVersionUpgradeable" || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "(4.20.4), because the kubelets of these nodes are too old for it: win-a (v1.32.13); fix: ") {
		t.Errorf("%+v", c)
	}
	if forOLM.KubeletProblem() != c.Message {
		t.Errorf("for OLM: %s", forOLM.KubeletProblem())
	}
	delete(nodes, "win-a")
	c = kubeletsUpgradeable("4.20.4", nodes)
	forOLM.NoteKubelets(c)
	if c.Status != metav1.ConditionTrue || forOLM.KubeletProblem() != "" {
		t.Errorf("%+v; for OLM: %s", c, forOLM.KubeletProblem())
	}
}

// TestTheStatusIsWrittenWhenItsKindAppears: it is looked for twice a minute, although nothing else has changed.
func TestTheStatusIsWrittenWhenItsKindAppears(t *testing.T) {
	asked, served := 0, false
	cluster := interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			if asked++; !served {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: status.Group, Kind: status.Kind}}
			}
			return apierrors.NewNotFound(schema.GroupResource{}, status.Name)
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return nil
		},
	})
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	reporter := &statusReporter{
		writer: &status.Writer{Live: cluster, Client: cluster, Namespace: "windows", Owner: "test", Now: clock}, nodes: func(context.Context) (map[string]windowsnode.Node, error) { return nil, nil }, log: logr.Discard(), now: clock, try: base.NewPauses(logr.Discard()).Try,
		events: events.NewFakeRecorder(10), counters: metrics.NewCounters(metrics.Known{}), upgrade: &status.Upgrade{}, silence: windowsnode.SilenceByKubelet, heartbeats: heartbeat.NewWatch(clock, heartbeat.MonotonicClock(clocks.RealClock{})),
	}
	for i, want := range []struct {
		asked int
		again time.Duration
	}{{1, base.KindsPeriod}, {1, base.KindsPeriod / 2}, {2, base.KindsPeriod}, {2, base.KindsPeriod / 2}, {3, 0}, {3, 0}} {
		served = i == 4
		again, err := reporter.reportOutcome(t.Context(), outcome{})
		if err != nil || asked != want.asked || again != want.again {
			t.Errorf("call %d: asked %d times, again in %s: %v; want %+v", i, asked, again, err, want)
		}
		now = now.Add(base.KindsPeriod / 2)
	}
}

// TestAStatusThatCannotBeWritten is written as soon as it can be, also if it is the same then as the one before: it may have been written all the
// same.
func TestAStatusThatCannotBeWritten(t *testing.T) {
	failing, tried, written := true, 0, 0
	cluster := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return nil
		},
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			if tried++; failing {
				return errors.New("refused")
			}
			written++
			return nil
		},
	})
	clock := func() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }
	try := func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) }
	reporter := &statusReporter{
		writer: &status.Writer{Live: cluster, Client: cluster, Namespace: "windows", Owner: "test", Now: clock}, nodes: func(context.Context) (map[string]windowsnode.Node, error) { return nil, nil }, log: logr.Discard(), now: clock, try: try,
		events: events.NewFakeRecorder(10), counters: metrics.NewCounters(metrics.Known{}), upgrade: &status.Upgrade{}, silence: windowsnode.SilenceByKubelet, heartbeats: heartbeat.NewWatch(clock, heartbeat.MonotonicClock(clocks.RealClock{})),
	}
	refused := outcome{rollErr: errors.New("no step is made")}
	for i, step := range []struct {
		failing        bool
		say            outcome
		tried, written int
	}{{false, outcome{}, 1, 1}, {false, outcome{}, 1, 1}, {true, refused, 2, 1}, {true, outcome{}, 3, 1}, {false, outcome{}, 4, 2}, {false, outcome{}, 4, 2}} {
		failing = step.failing
		if _, err := reporter.reportOutcome(t.Context(), step.say); err != nil || tried != step.tried || written != step.written {
			t.Errorf("call %d: tried %d times, written %d times: %v", i, tried, written, err)
		}
	}
}

// TestClocksOfHostsThatHaveNoNodeYet are reported too: a kubelet whose clock is behind gets no certificate, and its agent reports nothing.
func TestClocksOfHostsThatHaveNoNodeYet(t *testing.T) {
	reporter := &statusReporter{heartbeats: heartbeat.NewWatch(time.Now, heartbeat.MonotonicClock(clocks.RealClock{}))}
	nodes := map[string]windowsnode.Node{"win-1": {}}
	r := rendering{addresses: map[string]string{"win-1": "192.0.2.1", "": "192.0.2.2"}}
	if got := reporter.clockSkews(nodes, r); len(got) > 0 {
		t.Errorf("%v", got)
	}
	reporter.hostClocks = func() []heartbeat.Skew {
		return []heartbeat.Skew{{Node: "192.0.2.1", By: time.Hour}, {Node: "192.0.2.2", By: -time.Hour}}
	}
	if c := clocksAgree(reporter.clockSkews(nodes, r)); c.Reason != "ClockSkew" || !strings.Contains(c.Message, "operator's: 192.0.2.2 (1h0m behind); fix: ") {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
}

// TestAFailedNodeIsListedWithTheLog of the service because of which it was rolled back.
func TestAFailedNodeIsListedWithTheLog(t *testing.T) {
	log := bundle.LogTail{Service: "kubelet", Lines: []string{"exit 1"}}
	if h, ok := statusOfHost(fleet.Row{Node: "win-a", State: nodestate.Degraded, Log: log}); !ok || !reflect.DeepEqual(h.Log, log) {
		t.Errorf("%+v", h)
	}
}
