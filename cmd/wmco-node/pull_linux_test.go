package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/publishtest"
	"wmco/internal/test/seed"
	"wmco/internal/test/testenv"
	"wmco/payload"
)

const (
	pulledNamespace = "openshift-windows-machine-config-operator"
	leaseNamespace  = "kube-node-lease"
)

// server is the API server of all tests of this package.
var server testenv.Environment

// served are the tests of this package; the API server ends with them.
type served struct{ *testing.M }

// Run implements testscript.TestingM.
func (s served) Run() int { return server.Main(s.M) }

// pulling is a simulated host whose program follows its Node on the real API server.
type pulling struct {
	simulated
	// node is the name of the Node.
	node       string
	admin      client.Client
	publisher  layers.Publisher
	kubeconfig string
}

func newPulling(t *testing.T, node, program string) *pulling {
	t.Helper()
	admin := server.Client(t)
	p := &pulling{
		simulated: newSimulated(t, program), node: node, admin: admin,
		publisher:  layers.Publisher{Nodes: admin, Layers: admin, Live: admin, Client: admin, Namespace: pulledNamespace, Now: time.Now, Known: publishtest.Everyone},
		kubeconfig: nodeKubeconfig(t, server.Node(t, node)),
	}
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelOSStable: "windows"}}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pulledNamespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaseNamespace}}, object,
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: node}},
	} {
		if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	object.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if err := admin.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	p.kubelet(t)
	return p
}

