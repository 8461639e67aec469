package configure

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// TestARemovalIsTakenBack when its entry is there again, whatever bundle the node has by then.
func TestARemovalIsTakenBack(t *testing.T) {
	const back = "Joining Completing: the removal is canceled, because the host has an entry again"
	removed := func(n *corev1.Node) {
		n.Annotations[VersionAnnotation], n.Annotations[JoiningAnnotation], n.Spec.Unschedulable = "1.0.0", ValueTrue, true
		n.Spec.Taints = []corev1.Taint{{Key: "of-a-user", Effect: corev1.TaintEffectNoSchedule}, {Key: windowsnode.RemovingTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Node)
		// after is its next message.
		after string
		works bool
	}{
		"it works": {func(*corev1.Node) {}, "Joined Joined: ", true},
		"its kubelet is stopped": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
			"Joining Completing: waiting for the node: its kubelet is not Ready yet", false},
		"its agent is silent": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon().Add(time.Hour)) },
			"Joining Completing: waiting for the first report of the node agent", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.isNode(ready)
			s.join(hostA)
			older := s.applied()
			older.Applied = bundle.Of([]byte("of before"))
			s.publish(older, removed, tt.change)
			if got := described(s.join(hostA)); got != back {
				t.Error(got)
			}
			n := s.node("win-a")
			_, joins := n.Annotations[JoiningAnnotation]
			_, joined := n.Annotations[VersionAnnotation]
			tainted := windowsnode.HasTaint(n, windowsnode.RemovingTaint)
			if n.Spec.Unschedulable == tt.works || tainted == tt.works || joins == tt.works || joined != tt.works || !windowsnode.HasTaint(n, "of-a-user") {
				t.Errorf("cordoned %t, taints %v, joining %t, joined %t", n.Spec.Unschedulable, n.Spec.Taints, joins, joined)
			}
			if got := described(s.join(hostA)); got != tt.after {
				t.Errorf("%q, want %q", got, tt.after)
			}
		})
	}
}

// TestTheCordonOfAnInterruptedUpgradeIsLifted: the existing operator was removed while it upgraded the node. Where it had removed the version, the node
// joins, otherwise it is adopted.
func TestTheCordonOfAnInterruptedUpgradeIsLifted(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*corev1.Node)
		cordoned bool
	}{
		"without a version":            {func(*corev1.Node) {}, false},
		"with a version":               {annotated(VersionAnnotation, "0.9.0"), false},
		"cordoned by an administrator": {func(n *corev1.Node) { delete(n.Labels, published.UpgradingLabel) }, true},
		"cordoned for a turn":          {annotated(published.CordonAnnotation, published.CordonedForRollout), true},
		"upgraded by this operator":    {annotated(DesiredVersionAnnotation, version), true},
		"adopted, and cordoned then": {func(n *corev1.Node) {
			annotated(VersionAnnotation, "0.9.0")(n)
			annotated(DesiredVersionAnnotation, version)(n)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.isNode(ready, annotated(DesiredVersionAnnotation, "0.9.0"), func(n *corev1.Node) {
				n.Spec.Unschedulable, n.Labels[published.UpgradingLabel] = true, ValueTrue
			}, tt.change)
			s.comesFrom(record.OriginAdopted)
			if s.join(hostA); s.node("win-a").Annotations[VersionAnnotation] == "" {
				s.publish(s.applied())
				s.join(hostA)
			}
			n := s.node("win-a")
			if _, upgrading := n.Labels[published.UpgradingLabel]; n.Spec.Unschedulable != tt.cordoned || upgrading && !tt.cordoned || n.Annotations[VersionAnnotation] == "" {
				t.Errorf("cordoned %t, labels %v, %v", n.Spec.Unschedulable, n.Labels, n.Annotations)
			}
		})
	}
}

// TestANodeThatIsBeingDeletedHasNotJoined: its annotations stay until a finalizer is removed, and its host may have been cleaned up.
func TestANodeThatIsBeingDeletedHasNotJoined(t *testing.T) {
	s := newScene(t)
	s.isNode(ready, func(n *corev1.Node) { n.Finalizers = []string{"example.com/keep"} })
	s.join(hostA)
	s.publish(s.applied())
	must(t, s.client.Delete(t.Context(), s.node("win-a")))
	const want = "Waiting Completing: the Node is being deleted, and waits for its finalizers example.com/keep; fix: check the controllers of these finalizers"
	if got := described(s.join(hostA)); got != want || !s.node("win-a").Spec.Unschedulable {
		t.Errorf("%q, want %q; cordoned %t", got, want, s.node("win-a").Spec.Unschedulable)
	}
}
