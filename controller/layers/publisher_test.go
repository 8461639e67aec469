package layers

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
	"wmco/internal/test/testenv"
)

const namespace = "openshift-windows-machine-config-operator"

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// testCluster is a cluster with Windows nodes on the real API server.
type testCluster struct {
	client.WithWatch
	publisher *Publisher
	// now is the wall clock of the publisher, elapsed its monotonic one.
	now     time.Time
	elapsed time.Duration
	// writes are counted; the one with the number fail is refused, if it is not 0.
	writes, fail int
}

var errRefused = errors.New("refused by the test")

func (c *testCluster) write() error {
	if c.writes++; c.writes == c.fail {
		return errRefused
	}
	return nil
}

func newTestCluster(t *testing.T, nodes ...string) *testCluster {
	t.Helper()
	admin, err := client.NewWithWatch(server.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{WithWatch: admin, now: time.Now()}
	create := func(o client.Object) {
		if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	for _, name := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
		create(node)
		t.Cleanup(func() { _ = admin.Delete(context.Background(), node) })
	}
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud-private-key"}})
	counted := interceptor.NewClient(admin, interceptor.Funcs{
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return errors.Join(c.write(), w.Create(ctx, o, opts...))
		},
		Apply: func(ctx context.Context, w client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if err := c.write(); err != nil {
				return err
			}
			return w.Apply(ctx, o, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := c.write(); err != nil {
				return err
			}
			return w.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.write(); err != nil {
				return err
			}
			return w.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := c.write(); err != nil {
				return err
			}
			return w.Delete(ctx, o, opts...)
		},
	})
	c.publisher = &Publisher{Nodes: admin, Layers: admin, Live: admin, Client: counted, Namespace: namespace, Known: everyone, Now: func() time.Time { return c.now }, Elapsed: func() time.Duration { return c.elapsed }}
	t.Cleanup(func() {
		c.fail = 0
		for _, name := range nodes {
			_ = admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		if _, err := c.publisher.PublishLayers(context.Background(), nil); err != nil {
			t.Error(err)
		}
	})
	return c
}

// publish publishes the layers, and tells the nodes of their bundles. It returns the number of writes for the layers.
func (c *testCluster) publish(t *testing.T, wanted ...Wanted) int {
	t.Helper()
	before := c.writes
	if _, err := c.publisher.PublishLayers(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	c.tell(t, wanted...)
	return c.writes - before
}

// tell tells nodes of their bundles, as the rollout does.
func (c *testCluster) tell(t *testing.T, wanted ...Wanted) {
	t.Helper()
	for _, w := range wanted {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}}
		before := o.DeepCopy()
		o.Annotations = map[string]string{published.DesiredAnnotation: text(t, w, bundle.ImpactRestart)}
		if err := c.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *testCluster) observe(t *testing.T) Observed {
	t.Helper()
	o, err := c.publisher.observeCluster(t.Context(), c, c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (c *testCluster) report(t *testing.T, node string, r published.Report) {
	t.Helper()
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	before := o.DeepCopy()
	o.Annotations = map[string]string{published.ReportAnnotation: report(t, r)}
	if err := c.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedBundlesAreNotWritten(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	wanted := []Wanted{wish(t, "win-a", "shared", "a"), wish(t, "win-b", "shared", "b")}
	// A Secret, the Role and its binding.
	if n := c.publish(t, wanted...); n != 3 {
		t.Errorf("%d writes at first", n)
	}
	if n := c.publish(t, wanted...); n != 0 {
		t.Errorf("%d writes when nothing changed", n)
	}
	checkReadable(t, c.observe(t))
	// One node of the two changes: its layer is on the Node.
	if n := c.publish(t, wanted[0], wish(t, "win-b", "shared", "changed")); n != 0 {
		t.Errorf("%d writes for one node", n)
	}
}

// TestAnInterruptedPublicationIsContinued refuses one write after the other: no node ever learns of a layer that it cannot
// read, and the next call ends the work.
func TestAnInterruptedPublicationIsContinued(t *testing.T) {
	for n := 1; ; n++ {
		c := newTestCluster(t, "win-a", "win-b")
		c.publish(t, wish(t, "win-a", "old", "a"), wish(t, "win-b", "old", "b"))
		wanted := []Wanted{wish(t, "win-a", noise(published.PartSize+1), "a"), wish(t, "win-b", noise(published.PartSize+1), "b")}
		c.writes, c.fail = 0, n
		_, err := c.publisher.PublishLayers(t.Context(), wanted)
		if err == nil {
			c.tell(t, wanted...)
		}
		checkReadable(t, c.observe(t))
		checkAccess(t, c.observe(t))
		if err == nil {
			if n < 4 {
				t.Errorf("only %d writes", n-1)
			}
			return
		}
		if !errors.Is(err, errRefused) {
			t.Fatal(err)
		}
		c.publish(t, wanted...)
		for _, node := range c.observe(t).Nodes {
			if !slices.ContainsFunc(wanted, func(w Wanted) bool { return w.Bundle == node.Desired.Bundle }) {
				t.Errorf("after write %d was refused, %s has %+v", n, node.Name, node.Desired)
			}
		}
		_ = c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a"}})
		_ = c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-b"}})
	}
}

// checkAccess checks that nodes may read the published layers, and nothing that other users may yet create under such a name.
func checkAccess(t *testing.T, o Observed) {
	t.Helper()
	for _, name := range o.Readable {
		if _, ok := o.Secrets[name]; !ok {
			t.Errorf("nodes may read the Secret %s, which is not published", name)
		}
	}
}

// TestNodesReadTheirLayersAndNothingElse asks the real authorizers.
func TestNodesReadTheirLayersAndNothingElse(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	w := wish(t, "win-a", "shared", "a")
	c.publish(t, w)
	node, stranger := testenv.NewClient(t, server.Node(t, "win-a")), testenv.NewClient(t, server.Node(t, "linux-a"))
	layer, other := client.ObjectKey{Namespace: namespace, Name: w.Cluster.Names()[0]}, client.ObjectKey{Namespace: namespace, Name: "cloud-private-key"}
	if err := testenv.Eventually(t.Context(), "the node's access", func() bool { return node.Get(t.Context(), layer, &corev1.Secret{}) == nil }); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another Secret":                       node.Get(t.Context(), other, &corev1.Secret{}),
		"all Secrets":                          node.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace)),
		"the layer, by a node that has none":   stranger.Get(t.Context(), layer, &corev1.Secret{}),
		"deleting the layer":                   node.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: layer.Namespace, Name: layer.Name}}),
		"writing another Node's annotations":   patchNode(t, node, "win-b"),
		"reading its own Node is allowed":      invert(node.Get(t.Context(), client.ObjectKey{Name: "win-a"}, &corev1.Node{})),
		"reporting on its own Node is allowed": invert(patchNode(t, node, "win-a")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A layer that is no longer published is no longer readable.
	c.publish(t, wish(t, "win-a", "other", "a"))
	c.report(t, "win-a", published.Report{State: published.StateApplied})
	c.publish(t, wish(t, "win-a", "other", "a"))
	if err := testenv.Eventually(t.Context(), "the end of the node's access", func() bool { return apierrors.IsForbidden(node.Get(t.Context(), layer, &corev1.Secret{})) }); err != nil {
		t.Error(err)
	}
}

// invert makes success what the test expects.
func invert(err error) error {
	if err == nil {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "", nil)
	}
	return err
}

