package steps

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/heartbeat"
	"wmco/internal/test/testenv"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// plane is an executor of a real API server.
type plane struct {
	client.Client
	*Executor
	t *testing.T
	// begun are the nodes whose pods the executor has begun to evict.
	begun []string
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	c := server.Client(t)
	set, err := kubernetes.NewForConfig(server.Config(t))
	must(t, err)
	p := &plane{Client: c, t: t}
	p.Executor = &Executor{
		Notary: notary(t), Nodes: c, Live: c, Client: c, Pods: set, Namespace: namespace, Events: events.NewFakeRecorder(100), Now: time.Now, Layers: &layers.Cache{Live: c, Namespace: namespace},
		Elapsed: heartbeat.MonotonicClock(clock.RealClock{}), Heartbeats: windowsnode.SilenceByKubelet,
		Drains: &drains.Drains{Drainer: drain.Drainer{Client: set}, Live: c, Enqueue: func(_ context.Context, node string) { p.begun = append(p.begun, node) }, Changed: func() {}},
	}
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates an object until the end of the test.
func (p *plane) create(o client.Object) {
	p.t.Helper()
	must(p.t, p.Create(p.t.Context(), o))
	p.t.Cleanup(func() {
		must(p.t, client.IgnoreNotFound(p.Delete(context.Background(), o, client.GracePeriodSeconds(0))))
	})
}

// node creates a Node that is Ready and has applied a bundle.
func (p *plane) node(name string, has layers.Wanted) {
	p.t.Helper()
	node := nodeWith(p.t, has)
	node.Name, node.Labels = name, map[string]string{corev1.LabelOSStable: "windows"}
	report, err := reported(has).Encode()
	must(p.t, err)
	node.Annotations[published.ReportAnnotation] = report
	p.create(&node)
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
		{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
	}
	must(p.t, p.Status().Update(p.t.Context(), &node))
}

// reported is a report of a node about its published bundle.
func reported(has layers.Wanted) published.Report {
	r := reportOf(has)
	r.Desired = has.Bundle
	return r
}

// now returns a Node as the API server has it.
func (p *plane) now(name string) corev1.Node {
	p.t.Helper()
	var n corev1.Node
	must(p.t, p.Get(p.t.Context(), client.ObjectKey{Name: name}, &n))
	return n
}

// desired returns what a Node is told.
func (p *plane) desired(name string) published.Desired {
	p.t.Helper()
	d, err := published.DecodeDesired(p.now(name).Annotations[published.DesiredAnnotation])
	must(p.t, err)
	return d
}

// do makes a step of a Node as the API server has it, or as it was decided from.
func (p *plane) do(s plan.Step, node corev1.Node, w layers.Wanted) outcome {
	p.t.Helper()
	return p.makeSteps(p.t.Context(), []nodeStep{{Step: s, node: windowsnode.Decode(node), wanted: &w}})[0]
}

// TestAStepOfAnOldNodeIsNotMade: what a person did after the decision holds, and the executor comes back for it.
func TestAStepOfAnOldNodeIsNotMade(t *testing.T) {
	p := newPlane(t)
	has := rendered(t, "old", bundle.ImpactReboot)
	p.node("win-old", has)
	decided := p.now("win-old")
	pause := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+published.PausedAnnotation+`":"true"}}}`))
	must(t, p.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-old"}}, pause))
	take := plan.Step{Node: "win-old", Action: plan.ActionReserve, Cordon: plan.SwitchOn, State: plan.State{Slot: plan.Slot{Taken: time.Now()}}}
	did := p.do(take, decided, has)
	if !apierrors.IsConflict(did.err) || did.written {
		t.Errorf("written %v, error %v, want a conflict", did.written, did.err)
	}
	if n := p.now("win-old"); n.Spec.Unschedulable || n.Annotations[windowsnode.ScaleDownAnnotation] != "" || n.Annotations[published.RolloutAnnotation] != "" {
		t.Errorf("a node that was paused after the decision is taken: %v", n.Annotations)
	}
	// Decided from the Node of now, it is made.
	did = p.do(take, p.now("win-old"), has)
	if n := p.now("win-old"); did.err != nil || !did.written || !n.Spec.Unschedulable {
		t.Errorf("written %v, error %v, cordoned %v", did.written, did.err, n.Spec.Unschedulable)
	}
}

