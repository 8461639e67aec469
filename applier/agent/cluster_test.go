package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/internal/test/publishtest"
	"wmco/internal/test/testenv"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

const (
	nodeName  = "win-a"
	namespace = "openshift-windows-machine-config-operator"
)

// playground is a cluster with what others do to it.
type playground interface {
	Cluster
	// publish makes a part readable for the node, desire writes the annotation.
	publish(t *testing.T, name string, data []byte)
	desire(t *testing.T, text string)
	// kubelet reports as the kubelet does.
	kubelet(t *testing.T, ready bool, at time.Time)
	witness
}

// witness sees what was written.
type witness interface {
	// seen returns the annotation with the report and the condition.
	seen(t *testing.T) (report string, condition corev1.NodeCondition)
	// uid returns that of the Node.
	uid(t *testing.T) string
	// said reports whether there is an event with this reason.
	said(t *testing.T, reason string) bool
}

// TestClusters holds the fake to what the real API server does, with the authorizers of a cluster.
func TestClusters(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) playground{
		"fake": func(*testing.T) playground {
			return &fakePlayground{fakeCluster: &fakeCluster{parts: map[string][]byte{}, node: Node{UID: "1-2-3"}}}
		},
		"real": func(t *testing.T) playground { return newRealPlayground(t) },
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			t.Run("watch", func(t *testing.T) { checkWatch(t, c) })
			t.Run("part", func(t *testing.T) { checkPart(t, c) })
			t.Run("report", func(t *testing.T) { checkReport(t, c) })
			t.Run("heartbeat", func(t *testing.T) { checkHeartbeat(t, c) })
			t.Run("event", func(t *testing.T) { checkEvent(t, c) })
		})
	}
}

func checkWatch(t *testing.T, c playground) {
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan Node, 100), make(chan struct{})
	go func() { c.Watch(ctx, func(n Node) { told <- n }); close(ended) }()
	next := func(want string) {
		t.Helper()
		limit := time.After(time.Minute)
		for {
			select {
			case n := <-told:
				if n.Desired == want {
					if uid := c.uid(t); n.UID != uid {
						t.Errorf("the UID is %q, want %q", n.UID, uid)
					}
					return
				}
			case <-limit:
				t.Fatalf("nothing was told about %q", want)
			}
		}
	}
	next("")
	c.desire(t, "first")
	next("first")
	c.desire(t, "second")
	next("second")
	stop()
	<-ended
}

func checkPart(t *testing.T, c playground) {
	c.publish(t, "windows-layer-a", []byte("layer"))
	if data, err := c.Part(t.Context(), namespace, "windows-layer-a"); err != nil || string(data) != "layer" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := c.Part(t.Context(), namespace, "cloud-private-key"); !errors.Is(err, ErrNotPublished) {
		t.Errorf("a Secret that is not published: %v", err)
	}
}