// patchNode writes an annotation with the status, as an agent does.
func patchNode(t *testing.T, c client.Client, name string) error {
	t.Helper()
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	before := o.DeepCopy()
	o.Annotations = map[string]string{published.ReportAnnotation: "x"}
	return c.Status().Patch(t.Context(), o, client.MergeFrom(before))
}

func TestAReplacedLayerIsPublishedAgain(t *testing.T) {
	c := newTestCluster(t, "win-a")
	w := wish(t, "win-a", "shared", "a")
	c.publish(t, w)
	name := w.Cluster.Names()[0]
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{published.LayerLabel: w.Cluster.Label()}}}
	if err := errors.Join(c.Delete(t.Context(), foreign.DeepCopy()), c.Create(t.Context(), foreign)); err != nil {
		t.Fatal(err)
	}
	if n := c.publish(t, w); n != 0 {
		t.Errorf("%d writes before a node reports anything", n)
	}
	c.report(t, "win-a", published.Report{State: published.StateFailed, Fault: published.FaultDisk, Desired: w.Bundle})
	if n := c.publish(t, w); n != 0 {
		t.Errorf("%d writes for a node that waits for room", n)
	}
	c.report(t, "win-a", published.Report{State: published.StateFailed, Fault: published.FaultLayer, Desired: w.Bundle})
	if did, err := c.publisher.PublishLayers(t.Context(), []Wanted{w}); err != nil || !slices.Equal(did.Damaged, []string{name}) {
		t.Errorf("%q were replaced: %v", did.Damaged, err)
	}
	var now corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &now); err != nil || string(now.Data[published.SecretKey]) != string(w.Cluster.Secrets[0].Data) {
		t.Errorf("%v: %d bytes", err, len(now.Data[published.SecretKey]))
	}
	if did, err := c.publisher.PublishLayers(t.Context(), []Wanted{w}); err != nil || len(did.Damaged) > 0 {
		t.Errorf("%q are right, and were replaced: %v", did.Damaged, err)
	}
}

