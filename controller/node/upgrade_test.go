package node

import (
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/windowsnode"
)

// TestVersionsOfANodeOnItsWayToAnother: the label stands from when the bundle with the executables is published until it is applied, the
// version changes when it is.
func TestVersionsOfANodeOnItsWayToAnother(t *testing.T) {
	older, newer := bundle.Of([]byte("older")), bundle.Of([]byte("newer"))
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	up := &upgrader{joiner: &configure.Joiner{Version: "2", Silence: windowsnode.SilenceByKubelet}}
	for _, tt := range []struct {
		name    string
		payload bundle.Digest
		state   published.State
		// version and label are what the node gets; empty is nothing.
		version, label string
	}{
		{"its executables are not on the host", older, published.StateApplied, "", ""},
		{"it applies the bundle with them", newer, published.StateApplying, "", "true"},
		{"it waits for its drain", newer, published.StateNeedsPermission, "", "true"},
		{"it was rolled back", newer, published.StateRolledBack, "", "true"},
		{"it has the bundle with them", newer, published.StateApplied, "2", ""},
	} {
		layers := [2]bundle.Digest{bundle.Of([]byte("cluster")), bundle.Of([]byte("node"))}
		whole, err := bundle.DigestLayers(layers[0], layers[1])
		if err != nil {
			t.Fatal(err)
		}
		d := published.Desired{
			Bundle: whole, MaxImpact: bundle.ImpactDrain, Namespace: "operator", Payload: tt.payload,
			Cluster: published.Layer{Digest: layers[0], Parts: 1}, Node: published.Layer{Digest: layers[1], Parts: 1},
		}
		desired, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		report, err := published.Report{State: tt.state, Desired: whole}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{
			configure.VersionAnnotation: "1", published.DesiredAnnotation: desired, published.ReportAnnotation: report,
		}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}
		m := up.versionMarks(windowsnode.Decode(*node), newer)
		if m.Annotations[configure.DesiredVersionAnnotation] != "2" || m.Annotations[configure.VersionAnnotation] != tt.version || m.Labels[published.UpgradingLabel] != tt.label {
			t.Errorf("%s: %+v", tt.name, m)
		}
	}
}

// TestACopyWhoseConnectionWasLostGoesOnSoon: what has arrived is on the host. Another failure stays for longer.
func TestACopyWhoseConnectionWasLostGoesOnSoon(t *testing.T) {
	if got := copyAgainAfter(fmt.Errorf("copying: %w", &remote.InterruptedError{Err: io.EOF})); got != retryInterrupted {
		t.Errorf("after a lost connection: %s", got)
	}
	if got := copyAgainAfter(&remote.AuthError{Err: io.EOF}); got != retrySilent {
		t.Errorf("after a refused login: %s", got)
	}
}
