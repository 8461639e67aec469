package fleettest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/light"
	"wmco/internal/test/testenv"
)

// checkLight adds a light node, and changes a mirror set: the agent of the light node asks the API server for the same as one of a whole
// machine. What is measured with a thousand light nodes is then true of whole ones.
func (f *fleet) checkLight(t *testing.T) {
	const name = "light"
	whole := f.machines[0]
	node := f.node(t, whole.name)
	report, err := published.DecodeReport(node.Annotations[published.ReportAnnotation])
	must(t, err)
	facts := simulation.FactsAt(*report.Facts, name, "10.0.8.1", lightSubnet)
	f.addLight(t, node, name)
	background(t, func(ctx context.Context) error { return f.keepLease(ctx, name) })
	background(t, func(ctx context.Context) error {
		return light.Run(ctx, light.Options{Facts: facts, Server: server.Node(t, name), Log: logs()})
	})
	settled := func() bool { return isCurrent(*f.node(t, name)) && isCurrent(*f.node(t, whole.name)) }
	if err := testenv.Eventually(t.Context(), "the bundle of the light node", settled); err != nil {
		n := f.node(t, name)
		t.Fatalf("%v; it is told %s, says %s, and has the conditions %+v", err, n.Annotations[published.DesiredAnnotation], n.Annotations[published.ReportAnnotation], n.Status.Conditions)
	}
	f.quiet(t)
	before, since := f.bundles(t), len(f.requests(t))
	f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: light},
  spec: {imageDigestMirrors: [{source: light.example.com/app, mirrors: ["mirror.example.com:5000/app"]}]}}`)
	eventually(t, "the changed mirror set on the light node and on a whole one", func() bool {
		now := f.bundles(t)
		return now[name] != before[name] && now[whole.name] != before[whole.name] && settled()
	})
	f.quiet(t)
	asked := map[string]map[string]int{name: {}, whole.name: {}}
	for _, q := range f.requests(t)[since:] {
		of, ok := asked[strings.TrimPrefix(q.User, "system:node:")]
		if ok && q.Agent == agentProgram && q.Verb != "watch" && q.Verb != "list" { // a watch is renewed after some minutes
			of[what(q)]++
		}
	}
	if diff := cmp.Diff(asked[whole.name], asked[name]); diff != "" {
		t.Errorf("requests of the node agents (-whole +light):\n%s", diff)
	}
	if asked[name]["patch nodes/status"] == 0 || asked[name]["get secrets"] == 0 {
		t.Errorf("the light node has asked for %v", asked[name])
	}
}

// lightSubnet is that of the Pods of a light node.
const lightSubnet = "10.132.200.0/24"

// addLight makes the Node of a light node, like one of a whole machine, and removes it at the end.
func (f *fleet) addLight(t *testing.T, like *corev1.Node, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: like.Labels, Annotations: like.Annotations}, Spec: corev1.NodeSpec{Taints: like.Spec.Taints}, Status: like.Status}
	node.Labels[corev1.LabelHostname] = name
	for _, key := range []string{published.DesiredAnnotation, published.ReportAnnotation, published.RolloutAnnotation} {
		delete(node.Annotations, key)
	}
	node.Annotations["k8s.ovn.org/hybrid-overlay-node-subnet"] = lightSubnet
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.8.1"}, {Type: corev1.NodeHostName, Address: name}}
	must(t, f.Create(t.Context(), node))
	t.Cleanup(func() {
		ctx := context.Background()
		must(t, client.IgnoreNotFound(f.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
		must(t, client.IgnoreNotFound(f.Delete(ctx, &coordinationv1.Lease{ObjectMeta: leaseOf(name)})))
	})
}

func leaseOf(node string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "kube-node-lease", Name: node}
}

// keepLease renews the Lease of a Node that has no kubelet.
func (f *fleet) keepLease(ctx context.Context, node string) error {
	lease := &coordinationv1.Lease{ObjectMeta: leaseOf(node)}
	if err := f.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the Lease: %w", err)
	}
	for {
		now := metav1.NowMicro()
		before := lease.DeepCopy()
		lease.Spec.RenewTime = &now
		if err := f.Patch(ctx, lease, client.MergeFrom(before)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("renewing the Lease: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Second):
		}
	}
}

// quiet waits until the operator has rendered twice, and so has finished what it began before.
func (f *fleet) quiet(t *testing.T) {
	t.Helper()
	eventually(t, "an operator that publishes nothing", func() bool {
		before := fmt.Sprint(f.bundles(t))
		f.rendered(t)
		return before == fmt.Sprint(f.bundles(t))
	})
}