// TestALayerWithoutItsLabelGetsItBack, as after the restore of a backup: it is seen again, and replaced where a node cannot use it.
func TestALayerWithoutItsLabelGetsItBack(t *testing.T) {
	c := newTestCluster(t, "win-a")
	w := wish(t, "win-a", "shared", "a")
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Cluster.Names()[0]}}
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	c.publish(t, w)
	var now corev1.Secret
	read := func() {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), &now); err != nil {
			t.Fatal(err)
		}
	}
	if read(); now.Labels[published.LayerLabel] != w.Cluster.Label() {
		t.Errorf("labels %v", now.Labels)
	}
	if n := c.publish(t, w); n != 0 {
		t.Errorf("%d writes", n)
	}
	c.report(t, "win-a", published.Report{State: published.StateFailed, Fault: published.FaultLayer, Desired: w.Bundle})
	c.publish(t, w)
	if read(); string(now.Data[published.SecretKey]) != string(w.Cluster.Secrets[0].Data) {
		t.Errorf("%d bytes", len(now.Data[published.SecretKey]))
	}
}

func TestAForeignRoleIsReplaced(t *testing.T) {
	c := newTestCluster(t, "win-a")
	w := wish(t, "win-a", "shared", "a")
	foreign := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Access}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
	_ = c.Delete(t.Context(), foreign.DeepCopy())
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	c.publish(t, w)
	checkReadable(t, c.observe(t))
	for _, change := range []func(Changes) Changes{
		func(x Changes) Changes { x.Readable = []string{"cloud-private-key"}; return x },
		func(x Changes) Changes { x.Readers = []string{"system:node:linux-a"}; return x },
	} {
		if err := c.publisher.grantAccess(t.Context(), change(Changes{}), c.observe(t)); err != nil {
			t.Fatal(err)
		}
		if n := c.publish(t, w); n != 1 {
			t.Errorf("%d writes", n)
		}
		checkReadable(t, c.observe(t))
	}
}

// everyone is for Publisher.Known.
func everyone(context.Context, bool) (func(string, types.UID) bool, error) {
	return func(string, types.UID) bool { return true }, nil
}

// TestLayersAreForNodesOfKnownHosts: a Node that gives itself the label of Windows gets no access, and one that had access before there were
// records keeps it while it is there, with what it has. A Node that was made again since is not the one that had it.
func TestLayersAreForNodesOfKnownHosts(t *testing.T) {
	p := Publisher{Known: func(context.Context, bool) (func(string, types.UID) bool, error) {
		return func(name string, uid types.UID) bool { return name == "win-a" && uid == "a" }, nil
	}}
	var list []windowsnode.Node
	for name, uid := range map[string]types.UID{"win-a": "a", "win-before": "b", "worker-0": "l"} {
		list = append(list, windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}))
	}
	slices.SortFunc(list, func(a, b windowsnode.Node) int { return strings.Compare(a.Name, b.Name) })
	nodes, err := p.markKnownNodes(t.Context(), list, true)
	if err != nil {
		t.Fatal(err)
	}
	has := bundle.Of([]byte("what it has"))
	nodes[1].Report = published.Report{State: published.StateApplied, Layers: []bundle.Digest{has}}
	o := Observed{
		Nodes: nodes, Secrets: map[string]string{"layer": published.Label(has)}, Readable: []string{"layer"},
		Readers: []string{"system:node:gone", "system:node:win-before"}, Granted: time.Now(),
	}
	c := PlanChanges(nil, o)
	if diff := cmp.Diff([]string{"system:node:win-a", "system:node:win-before"}, c.Readers); diff != "" || len(c.Delete) > 0 || c.Readable != nil {
		t.Errorf("deleted %q, readable %q, readers (-want +got):\n%s", c.Delete, c.Readable, diff)
	}
	nodes[1].Created = o.Granted.Add(-grantedLong) // as a cache that was behind may have let the binding be written since
	if c := PlanChanges(nil, o); !slices.Equal(c.Delete, []string{"layer"}) || !slices.Equal(c.Readers, []string{"system:node:win-a"}) {
		t.Errorf("a Node that was made again: %+v", c)
	}
	nodes[1].Created = time.Time{}
	o.Readers = []string{}
	if c := PlanChanges(nil, o); !slices.Equal(c.Delete, []string{"layer"}) || !slices.Equal(c.Readers, []string{"system:node:win-a"}) {
		t.Errorf("of a Node without a known host: %+v", c)
	}
}

