package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// objects is a client.Reader of Nodes and of the status.
type objects struct {
	nodes  []corev1.Node
	status map[string]any
	err    error
}

func (o objects) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object = map[string]any{"status": o.status}
	return o.err
}

func (o objects) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.NodeList).Items = o.nodes
	return o.err
}

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// samples returns the output of a collector, without help texts.
func samples(t *testing.T, nodes, status objects) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(&Collector{Nodes: nodes, Live: status, Namespace: "ns", Now: func() time.Time { return now }, Silence: windowsnode.SilenceByKubelet, Unjoined: func() map[string]int { return map[string]int{"Unreachable": 2} }}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text, kept strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, "} 0\n") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// node returns a Node with a published bundle, the report of its agent and the state of its rollout.
func node(t *testing.T, name string, report published.Report, state string) corev1.Node {
	t.Helper()
	packed := func(text string) published.Layer {
		return published.Layer{Digest: bundle.Of([]byte(text)), Inline: []byte(text)}
	}
	d := published.Desired{MaxImpact: bundle.ImpactRestart, Namespace: "ns", Cluster: packed("cluster"), Node: packed("node")}
	d.Bundle = wanted(t)
	desired, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text, err := report.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{published.DesiredAnnotation: desired, published.ReportAnnotation: text, published.RolloutAnnotation: state}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: published.Condition, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)), LastHeartbeatTime: metav1.NewTime(now.Add(-time.Minute))}}},
	}
}

func wanted(t *testing.T) bundle.Digest {
	t.Helper()
	digest, err := bundle.DigestLayers(bundle.Of([]byte("cluster")), bundle.Of([]byte("node")))
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func encode(t *testing.T, s plan.State) string {
	t.Helper()
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCollector(t *testing.T) {
	want, other := wanted(t), bundle.Of([]byte("other"))
	at := func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) }
	turn := func(of bundle.Digest, begun, permitted, ended int) plan.Turn {
		return plan.Turn{Bundle: of, Impact: bundle.ImpactDrain, Begun: at(begun), Permitted: at(permitted), Ended: at(ended)}
	}
	status := objects{status: map[string]any{"nodes": map[string]any{"refused": int64(1)}, "conditions": []any{map[string]any{"type": "Published", "status": "False", "reason": "PublishFailed"}}}}
	const rest = `wmco_condition{reason="PublishFailed",status="False",type="Published"} 1
`
	tests := map[string]struct {
		report published.Report
		state  string
		want   string
	}{
		"a node with its bundle": {
			published.Report{State: published.StateApplied, Desired: want, Applied: want, Repaired: 4},
			encode(t, plan.State{Turn: turn(want, -30, -25, -10)}), `wmco_node_drift_repaired_entries{node="n"} 4
wmco_node_last_change_seconds{impact="drain",node="n",phase="apply"} 900
wmco_node_last_change_seconds{impact="drain",node="n",phase="drain"} 300
wmco_node_state{node="n",reason="Applied",state="Updated"} 1
wmco_nodes{state="Updated"} 1
wmco_oldest_pending_change_seconds 0
`,
		},
		"a node that applies since its turn began": {
			published.Report{State: published.StateApplying, Desired: want, Applied: other},
			encode(t, plan.State{Turn: plan.Turn{Bundle: want, Begun: at(-20), Permitted: at(-15)}}), `wmco_node_pending_since_timestamp_seconds{node="n"} 1.7953476e+09
wmco_node_state{node="n",reason="Applying",state="Updating"} 1
wmco_nodes{state="Updating"} 1
wmco_oldest_pending_change_seconds 1200
`,
		},
		"a stale node without a turn": {
			published.Report{State: published.StateApplied, Desired: other, Applied: other}, "", `wmco_node_state{node="n",reason="",state="Stale"} 1
wmco_nodes{state="Stale"} 1
wmco_oldest_pending_change_seconds 0
`,
		},
		"a bundle that was rolled back, and one before": {
			published.Report{State: published.StateRolledBack, Cause: published.CauseService, Desired: want, Applied: other},
			encode(t, plan.State{Failed: want, Past: []plan.Turn{{Bundle: bundle.Of(nil), Result: published.StateRolledBack}}}), `wmco_node_pending_since_timestamp_seconds{node="n"} 1.7953452e+09
wmco_node_rolled_back_changes{node="n"} 2
wmco_node_state{node="n",reason="RolledBack",state="Degraded"} 1
wmco_nodes{state="Degraded"} 1
wmco_oldest_pending_change_seconds 3600
`,
		},
		"a state of the rollout that the node has overwritten": {
			published.Report{State: published.StateApplied, Desired: want, Applied: want},
			`{"schema":1,"turn":{"bundle":"\u0000","impact":"\u0001","begun":"2026-11-22T11:00:00Z","permitted":"2026-11-22T11:01:00Z","ended":"2026-11-22T11:02:00Z"}}`, `wmco_node_state{node="n",reason="Applied",state="Updated"} 1
wmco_nodes{state="Updated"} 1
wmco_oldest_pending_change_seconds 0
`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := samples(t, objects{nodes: []corev1.Node{node(t, "n", tt.report, tt.state)}}, status)
			rolled := ""
			if tt.report.State == published.StateRolledBack {
				rolled = "wmco_rolled_back_nodes{cause=\"service\"} 1\n"
			}
			if diff := cmp.Diff(rest+tt.want+"wmco_refused_nodes 1\n"+rolled+"wmco_scrape_complete 1\nwmco_unjoined_hosts{reason=\"Unreachable\"} 2\n", got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What cannot be read spoils no scrape.
func TestCollectorWithoutCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"the API server is away":                {errors.New("away"), "wmco_scrape_complete 0\n"},
		"the cluster does not serve the status": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "WindowsNodesStatus"}}, "wmco_scrape_complete 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := samples(t, objects{}, objects{err: tt.err})
			if want := "wmco_oldest_pending_change_seconds 0\n" + tt.want + "wmco_unjoined_hosts{reason=\"Unreachable\"} 2\n"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestCollectorSaysWhatTheWindowsOfANodeNeeds(t *testing.T) {
	want := wanted(t)
	report := published.Report{
		State: published.StateApplied, Desired: want, Applied: want, NetworkRestarts: 2,
		Images: published.ImageProgress{Wanted: 5, Present: 2},
		Facts:  &bundle.Facts{PendingBoots: []bundle.BootReason{bundle.BootForUpdates, "a label that a host chooses"}},
	}
	got := samples(t, objects{nodes: []corev1.Node{node(t, "win-a", report, "")}}, objects{})
	for _, line := range []string{"wmco_node_pinned_images_missing{node=\"win-a\"} 3\n", "wmco_node_host_network_restarts{node=\"win-a\"} 2\n", "wmco_node_windows_reboot_pending{node=\"win-a\",reason=\"Updates\"} 1\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "chooses") {
		t.Errorf("a host has chosen a label:\n%s", got)
	}
}