// TestAPodThatCameAfterTheDrain keeps a node from being told of a change that needs it drained, until the pod has ended too.
func TestAPodThatCameAfterTheDrain(t *testing.T) {
	p := newPlane(t)
	has, next := rendered(t, "old", bundle.ImpactReboot), rendered(t, "new", bundle.ImpactReboot)
	p.node("win-drained", has)
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "late"},
		Spec:       corev1.PodSpec{NodeName: "win-drained", Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}},
	}
	p.create(pod)
	held := plan.State{Slot: plan.Slot{Taken: time.Now(), Held: true}}
	p.Drains.DrainNode(t.Context(), "win-drained", held.Slot.Taken)
	for _, permit := range []bundle.Impact{bundle.ImpactDrain, bundle.ImpactReboot} {
		s := plan.Step{Node: "win-drained", Action: plan.ActionPublish, Bundle: next.Bundle, Permit: permit, State: held}
		did := p.do(s, p.now("win-drained"), next)
		if d := p.desired("win-drained"); d.Bundle != has.Bundle || d.MaxImpact != bundle.ImpactNone {
			t.Fatalf("impact %s of bundle %s is permitted while a pod runs on the node", d.MaxImpact, d.Bundle.Short())
		}
		if !errors.Is(did.err, errPodsCame) {
			t.Errorf("error %v", did.err)
		}
	}
	// It is drained again, and then told.
	p.Drains.DrainNode(t.Context(), "win-drained", held.Slot.Taken)
	if len(p.begun) != 2 {
		t.Errorf("its drain was begun %d times, want 2", len(p.begun))
	}
	must(t, p.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	s := plan.Step{Node: "win-drained", Action: plan.ActionPublish, Bundle: next.Bundle, Permit: bundle.ImpactReboot, State: held}
	did := p.do(s, p.now("win-drained"), next)
	if d := p.desired("win-drained"); did.err != nil || d.Bundle != next.Bundle || d.MaxImpact != bundle.ImpactReboot {
		t.Errorf("error %v, impact %s of bundle %s", did.err, d.MaxImpact, d.Bundle.Short())
	}
}

// behind is a cache that has not seen anything since it was filled.
type behind struct {
	client.Reader
	nodes []corev1.Node
}

func (b behind) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	u, ok := list.(*unstructured.UnstructuredList)
	if !ok || u.GetKind() != "NodeList" {
		return b.Reader.List(ctx, list, o...)
	}
	for _, n := range b.nodes {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&n)
		if err != nil {
			return err
		}
		u.Items = append(u.Items, unstructured.Unstructured{Object: object})
	}
	return nil
}