// TestANodeThatIsMadeAgainAfterItsRemovalReadsNothing: whoever has the certificate of its kubelet makes the Node again before the operator has seen that it was
// deleted. A Node that has been there since access was given keeps it.
func TestANodeThatIsMadeAgainAfterItsRemovalReadsNothing(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b")
	c.publish(t, wish(t, "win-a", "shared", "a"), wish(t, "win-b", "shared", "b"))
	var first corev1.Node
	if err := c.Get(t.Context(), client.ObjectKey{Name: "win-b"}, &first); err != nil {
		t.Fatal(err)
	}
	c.publisher.Known = func(context.Context, bool) (func(string, types.UID) bool, error) {
		return func(name string, _ types.UID) bool { return name == "win-a" }, nil
	}
	again := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-b", Labels: first.Labels, Annotations: first.Annotations}}
	if err := errors.Join(c.Delete(t.Context(), &first), c.Create(t.Context(), again)); err != nil {
		t.Fatal(err)
	}
	c.publish(t, wish(t, "win-a", "shared", "a"))
	o := c.observe(t)
	if diff := cmp.Diff([]string{"system:node:win-a"}, o.Readers); diff != "" {
		t.Errorf("readers (-want +got):\n%s", diff)
	}
	if age := time.Since(o.Granted); age < -time.Minute || age > time.Minute {
		t.Errorf("the binding was written %s ago", age)
	}
	var cached rbacv1.RoleBinding
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: Access}, &cached); err != nil {
		t.Fatal(err)
	}
	cached.ManagedFields = nil
	if at := c.publisher.grantedAt(cached); at != o.Granted {
		t.Errorf("a cache has %s, and the API server %s", at, o.Granted)
	}
	if cached.ResourceVersion += "0"; !c.publisher.grantedAt(cached).IsZero() {
		t.Error("of another version it is not known")
	}
}

// TestASecretThatCannotBeWrittenKeepsNoOtherNodeWaiting: the bundles of the others are published, and nodes can read nothing that is not there.
func TestASecretThatCannotBeWrittenKeepsNoOtherNodeWaiting(t *testing.T) {
	c := newTestCluster(t, "win-a", "win-b", "win-c")
	bad, good := wish(t, "win-a", "bad", "a"), wish(t, "win-b", "good", "b")
	same := wish(t, "win-c", "old", "c")
	c.publish(t, same)
	refused := bad.layerSecrets()[0].Name
	p := *c.publisher
	p.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == refused {
			return errRefused
		}
		return w.Create(ctx, o, opts...)
	}})
	_, err := p.PublishLayers(t.Context(), []Wanted{bad, good, same})
	if !errors.Is(err, errRefused) || IsPublished(bad, err) || !IsPublished(good, err) || !IsPublished(same, err) {
		t.Errorf("%v: published: bad %t, good %t, same %t", err, IsPublished(bad, err), IsPublished(good, err), IsPublished(same, err))
	}
	c.tell(t, good)
	checkReadable(t, c.observe(t))
	checkAccess(t, c.observe(t))
	c.publish(t, bad, good, same)
	checkReadable(t, c.observe(t))
}

// TestManyFailuresAreNotAboutSingleSecrets: the API server is not asked for each of a thousand.
func TestManyFailuresAreNotAboutSingleSecrets(t *testing.T) {
	tried := 0
	p := &Publisher{Namespace: namespace, Client: interceptor.NewClient(nil, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		tried++
		return errRefused
	}})}
	all := secretsNamed("layer", 100)
	err := p.writeLayers(t.Context(), &Changes{Create: all})
	if tried != maxFailures || len(err.Lacking) != len(all) || !errors.Is(err, errRefused) {
		t.Errorf("%d tried, %d lacking: %v", tried, len(err.Lacking), err)
	}
}

// TestFailingSecretsKeepNoOtherOneWaiting: as many as make a whole call end, in front of the others.
func TestFailingSecretsKeepNoOtherOneWaiting(t *testing.T) {
	written := map[string]bool{}
	p := &Publisher{Namespace: namespace, Client: interceptor.NewClient(nil, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		if strings.HasPrefix(o.GetName(), "bad") {
			return errRefused
		}
		written[o.GetName()] = true
		return nil
	}})}
	bad, good := secretsNamed("bad", 2*maxFailures), secretsNamed("good", 3)
	for range 3 { // each call passes over what has failed before
		_ = p.writeLayers(t.Context(), &Changes{Create: slices.Concat(bad, good)})
	}
	if len(written) != len(good) {
		t.Errorf("%d of %d are written", len(written), len(good))
	}
}

func secretsNamed(what string, n int) (list []Secret) {
	for i := range n {
		list = append(list, Secret{Part: published.Part{Name: what + "-" + string(rune('a'+i))}})
	}
	return list
}