func checkReport(t *testing.T, c playground) {
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for _, s := range []Status{
		{Text: "one", State: published.StateApplying, Message: "m", Time: at, Changed: at},
		{Text: "two", State: published.StateApplied, Message: "n", Time: at.Add(time.Hour), Changed: at.Add(time.Minute)},
	} {
		if err := c.Report(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		text, have := c.seen(t)
		if text != s.Text || have.Reason != string(s.State) || have.Message != s.Message || (have.Status == corev1.ConditionTrue) != (s.State == published.StateApplied) ||
			!have.LastHeartbeatTime.Time.Equal(s.Time) || !have.LastTransitionTime.Time.Equal(s.Changed) {
			t.Errorf("%q, %+v", text, have)
		}
	}
}

func checkHeartbeat(t *testing.T, c playground) {
	at := time.Now().Truncate(time.Second)
	c.kubelet(t, false, at)
	if got, err := c.Heartbeat(t.Context()); err != nil || !got.IsZero() {
		t.Errorf("a node that is not Ready: %s, %v", got, err)
	}
	for _, at := range []time.Time{at, at.Add(time.Minute)} {
		c.kubelet(t, true, at)
		if got, err := c.Heartbeat(t.Context()); err != nil || !got.Equal(at) {
			t.Errorf("%s, %v, want %s", got, err, at)
		}
	}
}

func checkEvent(t *testing.T, c playground) {
	if err := c.Event(t.Context(), Event{Warning: true, Reason: EventRolledBack, Message: strings.Repeat("ü", 2000), Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if !c.said(t, EventRolledBack) {
		t.Error("there is no event")
	}
}

// fakePlayground is the fake.
type fakePlayground struct{ *fakeCluster }

func (f *fakePlayground) publish(_ *testing.T, name string, data []byte) { f.parts[name] = data }

func (f *fakePlayground) desire(_ *testing.T, text string) {
	f.node.Desired = text
	f.told(f.node)
}

func (f *fakePlayground) uid(*testing.T) string { return f.node.UID }

func (f *fakePlayground) kubelet(_ *testing.T, ready bool, at time.Time) {
	f.ready = func() time.Time {
		if !ready {
			return time.Time{}
		}
		return at
	}
}

func (f *fakePlayground) seen(*testing.T) (string, corev1.NodeCondition) {
	s := f.reports[len(f.reports)-1]
	c := corev1.NodeCondition{Status: corev1.ConditionFalse, Reason: string(s.State), Message: s.Message, LastHeartbeatTime: metav1.NewTime(s.Time), LastTransitionTime: metav1.NewTime(s.Changed)}
	if s.State == published.StateApplied {
		c.Status = corev1.ConditionTrue
	}
	return f.node.Report, c
}

func (f *fakePlayground) said(_ *testing.T, reason string) bool {
	return len(f.events) > 0 && f.events[len(f.events)-1].Reason == reason
}

// realPlayground is the real API server, used as the node.
type realPlayground struct {
	*APIServer
	admin     client.Client
	publisher *layers.Publisher
}

func newRealPlayground(t *testing.T) *realPlayground {
	t.Helper()
	admin := server.Client(t)
	api := NewAPIServer(Connection{Kubeconfig: kubeconfig(t, server.Node(t, nodeName)), ReadFile: os.ReadFile, Log: slog.New(slog.DiscardHandler), Clock: newRealClock()})
	r := &realPlayground{APIServer: api, admin: admin, publisher: &layers.Publisher{Nodes: admin, Layers: admin, Live: admin, Client: admin, Namespace: namespace, Now: time.Now, Known: publishtest.Everyone}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{corev1.LabelOSStable: "windows"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud-private-key"}},
	} {
		if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = admin.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}})
		_ = admin.Delete(context.Background(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: nodeName}})
	})
	return r
}

func (r *realPlayground) publish(t *testing.T, name string, data []byte) {
	t.Helper()
	// As a Publisher does; the names of its layers follow from their contents.
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{published.LayerLabel: "test"}}, Data: map[string][]byte{published.SecretKey: data}}
	if err := r.admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.admin.Delete(context.Background(), o) })
	grant(t, r.admin, name)
	if err := testenv.Eventually(t.Context(), "the node's access", func() bool {
		_, err := r.Part(t.Context(), namespace, name)
		return err == nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (r *realPlayground) node(t *testing.T) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := r.admin.Get(t.Context(), client.ObjectKey{Name: nodeName}, &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

func (r *realPlayground) desire(t *testing.T, text string) {
	t.Helper()
	n := r.node(t)
	before := n.DeepCopy()
	n.Annotations = map[string]string{published.DesiredAnnotation: text}
	if err := r.admin.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (r *realPlayground) uid(t *testing.T) string {
	t.Helper()
	return string(r.node(t).UID)
}

// kubelet writes a Ready condition that is older than the Lease, as a kubelet does between two full reports.
func (r *realPlayground) kubelet(t *testing.T, ready bool, at time.Time) {
	t.Helper()
	n := r.node(t)
	before := n.DeepCopy()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at.Add(-time.Hour))})
	if err := r.admin.Status().Patch(t.Context(), n, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	renewed := metav1.NewMicroTime(at)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: nodeName}}
	if err := r.admin.Create(t.Context(), lease); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := r.admin.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime = &renewed
	if err := r.admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

func (r *realPlayground) seen(t *testing.T) (string, corev1.NodeCondition) {
	t.Helper()
	n := r.node(t)
	for _, c := range n.Status.Conditions {
		if c.Type == published.Condition {
			return n.Annotations[published.ReportAnnotation], c
		}
	}
	t.Fatal("the Node has no condition of the agent")
	return "", corev1.NodeCondition{}
}

func (r *realPlayground) said(t *testing.T, reason string) bool {
	t.Helper()
	var events corev1.EventList
	if err := r.admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == reason && e.InvolvedObject.Name == nodeName && e.Type == corev1.EventTypeWarning {
			return true
		}
	}
	return false
}

