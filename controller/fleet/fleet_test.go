package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

func now() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

func desired(t *testing.T) published.Desired {
	t.Helper()
	var layers [2]published.Packed
	for i, kind := range []bundle.LayerKind{bundle.LayerCluster, bundle.LayerNode} {
		p, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined})
		if err != nil {
			t.Fatal(err)
		}
		layers[i] = p
	}
	digest, err := bundle.DigestLayers(layers[0].Digest, layers[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return published.Desired{Bundle: digest, MaxImpact: bundle.ImpactRestart, Namespace: "n", Cluster: layers[0].Layer, Node: layers[1].Layer}
}

func node(t *testing.T, report *published.Report, reported time.Time) corev1.Node {
	t.Helper()
	text, err := desired(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{published.DesiredAnnotation: text}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now())}}
	if report != nil {
		if n.Annotations[published.ReportAnnotation], err = report.Encode(); err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: published.Condition, LastHeartbeatTime: metav1.NewTime(reported), LastTransitionTime: metav1.NewTime(now().Add(-time.Hour)),
		})
	}
	return n
}

func TestStates(t *testing.T) {
	wanted := desired(t).Bundle
	for _, tt := range []struct {
		name      string
		report    *published.Report
		heartbeat time.Time
		want      nodestate.State
		fix       string
	}{
		{"applied", &published.Report{State: published.StateApplied, Desired: wanted, Applied: wanted}, now(), nodestate.Updated, ""},
		{"another bundle", &published.Report{State: published.StateApplied, Desired: bundle.Of(nil)}, now(), nodestate.Stale, ""},
		{"being applied", &published.Report{State: published.StateApplying, Desired: wanted}, now(), nodestate.Updating, ""},
		{"a higher impact", &published.Report{State: published.StateNeedsPermission, Desired: wanted, Impact: bundle.ImpactDrain}, now(), nodestate.Waiting, "when it is the node's turn, after a drain if one is needed"},
		{"executables are missing", &published.Report{State: published.StatePayloadMissing, Desired: wanted}, now(), nodestate.Waiting, "--payload"},
		{"a boot is pending", &published.Report{State: published.StateRebootPending, Desired: wanted}, now(), nodestate.Waiting, "wmco reboot win-a"},
		{"rolled back", &published.Report{State: published.StateRolledBack, Desired: wanted}, now(), nodestate.Degraded, "wmco retry win-a"},
		{"no room", &published.Report{State: published.StateFailed, Fault: published.FaultDisk, Desired: wanted}, now(), nodestate.Waiting, "free space on drive C:"},
		{"a damaged layer", &published.Report{State: published.StateFailed, Fault: published.FaultLayer, Desired: wanted}, now(), nodestate.Degraded, "the operator publishes the layer again"},
		{"a locked file", &published.Report{State: published.StateRolledBack, Fault: published.FaultHost, Desired: wanted}, now(), nodestate.Degraded, "repair the host, then: wmco retry win-a"},
		{"refused", &published.Report{State: published.StateFailed, Refused: wanted, Desired: wanted}, now(), nodestate.Degraded, "the operator writes the annotation again"},
		{"failed", &published.Report{State: published.StateFailed, Desired: wanted}, now(), nodestate.Degraded, "the node agent retries"},
		{"no report", nil, now(), nodestate.NotReporting, "windows-instance-config-daemon"},
		{"an old report", &published.Report{State: published.StateApplied, Desired: wanted}, now().Add(-31 * time.Minute), nodestate.NotReporting, "windows-instance-config-daemon"},
	} {
		got := Of(windowsnode.Decode(node(t, tt.report, tt.heartbeat)), windowsnode.SilenceByKubelet)
		if got.State != tt.want || !strings.Contains(got.Fix, tt.fix) || (tt.fix == "") != (got.Fix == "") || got.Desired != wanted {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	full := Of(windowsnode.Decode(node(t, &published.Report{State: published.StateFailed, Fault: published.FaultDisk, Desired: wanted}, now())), windowsnode.SilenceByKubelet)
	if full.Reason != ReasonDiskFull || full.Fault != published.FaultDisk {
		t.Errorf("without room: %+v", full)
	}
	if got := Of(windowsnode.Decode(node(t, &published.Report{State: published.StateFailed, Fault: "chosen by a host", Desired: wanted}, now())), windowsnode.SilenceByKubelet); got.Fault != "" || got.State != nodestate.Degraded {
		t.Errorf("an unknown fault: %+v", got)
	}
	fetching := published.FetchProgress{Payload: wanted, Wanted: 123e6, Present: 48e6}
	for state, want := range map[published.State]string{
		published.StateApplied: "fetching executables: 48 of 123 MB", published.StatePayloadMissing: "fetching executables: 48 of 123 MB", published.StateFailed: "it failed",
	} {
		report := published.Report{State: state, Desired: wanted, Fetch: fetching}
		if state != published.StateApplied {
			report.Message = "it failed"
		}
		if got := Of(windowsnode.Decode(node(t, &report, now())), windowsnode.SilenceByKubelet); got.Message != want {
			t.Errorf("a node that fetches, %s: %q", state, got.Message)
		}
	}
	if got := stageOf(windowsnode.Decode(node(t, nil, now()))); got != bundle.StageJoined {
		t.Errorf("the stage is %q", got)
	}
	tail := bundle.LogTail{Service: "kubelet", Lines: []string{"exit 1"}}
	for state, want := range map[published.State]bundle.LogTail{published.StateRolledBack: tail, published.StateFailed: tail, published.StateApplied: {}} {
		got := Of(windowsnode.Decode(node(t, &published.Report{State: state, Desired: wanted, Log: tail}, now())), windowsnode.SilenceByKubelet)
		if diff := cmp.Diff(want, got.Log); diff != "" {
			t.Errorf("the log of a service, %s (-want +got):\n%s", state, diff)
		}
	}
	bare := Of(windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-b"}}), windowsnode.SilenceByKubelet)
	if diff := cmp.Diff(Row{Node: "win-b", State: nodestate.Joining}, bare, cmpopts.IgnoreFields(Row{}, "Fix", "Message")); diff != "" || bare.Fix == "" {
		t.Errorf("a node without a bundle (-want +got):\n%s", diff)
	}
	theirs := Of(windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-c", Annotations: map[string]string{published.VersionAnnotation: "11.0.0"}}}), windowsnode.SilenceByKubelet)
	if diff := cmp.Diff(Row{Node: "win-c", State: nodestate.Waiting, Reason: ReasonWaitingForAdoption}, theirs, cmpopts.IgnoreFields(Row{}, "Fix", "Message")); diff != "" || !strings.Contains(theirs.Fix, "adopt") {
		t.Errorf("a node of the existing operator (-want +got):\n%s", diff)
	}
	report, err := published.Report{State: published.StateUnpublished, Adopting: true, Impact: bundle.ImpactDrain, Message: "its plan"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	looked := Of(windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-d", Annotations: map[string]string{published.VersionAnnotation: "11.0.0", published.ReportAnnotation: report}}}), windowsnode.SilenceByKubelet)
	if diff := cmp.Diff(Row{Node: "win-d", State: nodestate.Waiting, Reason: ReasonAdopting, Message: "its plan", Impact: bundle.ImpactDrain}, looked); diff != "" {
		t.Errorf("a node that is adopted next (-want +got):\n%s", diff)
	}
	damaged := node(t, nil, now())
	damaged.Annotations[published.DesiredAnnotation] = "{"
	if got := Of(windowsnode.Decode(damaged), windowsnode.SilenceByKubelet); got.State != nodestate.Degraded || got.Fix == "" {
		t.Errorf("a damaged annotation: %+v", got)
	}
}

// TestWhatForbidsADrain is known from the Node alone, for people and for programs.
// An older program does not tell anybody to remove what a newer operator has written.
func TestTheFormOfANewerOperatorIsNotDamage(t *testing.T) {
	n := node(t, nil, time.Time{})
	n.Annotations[published.DesiredAnnotation] = `{"schema": 99}`
	n.Annotations[published.DesiredVersionAnnotation] = "2.0.0"
	row := Of(windowsnode.Decode(n), windowsnode.SilenceByKubelet)
	if row.Reason != ReasonNewerOperator || row.Fix != "use the wmco of the operator's version 2.0.0; do not edit the annotation" {
		t.Errorf("reason %s, fix %s", row.Reason, row.Fix)
	}
	n.Annotations[published.DesiredAnnotation] = "{"
	if row := Of(windowsnode.Decode(n), windowsnode.SilenceByKubelet); row.Reason != "" || row.Fix != "remove this annotation; the operator writes it again" {
		t.Errorf("damaged: reason %s, fix %s", row.Reason, row.Fix)
	}
}

func TestWhatForbidsADrain(t *testing.T) {
	d := desired(t)
	n := node(t, &published.Report{State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle}, now())
	const blocked = "blocked: pod shop/db-0 by PodDisruptionBudget shop/db"
	text, err := plan.State{Slot: plan.Slot{Taken: now().Add(-time.Minute), Held: true, Blocked: blocked}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations[published.RolloutAnnotation], n.Annotations[published.CordonAnnotation], n.Spec.Unschedulable = text, published.CordonedForRollout, true
	got := rolling([]windowsnode.Node{windowsnode.Decode(n)}, Policy(render.DefaultSettings()), nil, now())
	if len(got.Nodes) != 1 || got.Nodes[0].DrainBlocked != blocked || !strings.Contains(got.Nodes[0].Message, blocked) || !strings.Contains(got.Message, "shop/db-0") {
		t.Errorf("%+v", got)
	}
}

// TestANodeWithWhatIsUrgentWaitsForTheRest: its bundle came last, and is not what the others wait for.
func TestANodeWithWhatIsUrgentWaitsForTheRest(t *testing.T) {
	d := desired(t)
	d.Urgent = true
	n := node(t, &published.Report{State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle}, now())
	var err error
	if n.Annotations[published.DesiredAnnotation], err = d.Encode(); err != nil {
		t.Fatal(err)
	}
	n.Annotations[published.PausedAnnotation] = "true"
	moving := []metav1.Condition{{Type: status.RolledOut, Status: metav1.ConditionFalse, Reason: status.ReasonRollingOut}}
	if got := rolling([]windowsnode.Node{windowsnode.Decode(n)}, Policy(render.DefaultSettings()), moving, now()); got.Waiting != 1 || got.Nodes[0].Reason != plan.ReasonPaused {
		t.Errorf("%+v", got)
	}
	if got := rolling([]windowsnode.Node{windowsnode.Decode(n)}, Policy(render.DefaultSettings()), nil, now()); got.Updated != 1 {
		t.Errorf("when all is rolled out: %+v", got)
	}
}

// TestARemovalThatIsStuckHasItsRow, also where the node itself is degraded or waits for something else.
func TestARemovalThatIsStuckHasItsRow(t *testing.T) {
	row := func(state nodestate.State, reason string) Row {
		return Row{Node: "win-1", State: state, Reason: reason}
	}
	host := func(state nodestate.State, reason string) status.Host {
		return status.Host{Name: "win-1", Node: "win-1", State: state, Reason: reason}
	}
	for _, c := range []struct {
		name string
		row  Row
		host status.Host
		want int
	}{
		{"the node is updated", row(nodestate.Updated, "Applied"), host(nodestate.Degraded, "LoginRefused"), 1},
		{"the node is degraded too", row(nodestate.Degraded, "Failed"), host(nodestate.Degraded, "LoginRefused"), 1},
		{"the node waits for a boot, the removal for its pods", row(nodestate.Waiting, "RebootPending"), host(nodestate.Waiting, "DrainBlocked"), 1},
		{"the row has it", row(nodestate.Degraded, "RolledBack"), host(nodestate.Degraded, "RolledBack"), 0},
		{"a host that joins", row(nodestate.Joining, "Unpublished"), host(nodestate.Joining, "Joining"), 0},
	} {
		if got := (Fleet{Nodes: []Row{c.row}, Hosts: []status.Host{c.host}}).Others(); len(got) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