// twoNodes makes win-1 and win-2, which have a bundle.
func (p *plane) twoNodes(has layers.Wanted) {
	p.t.Helper()
	// A namespace does not end without controllers.
	must(p.t, client.IgnoreAlreadyExists(p.Create(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	for _, part := range has.Cluster.Secrets {
		p.create(layers.Secret{Part: part, Label: has.Cluster.Label()}.SecretObject(namespace))
	}
	p.node("win-1", has)
	p.node("win-2", has)
}

// TestACacheThatIsBehind: a node that was told to restart its services holds its place, although the cache does not show it yet.
func TestACacheThatIsBehind(t *testing.T) {
	p := newPlane(t)
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	p.twoNodes(has)
	cache := behind{Reader: p.Client, nodes: []corev1.Node{p.now("win-1"), p.now("win-2")}}
	p.Nodes = cache
	policy := plan.Policy{MaxParallel: 1, FailureLimit: 1, Timeout: time.Hour}
	told := func(wanted ...string) (names []string) {
		t.Helper()
		r := Rendered{Wanted: map[string]layers.Wanted{}, Policy: policy}
		for _, name := range wanted {
			r.Wanted[name] = next
		}
		_, err := p.RunSteps(t.Context(), r)
		must(t, err)
		for _, name := range []string{"win-1", "win-2"} {
			if d := p.desired(name); d.Bundle == next.Bundle && d.MaxImpact == bundle.ImpactRestart {
				names = append(names, name)
			}
		}
		return names
	}
	if names := told("win-1", "win-2"); len(names) != 1 || names[0] != "win-1" {
		t.Fatalf("%q may restart their services, want win-1", names)
	}
	// The inputs of win-1 are refused now, so that it does not come first any more.
	if names := told("win-2"); len(names) != 1 {
		t.Errorf("%q may restart their services at the same time, and only one may", names)
	}
	// When the cache shows that it is done, the next one is told.
	done := p.now("win-1")
	report, err := reported(next).Encode()
	must(t, err)
	done.Annotations[published.ReportAnnotation] = report
	must(t, p.Update(t.Context(), &done))
	cache.nodes = []corev1.Node{p.now("win-1"), p.now("win-2")}
	p.Nodes = cache
	if names := told("win-1", "win-2"); len(names) != 2 {
		t.Errorf("%q were told, want both", names)
	}
}

// TestABundleThatWasRenderedFromAnotherNode: what was made before the node had networks is not published when it has them.
func TestABundleThatWasRenderedFromAnotherNode(t *testing.T) {
	p := newPlane(t)
	has, next := rendered(t, "old", bundle.ImpactNone), rendered(t, "new", bundle.ImpactNone)
	p.node("win-1", has)
	next.From = bundle.Of([]byte("without networks"))
	now := bundle.Of([]byte("with networks"))
	told := func() bool {
		t.Helper()
		r := Rendered{Wanted: map[string]layers.Wanted{"win-1": next}, Policy: plan.Policy{MaxParallel: 1, FailureLimit: 1, Timeout: time.Hour}, From: func(windowsnode.Node) bundle.Digest { return now }}
		_, err := p.RunSteps(t.Context(), r)
		must(t, err)
		return p.desired("win-1").Bundle == next.Bundle
	}
	if told() {
		t.Error("the node was told of a bundle that was rendered before it changed")
	}
	if next.From = now; !told() {
		t.Error("the node was not told of the bundle that was rendered from it as it is")
	}
}

// TestAPlaceThatTheCacheDoesNotShow: a node is taken only if there is a place for it at the API server, whatever the cache has.
func TestAPlaceThatTheCacheDoesNotShow(t *testing.T) {
	p := newPlane(t)
	has, next := rendered(t, "before", bundle.ImpactReboot), rendered(t, "after", bundle.ImpactReboot)
	p.twoNodes(has)
	p.Nodes = behind{Reader: p.Client, nodes: []corev1.Node{p.now("win-1"), p.now("win-2")}}
	// The operator that was the leader before has taken win-2.
	taken := p.now("win-2")
	state, err := plan.State{Slot: plan.Slot{Taken: time.Now().UTC().Truncate(time.Second), Held: true}}.Encode()
	must(t, err)
	taken.Annotations[published.RolloutAnnotation], taken.Annotations[published.CordonAnnotation] = state, published.CordonedForRollout
	taken.Spec.Unschedulable = true
	must(t, p.Update(t.Context(), &taken))
	_, err = p.RunSteps(t.Context(), Rendered{
		Wanted: map[string]layers.Wanted{"win-1": next, "win-2": next},
		Policy: plan.Policy{MaxUnavailable: intstr.FromInt32(1), MaxParallel: 1, FailureLimit: 1, Timeout: time.Hour},
	})
	must(t, err)
	if n := p.now("win-1"); n.Spec.Unschedulable || n.Annotations[published.RolloutAnnotation] != "" {
		t.Errorf("win-1 is taken while win-2 is, and only one may be unavailable: %v", n.Annotations)
	}
}