// TestANodeFollowsAMirrorChange is the whole way: published by the operator's publisher, fetched as the node from the real API
// server, applied by the real engine, reported.
func TestANodeFollowsAMirrorChange(t *testing.T) {
	r := newRealPlayground(t)
	w := newWorld(t)
	r.kubelet(t, true, time.Now())
	w.Agent = &Agent{Engine: w.engine(), Cluster: r.APIServer, Log: slog.New(slog.DiscardHandler), Options: Options{Interval: 5 * time.Minute}}
	w.Engine.Clock = slowClock{w.clock, time.Now()}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for i, text := range []string{"server = \"https://a.io\"\n", "server = \"https://mirror-1\"\n", "server = \"https://mirror-2\"\n"} {
		w.change(mirrors, text)
		want := wanted(t, w)
		begun := time.Now()
		if err := publishtest.Publish(t.Context(), r.publisher, want); err != nil {
			t.Fatal(err)
		}
		err := testenv.Eventually(t.Context(), "the report", func() bool {
			got, err := published.DecodeReport(r.node(t).Annotations[published.ReportAnnotation])
			return err == nil && got.State == published.StateApplied && got.Applied == want.Bundle
		})
		if err != nil {
			t.Fatalf("change %d: %v\n%s", i, err, r.node(t).Annotations[published.ReportAnnotation])
		}
		t.Logf("change %d after %s", i, time.Since(begun).Round(time.Millisecond))
		if got := w.file(mirrors); got != text {
			t.Errorf("change %d: %q", i, got)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := w.starts("kubelet"); n != 1 {
		t.Errorf("the kubelet was started %d times", n)
	}
}

// renew renews the Lease of the node, as its kubelet does.
func renew(ctx context.Context, admin client.Client) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: nodeName}}
	now := metav1.NowMicro()
	if admin.Get(ctx, client.ObjectKeyFromObject(lease), lease) == nil {
		lease.Spec.RenewTime = &now
		_ = admin.Update(ctx, lease)
	}
}

// wanted is the bundle of the world as the operator publishes it.
func wanted(t *testing.T, w *world) layers.Wanted {
	t.Helper()
	b := w.bundle.Bundle(t)
	c, err := published.Pack(b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	n, err := published.Pack(b.Node)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := bundle.DigestLayers(c.Digest, n.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return layers.Wanted{Node: nodeName, Bundle: digest, Cluster: &c, Own: n}
}

// slowClock begins at the time of the host's clock, and goes on in real time, so that a retry becomes due.
type slowClock struct {
	clock
	begun time.Time
}

type clock interface {
	Now() time.Time
	SinceBoot() time.Duration
}

func (c slowClock) Now() time.Time { return c.clock.Now().Add(time.Since(c.begun)) }

func (c slowClock) SinceBoot() time.Duration { return c.clock.SinceBoot() + time.Since(c.begun) }

func (c slowClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// grant lets the node read one Secret, as the publisher's Role does.
func grant(t *testing.T, admin client.Client, secret string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "test-layers"}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{secret}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: layers.NodeUser(nodeName)}}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Delete(context.Background(), o) })
	}
}
