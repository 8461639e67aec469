package olm

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
)

// movingNode is a node that has joined, changed by a test.
func movingNode(t *testing.T, change func(n *corev1.Node, report *published.Report, state *plan.State)) corev1.Node {
	t.Helper()
	var layers [2]published.Layer
	for i, kind := range []bundle.LayerKind{bundle.LayerCluster, bundle.LayerNode} {
		packed, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined})
		if err != nil {
			t.Fatal(err)
		}
		layers[i] = packed.Layer
	}
	digest, err := bundle.DigestLayers(layers[0].Digest, layers[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := published.Desired{Bundle: digest, MaxImpact: bundle.ImpactRestart, Namespace: "a", Cluster: layers[0], Node: layers[1]}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{published.VersionAnnotation: "1", published.DesiredAnnotation: desired}}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))},
	}
	report, state := published.Report{State: published.StateApplied, Desired: digest}, plan.State{}
	change(&n, &report, &state)
	if n.Annotations[published.ReportAnnotation], err = report.Encode(); err != nil {
		t.Fatal(err)
	}
	if n.Annotations[published.RolloutAnnotation], err = state.Encode(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOnlyNodesThatMoveKeepTheOperatorFromAnUpgrade and not those that wait for a person, or for an upgrade.
func TestOnlyNodesThatMoveKeepTheOperatorFromAnUpgrade(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	silence := func(n windowsnode.Node) time.Duration { return now.Sub(n.AgentCondition.LastHeartbeatTime.Time) }
	applying := func(_ *corev1.Node, r *published.Report, _ *plan.State) { r.State = published.StateApplying }
	and := func(changes ...func(*corev1.Node, *published.Report, *plan.State)) func(*corev1.Node, *published.Report, *plan.State) {
		return func(n *corev1.Node, r *published.Report, s *plan.State) {
			for _, change := range changes {
				change(n, r, s)
			}
		}
	}
	annotated := func(key, value string) func(*corev1.Node, *published.Report, *plan.State) {
		return func(n *corev1.Node, _ *published.Report, _ *plan.State) { n.Annotations[key] = value }
	}
	lost := func(n *corev1.Node, _ *published.Report, _ *plan.State) {
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
	}
	reports := func(s published.State) func(*corev1.Node, *published.Report, *plan.State) {
		return func(_ *corev1.Node, r *published.Report, _ *plan.State) { r.State = s }
	}
	claims := func(held bool) func(*corev1.Node, *published.Report, *plan.State) {
		return func(_ *corev1.Node, _ *published.Report, s *plan.State) {
			s.Slot = plan.Slot{Taken: now, Held: held}
		}
	}
	canary := func(confirmed, failed bool) func(*corev1.Node, *published.Report, *plan.State) {
		return func(_ *corev1.Node, r *published.Report, s *plan.State) {
			s.Turn = plan.Turn{Bundle: r.Desired, Impact: bundle.ImpactRestart, Canary: true, Begun: now, Permitted: now, Ended: now}
			if confirmed {
				s.Turn.Confirmed = now
			}
			if failed {
				s.Failed = r.Desired
			}
		}
	}
	otherTurn := func(_ *corev1.Node, _ *published.Report, s *plan.State) { s.Turn.Bundle = bundle.Of([]byte("another")) }
	for name, tt := range map[string]struct {
		change func(*corev1.Node, *published.Report, *plan.State)
		// want is a part of the message; empty is none.
		want string
	}{
		"it has what is published":     {func(*corev1.Node, *published.Report, *plan.State) {}, ""},
		"it applies":                   {applying, "win-a is applying its bundle"},
		"it is drained":                {claims(true), "win-a is being updated by the rollout"},
		"it may have to give way":      {claims(false), ""},
		"it is a canary":               {canary(false, false), "win-a is a settling canary"},
		"it was a canary":              {canary(true, false), ""},
		"it is a canary that failed":   {canary(false, true), ""},
		"it was one of another bundle": {and(canary(false, false), otherTurn), ""},
		"it joins":                     {and(annotated(published.JoiningAnnotation, "true"), annotated(published.VersionAnnotation, "")), "win-a is joining"},
		"it is removed":                {annotated(published.JoiningAnnotation, "true"), "win-a is being removed"},
		"it waits for permission":      {reports(published.StateNeedsPermission), ""},
		"it failed":                    {reports(published.StateFailed), ""},
		"it failed in its turn":        {and(reports(published.StateRolledBack), claims(true)), ""},
		"it was lost while it applied": {and(applying, lost), ""},
		"it was lost in its turn":      {and(claims(true), lost), ""},
		"it is paused":                 {and(applying, annotated(published.PausedAnnotation, "")), ""},
		"its agent is silent": {and(applying, func(n *corev1.Node, _ *published.Report, _ *plan.State) {
			n.Status.Conditions[1].LastHeartbeatTime.Time = now.Add(-time.Hour)
		}), ""},
	} {
		c := conditionOf([]windowsnode.Node{windowsnode.Decode(movingNode(t, tt.change))}, silence, nothingChanges)
		switch {
		case tt.want == "" && (c.Status != metav1.ConditionTrue || c.Reason != ReasonSafe):
			t.Errorf("%s: %+v", name, c)
		case tt.want != "" && (c.Status != metav1.ConditionFalse || c.Reason != ReasonNotSafe || !strings.Contains(c.Message, tt.want)):
			t.Errorf("%s: %+v", name, c)
		}
	}
	var many []windowsnode.Node
	for range 7 {
		many = append(many, windowsnode.Decode(movingNode(t, applying)))
	}
	if c := conditionOf(many, silence, nothingChanges); !strings.HasPrefix(c.Message, "7 Windows nodes") || !strings.Contains(c.Message, "and 2 more") {
		t.Errorf("%s", c.Message)
	}
}

func nothingChanges(string) bool { return false }

// TestANodeWhoseStepIsDueKeepsTheOperatorFromAnUpgrade: between the canary and the others no Node shows that the rollout goes on, and the rollout
// does.
func TestANodeWhoseStepIsDueKeepsTheOperatorFromAnUpgrade(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	silence := func(n windowsnode.Node) time.Duration { // of an agent that never reported since its Node is there
		return now.Sub(cmp.Or(n.AgentCondition.LastHeartbeatTime.Time, n.CreationTimestamp.Time))
	}
	reports := func(s published.State) func(*corev1.Node, *published.Report, *plan.State) {
		return func(_ *corev1.Node, r *published.Report, _ *plan.State) { r.State = s }
	}
	neverReported := func(since time.Duration) func(*corev1.Node, *published.Report, *plan.State) {
		return func(n *corev1.Node, r *published.Report, _ *plan.State) {
			n.CreationTimestamp.Time, n.Status.Conditions, *r = now.Add(-since), n.Status.Conditions[:1], published.Report{}
		}
	}
	for name, tt := range map[string]struct {
		change   func(*corev1.Node, *published.Report, *plan.State)
		changing []string
		want     string
	}{
		"it has what is published":  {reports(published.StateApplied), []string{"win-a"}, "1 Windows node being changed: win-a is being updated; "},
		"it has not begun":          {func(_ *corev1.Node, r *published.Report, _ *plan.State) { r.Desired = bundle.Of(nil) }, []string{"win-a"}, "1 Windows node being changed: win-a is being updated; "},
		"it waits for a permission": {reports(published.StateNeedsPermission), []string{"win-b", "win-a"}, "1 Windows node being changed: win-a is being updated; "},
		"another one":               {reports(published.StateApplied), []string{"win-b"}, ""},
		"it has failed":             {reports(published.StateFailed), []string{"win-a"}, ""},
		"it lacks executables":      {reports(published.StatePayloadMissing), []string{"win-a"}, ""},
		"it is paused": {func(n *corev1.Node, _ *published.Report, _ *plan.State) {
			n.Annotations[published.PausedAnnotation] = ""
		}, []string{"win-a"}, ""},
		"it is lost": {func(n *corev1.Node, _ *published.Report, _ *plan.State) {
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		}, []string{"win-a"}, ""},
		"it is silent": {func(n *corev1.Node, _ *published.Report, _ *plan.State) {
			n.Status.Conditions[1].LastHeartbeatTime.Time = now.Add(-time.Hour)
		}, []string{"win-a"}, ""},
		"it has never reported":          {neverReported(time.Hour), []string{"win-a"}, ""},
		"it has not reported yet":        {neverReported(time.Minute), []string{"win-a"}, "1 Windows node being changed: win-a is being updated; "},
		"the rollout has looked at none": {reports(published.StateApplied), nil, ""},
	} {
		var rollout status.Upgrade
		if tt.changing != nil {
			rollout.NoteChanging(tt.changing)
		}
		c := conditionOf([]windowsnode.Node{windowsnode.Decode(movingNode(t, tt.change))}, silence, rollout.IsChanging)
		if (tt.want == "") != (c.Status == metav1.ConditionTrue) || !strings.HasPrefix(c.Message, tt.want) {
			t.Errorf("%s: %+v", name, c)
		}
		rollout.NoteChanging(nil)
		if rollout.IsChanging("win-a") {
			t.Errorf("%s: a rollout that has ended goes on", name)
		}
	}
}

func oldKubelets(text string) *status.Upgrade {
	var u status.Upgrade
	u.NoteKubelets(metav1.Condition{Status: metav1.ConditionFalse, Message: text})
	return &u
}

// TestOldKubeletsAreSaidAndHoldNothingUp: OLM would hold back the operator, and not the cluster.
func TestOldKubeletsAreSaidAndHoldNothingUp(t *testing.T) {
	const old = "OpenShift refuses the next minor update"
	safe := conditionOf(nil, windowsnode.SilenceByKubelet, nothingChanges)
	if c := withKubelets(safe, old); c.Status != metav1.ConditionTrue || c.Reason != ReasonSafe || !strings.HasSuffix(c.Message, "; "+old) {
		t.Errorf("%+v", c)
	}
	if c := withKubelets(safe, ""); c != safe {
		t.Errorf("%+v", c)
	}
}

// TestAnErrorComesWithoutAPause: the library would ignore it, and say so each time.
func TestAnErrorComesWithoutAPause(t *testing.T) {
	c := fake.NewFakeClient() // without the OperatorCondition
	u := &Upgradeable{Nodes: c, Live: c, Client: c, Namespace: "n", Name: "name", Now: time.Now, Silence: windowsnode.SilenceByKubelet, Rollout: &status.Upgrade{}}
	if result, err := u.Reconcile(t.Context(), reconcile.Request{}); err == nil || result.RequeueAfter != 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestOldKubeletsAreToldToOLM, in the condition that administrators look at before an update.
func TestOldKubeletsAreToldToOLM(t *testing.T) {
	const old = "OpenShift refuses the next minor update of this cluster"
	condition := base.NewObject(kindOperatorCondition())
	condition.SetNamespace("n")
	condition.SetName("name")
	c := fake.NewClientBuilder().WithObjects(condition).Build()
	u := &Upgradeable{Nodes: c, Live: c, Client: c, Namespace: "n", Name: "name", Now: time.Now, Silence: windowsnode.SilenceByKubelet, Rollout: oldKubelets(old)}
	if _, err := u.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(condition), condition); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(condition.Object["spec"]); !strings.Contains(text, old) || !strings.Contains(text, "status:True") {
		t.Errorf("%s", text)
	}
}
