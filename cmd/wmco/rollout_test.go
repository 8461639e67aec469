package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

func rolloutNoon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

func minutesAgo(n float64) time.Time {
	return rolloutNoon().Add(-time.Duration(n * float64(time.Minute)))
}

// rolloutBundle is a bundle whose cluster layer has one file with the text.
func rolloutBundle(t *testing.T, node, text string) published.Desired {
	t.Helper()
	d := published.Desired{Namespace: "n", MaxImpact: bundle.ImpactRestart}
	content := bundle.Content{Data: []byte(text)}
	for kind, into := range map[bundle.LayerKind]*published.Layer{bundle.LayerCluster: &d.Cluster, bundle.LayerNode: &d.Node} {
		file := bundle.File{Path: `C:\k\` + node, Digest: bundle.Of([]byte(node)), Size: int64(len(node)), Content: bundle.Content{Data: []byte(node)}, Access: bundle.AccessUsers, Impact: bundle.ImpactNone}
		if kind == bundle.LayerCluster {
			file = bundle.File{Path: `C:\k\shared`, Digest: bundle.Of(content.Data), Size: int64(len(text)), Content: content, Access: bundle.AccessUsers, Impact: bundle.ImpactNone}
		}
		p, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: []bundle.File{file}})
		if err != nil {
			t.Fatal(err)
		}
		*into = p.Layer
	}
	var err error
	if d.Bundle, err = bundle.DigestLayers(d.Cluster.Digest, d.Node.Digest); err != nil {
		t.Fatal(err)
	}
	return d
}

// rolledNode is a node with its published bundle, and the update that brought it.
func rolledNode(t *testing.T, name, text string, turn plan.Turn) corev1.Node {
	t.Helper()
	d := rolloutBundle(t, name, text)
	turn.Bundle, turn.Permitted = d.Bundle, turn.Begun
	before := rolloutBundle(t, name, "before").Bundle
	n := corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelOSStable: "windows", corev1.LabelWindowsBuild: "10.0.20348"}, Annotations: map[string]string{},
	}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(minutesAgo(1000))},
		{Type: published.Condition, LastHeartbeatTime: metav1.NewTime(minutesAgo(1)), LastTransitionTime: metav1.NewTime(turn.Begun.Add(20 * time.Second))},
	}
	state := plan.State{Turn: turn, Past: []plan.Turn{{
		Bundle: before, Impact: bundle.ImpactRestart, Begun: minutesAgo(900), Permitted: minutesAgo(900), Ended: minutesAgo(898), Result: published.StateApplied,
	}}}
	annotate(t, &n, published.DesiredAnnotation, d.Encode)
	annotate(t, &n, published.RolloutAnnotation, state.Encode)
	annotate(t, &n, published.ReportAnnotation, published.Report{Program: "v1", State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle}.Encode)
	return n
}

// TestATextHangsBehindItsLead: within the columns of a terminal, and in one line where there is none or no room.
func TestATextHangsBehindItsLead(t *testing.T) {
	const text = "the canary is observed until 12:00, and others wait"
	for columns, want := range map[int]string{
		0:  "rollout: the canary is observed until 12:00, and others wait",
		30: "rollout: the canary is observed until 12:00, and others wait",
		40: "rollout: the canary is observed until\n         12:00, and others wait",
		60: "rollout: the canary is observed until 12:00, and others wait",
	} {
		if got := string(hangingText("rollout: ", text, columns)); got != want {
			t.Errorf("%d columns:\n%s", columns, got)
		}
	}
}

func annotate(t *testing.T, n *corev1.Node, key string, encode func() (string, error)) {
	t.Helper()
	text, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations[key] = text
}

func writeObjects(t *testing.T, objects ...any) string {
	t.Helper()
	dir := t.TempDir()
	for i, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func operatorSays(condition, message string) any {
	return map[string]any{
		"apiVersion": "windowsmachineconfig.openshift.io/v1alpha1", "kind": "WindowsNodesStatus",
		"metadata": map[string]any{"name": "windows-nodes", "namespace": "openshift-windows-machine-config-operator"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "RolledOut", "status": condition, "reason": "Rolling", "message": message, "lastTransitionTime": "2026-01-01T11:58:00Z"}}},
	}
}

// atNoon runs a command line at noon.
func atNoon(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	status = runCommand(t.Context(), app{stdout: &out, stderr: &errors, stdin: strings.NewReader(""), now: rolloutNoon}, args)
	return status, out.String(), errors.String()
}

// midway is a fleet in which the canary has the new bundle, one node is paused, and the others have the old one.
func midway(t *testing.T) []any {
	t.Helper()
	paused := rolledNode(t, "win-d", "old", plan.Turn{Impact: bundle.ImpactRestart, Begun: minutesAgo(500)})
	paused.Annotations[published.PausedAnnotation] = "yes"
	return []any{
		rolledNode(t, "win-a", "new", plan.Turn{Impact: bundle.ImpactRestart, Canary: true, Begun: minutesAgo(2), Ended: minutesAgo(1.5)}),
		rolledNode(t, "win-b", "old", plan.Turn{Impact: bundle.ImpactRestart, Begun: minutesAgo(500)}),
		rolledNode(t, "win-c", "old", plan.Turn{Impact: bundle.ImpactRestart, Begun: minutesAgo(500)}),
		paused,
		operatorSays("False", "0 of 4 nodes done, 1 in progress, 3 waiting; win-a: canary, settling until 2026-01-01T12:00:30Z"),
	}
}

func TestStatusShowsTheRollout(t *testing.T) {
	from := writeObjects(t, midway(t)...)
	status, stdout, stderr := atNoon(t, "status", "--from", from)
	want := `rollout: 0 of 4 nodes done, 1 in progress, 3 waiting; win-a: canary, settling for another 30s; about 2m30s left
  Waiting   win-b, win-c: waiting for canary win-a
  Waiting   win-d: the node is paused

`
	before, table, _ := strings.Cut(stdout, "NODE ")
	if diff := cmp.Diff(want, before); diff != "" || status != 1 || stderr != "" || strings.Count(table, "WaitingForCanary") != 2 || !strings.Contains(table, "Paused") {
		t.Errorf("status %d %s\n%s\n-want +got:\n%s", status, stderr, table, diff)
	}
}

func TestStatusOfOneNodeShowsItsTurns(t *testing.T) {
	from := writeObjects(t, midway(t)...)
	status, stdout, _ := atNoon(t, "status", "win-a", "--from", from)
	_, turns, _ := strings.Cut(stdout, "rollout         ")
	want := `Updating (Settling): canary, settling for another 30s
last update     2m ago  ` + rolloutBundle(t, "win-a", "new").Bundle.Short() + `, impact restart, canary, Applied after 30s
earlier         15h ago  ` + rolloutBundle(t, "win-a", "before").Bundle.Short() + `, impact restart, Applied after 2m0s
`
	if diff := cmp.Diff(want, turns); diff != "" || status != 1 {
		t.Errorf("status %d -want +got:\n%s", status, diff)
	}
	_, stdout, _ = atNoon(t, "status", "win-a", "--from", from, "-o", "json")
	var got fleet.Fleet
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Nodes) != 1 || len(got.Nodes[0].Turns) != 2 || len(got.Rollout.Nodes) != 1 || got.Rollout.Updating != 1 || got.Rollout.Waiting != 3 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestStatusAssumesNothingWithoutTheOperator shows the same Nodes where the operator reports that all have the wanted bundles, or nothing.
func TestStatusAssumesNothingWithoutTheOperator(t *testing.T) {
	nodes := midway(t)
	for name, objects := range map[string][]any{"done": append(nodes[:4:4], operatorSays("True", "4 of 4 nodes updated")), "silent": nodes[:4]} {
		_, stdout, _ := atNoon(t, "status", "--from", writeObjects(t, objects...), "-o", "json")
		var got fleet.Fleet
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || got.Rollout.Waiting != 0 || got.Rollout.Updated != 3 || got.Rollout.Updating != 1 {
			t.Errorf("%s: %v %+v", name, err, got.Rollout)
		}
	}
}

// TestStatusOfADrain shows a node that is drained for a bundle that is not published yet, and the settings of the rollout.
func TestStatusOfADrain(t *testing.T) {
	n := rolledNode(t, "win-a", "old", plan.Turn{Impact: bundle.ImpactRestart, Begun: minutesAgo(500)})
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	if err != nil {
		t.Fatal(err)
	}
	state.Slot = plan.Slot{Taken: minutesAgo(2), Held: true}
	annotate(t, &n, published.RolloutAnnotation, state.Encode)
	n.Annotations[published.CordonAnnotation], n.Spec.Unschedulable = published.CordonedForRollout, true
	settings := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "windows-machine-config", "namespace": "openshift-windows-machine-config-operator"},
		"data": map[string]any{"config.yaml": "rollout: {maxUnavailable: 3}"},
	}
	_, stdout, _ := atNoon(t, "status", "--from", writeObjects(t, n, settings), "-o", "json")
	var got fleet.Fleet
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := []plan.Status{{Node: "win-a", Phase: plan.PhaseUpdating, Reason: plan.ReasonStep, Message: "draining: the change needs a drain", Impact: bundle.ImpactDrain, Canary: true}}
	if diff := cmp.Diff(want, got.Rollout.Nodes); diff != "" || got.Rollout.Limit != 3 || got.Rollout.Unavailable != 1 {
		t.Errorf("%+v\n-want +got:\n%s", got.Rollout.Summary, diff)
	}
}

// TestStatusOfARollbackShowsTheLog of the service, whatever the node has made of it: a line each, and nothing that a terminal acts on.
func TestStatusOfARollbackShowsTheLog(t *testing.T) {
	n := rolledNode(t, "win-a", "new", plan.Turn{Impact: bundle.ImpactRestart, Begun: minutesAgo(2)})
	report, err := json.Marshal(map[string]any{
		"schema": 1, "state": "RolledBack", "desired": rolloutBundle(t, "win-a", "new").Bundle, "message": "rolled back: it is stopped",
		"log": map[string]any{"service": "kubelet", "lines": []string{"\x1b[2Junknown flag\u202e", "exit 1\nfix: run evil.exe"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations[published.ReportAnnotation] = string(report)
	from := writeObjects(t, n)
	_, stdout, _ := atNoon(t, "status", "win-a", "--from", from)
	if want := "\nlog             kubelet: unknown flag\n                kubelet: exit 1 fix: run evil.exe\n"; !strings.Contains(stdout, want) {
		t.Errorf("no log:\n%s", stdout)
	}
	_, stdout, _ = atNoon(t, "status", "win-a", "--from", from, "-o", "json")
	var got fleet.Fleet
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || strings.Join(got.Nodes[0].Log.Lines, "|") != "unknown flag|exit 1 fix: run evil.exe" {
		t.Errorf("%v\n%s", err, stdout)
	}
}