// kubelet renews the Lease of the node until the end of the test.
func (p *pulling) kubelet(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			now := metav1.NowMicro()
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: p.node}}
			if p.admin.Get(ctx, client.ObjectKeyFromObject(lease), lease) == nil {
				lease.Spec.RenewTime = &now
				_ = p.admin.Update(ctx, lease)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// nodeKubeconfig writes a kubeconfig for the configuration of a node.
func nodeKubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	folder := t.TempDir()
	pem, ca, path := filepath.Join(folder, "current.pem"), filepath.Join(folder, "ca.crt"), filepath.Join(folder, "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: node}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]\nusers: [{name: node, user: {client-certificate: %q, client-key: %q}}]\n",
		"https://"+strings.TrimPrefix(c.Host, "https://"), ca, pem, pem)
	for file, data := range map[string][]byte{pem: append(append([]byte{}, c.CertData...), c.KeyData...), ca: c.CAData, path: []byte(text)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// publish publishes a bundle, and returns its digest.
func (p *pulling) publish(t *testing.T, n bundletest.Node) bundle.Digest {
	t.Helper()
	b := n.Bundle(t)
	c, err := published.Pack(b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	own, err := published.Pack(b.Node)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := bundle.DigestLayers(c.Digest, own.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := publishtest.Publish(t.Context(), &p.publisher, layers.Wanted{Node: p.node, Bundle: whole, Cluster: &c, Own: own}); err != nil {
		t.Fatal(err)
	}
	return whole
}

// reported is the report on the Node.
func (p *pulling) reported(t *testing.T) string {
	t.Helper()
	var node corev1.Node
	if err := p.admin.Get(t.Context(), client.ObjectKey{Name: p.node}, &node); err != nil {
		t.Fatal(err)
	}
	return node.Annotations[published.ReportAnnotation]
}

// hasApplied reports whether the Node's report has a bundle as applied.
func (p *pulling) hasApplied(t *testing.T, digest bundle.Digest) bool {
	t.Helper()
	got, err := published.DecodeReport(p.reported(t))
	return err == nil && got.State == published.StateApplied && got.Applied == digest
}

// runUntilKilled runs the program until it kills itself before the n-th change of the host, or has applied the bundle. It reports whether it was killed.
func (p *pulling) runUntilKilled(t *testing.T, n int, digest bundle.Digest) bool {
	t.Helper()
	cmd := p.killedAt(t, n, nil, "run", "--kubeconfig", p.kubeconfig, "--interval", "1s")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	byItself := false
	err := testenv.Eventually(t.Context(), "the end of the program, or its report", func() bool {
		select {
		case <-ended:
			byItself = true
			return true
		default:
			return p.hasApplied(t, digest)
		}
	})
	_ = cmd.Process.Kill()
	<-ended
	if err != nil || !wasKilled(cmd) {
		t.Fatalf("%v, %v\n%s", err, cmd.ProcessState, &log)
	}
	return byItself
}

// TestAnAgentConvergesAfterKills kills the program with SIGKILL while it follows bundles that change, and then lets one finish: the
// host is what it would be without the kills, and nothing was rolled back.
func TestAnAgentConvergesAfterKills(t *testing.T) {
	p := newPulling(t, "win-killed", program(t))
	random := seed.New(t)
	first := bundletest.New()
	bundles := []bundletest.Node{
		first,
		first.Changed(func(n *bundletest.Node) {
			n.Files[`C:\k\kubelet.conf`], n.CAs = "another", []string{"third CA"}
			delete(n.Files, `C:\k\containerd\registries\a.io\hosts.toml`)
		}),
		first.Changed(func(n *bundletest.Node) {
			n.Files[`C:\k\containerd\registries\a.io\hosts.toml`], n.SecretProxy = "x", "http://user:sesame-other@proxy:3128"
		}),
	}
	if r := p.run(t, first.Archive(t, p.missing(t, first)), "apply"); r.status != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	killed, interrupted, next := 0, 0, 0
	for i := range kills(t) / 2 {
		next = (next + 1 + random.IntN(len(bundles)-1)) % len(bundles) // another one
		at := random.IntN(40)
		if i == 0 {
			at = 10 // in the middle of a run for certain
		}
		if p.runUntilKilled(t, at, p.publish(t, bundles[next])) {
			killed++
		}
		if _, err := os.Stat(filepath.Join(p.root, "C", "ProgramData", "wmco", "journal.json")); err == nil {
			interrupted++
		}
	}
	if interrupted == 0 {
		t.Errorf("of %d that were killed, none was in the middle of a run", killed)
	}
	cmd := p.command(t, nil, "run", "--kubeconfig", p.kubeconfig, "--interval", "1s")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i, n := range bundles {
		digest := p.publish(t, n)
		err := testenv.Eventually(t.Context(), "the report", func() bool { return p.hasApplied(t, digest) })
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("bundle %d: %v\n%s\n%s", i, err, p.reported(t), log.String())
		}
		want := newSimulated(t, p.program)
		if r := want.run(t, n.Archive(t, want.missing(t, n)), "apply"); r.status != 0 {
			t.Fatal(r.stdout, r.stderr)
		}
		if diff := cmp.Diff(want.files(t), p.files(t)); diff != "" {
			t.Errorf("bundle %d after %d kills (-want +got):\n%s", i, killed, diff)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	var events corev1.EventList
	if err := p.admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.InvolvedObject.Name == p.node && e.Type == corev1.EventTypeWarning {
			t.Errorf("%s: %s", e.Reason, e.Message)
		}
	}
	t.Logf("%d killed, %d in the middle of a run, %d events", killed, interrupted, len(events.Items))
}

// TestAWarningOfAReleaseEndsWithItsPage: the program is linked as internal/build/payloadbuild links it, so the Event on the Node names the page.
func TestAWarningOfAReleaseEndsWithItsPage(t *testing.T) {
	p := newPulling(t, "win-warned", linkedProgram(t, "-X "+payload.OurSources+"=https://example.com/blob/v1"))
	first := bundletest.New()
	if r := p.run(t, first.Archive(t, p.missing(t, first)), "apply"); r.status != 0 {
		t.Fatal(r.stdout, r.stderr)
	}
	cmd := p.command(t, nil, "run", "--kubeconfig", p.kubeconfig, "--interval", "1s")
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.node}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"not a bundle"}}}`, published.DesiredAnnotation))
	if err := p.admin.Patch(t.Context(), node, patch); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	err := testenv.Eventually(t.Context(), "the Event", func() bool {
		var events corev1.EventList
		if err := p.admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == p.node && e.Type == corev1.EventTypeWarning {
				warnings = append(warnings, e.Message)
				if page := " (https://example.com/blob/v1/docs/reasons.md#" + strings.ToLower(e.Reason) + ")"; !strings.HasSuffix(e.Message, page) {
					t.Errorf("%s: %q does not end with %q", e.Reason, e.Message, page)
				}
			}
		}
		return len(warnings) > 0
	})
	if err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
}
