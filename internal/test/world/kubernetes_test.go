package world

import (
	"fmt"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/payload"
)

// ruleSkew: no kubelet is of a newer minor version than any API server (https://kubernetes.io/releases/version-skew-policy/), and Windows nodes wait for the
// pool of the workers.
const ruleSkew = "a node is told of a kubelet that is newer than the API server, the cluster or the pool of its workers"

// kubernetes are the releases that a cluster has one after the other.
func kubernetes() []payload.Release {
	all := payload.Releases()
	return all[slices.IndexFunc(all, func(r payload.Release) bool { return r.Minor == payload.TestedKubernetes }):]
}

// minor is the minor version of Kubernetes that nodes get.
func (w *world) minor() string { return kubernetes()[w.clusterIs.Load()].Minor }

// tooNew returns the kubelet of executables, if nodes do not get it yet.
func (w *world) tooNew(executables bundle.Digest) string {
	for _, r := range w.releases {
		for _, k := range kubernetes()[w.clusterIs.Load()+1:] {
			if r.digest(k.Minor) == executables {
				return "kubelet " + k.Version
			}
		}
	}
	return ""
}

// upgradeCluster has the cluster upgraded to the next minor version, if there is one: its API server, ClusterVersion, and the pool of the workers, which
// was paused, in any order.
func (w *world) upgradeCluster(t *testing.T) bool {
	if int(w.clusterIs.Load())+1 == len(kubernetes()) {
		return false
	}
	next := kubernetes()[w.clusterIs.Load()+1]
	steps := []func(){
		func() { w.server.SetVersion(next.Version) },
		func() { w.completeUpdate(t, next.Clusters()) },
		func() { w.resumePool(t) },
	}
	w.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for i, step := range steps {
		if i == len(steps)-1 {
			w.clusterIs.Add(1)
		}
		step()
		pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Hour))))
	}
	return true
}

func (w *world) resumePool(t testing.TB) {
	t.Helper()
	w.tell("(the pool of the workers is resumed)")
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(mcfgv1.GroupVersion.WithKind("MachineConfigPool"))
	pool.SetName("worker")
	w.try(t, "the pool of the workers", func() error { return w.Patch(w.ctx, pool, mergePatch(`{"spec":{"paused":false}}`)) })
}

// unlikeKubelet returns why a node does not have the kubelet of the cluster's version.
func (w *world) unlikeKubelet(n corev1.Node) string {
	if is, want := n.Status.NodeInfo.KubeletVersion, kubernetes()[w.clusterIs.Load()].Version; is != want {
		return fmt.Sprintf("%s has kubelet %s, want %s", n.Name, is, want)
	}
	return ""
}

// completeUpdate is what the cluster-version operator writes when everything has the next version.
func (w *world) completeUpdate(t testing.TB, clusters []string) {
	t.Helper()
	version, now := clusters[len(clusters)-1]+".1", time.Now().UTC().Format(time.RFC3339)
	w.tell("(the cluster has version %s)", version)
	w.try(t, "the version of the cluster", func() error {
		v := &unstructured.Unstructured{}
		v.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
		if err := w.Get(w.ctx, client.ObjectKey{Name: "version"}, v); err != nil {
			return err
		}
		history, _, err := unstructured.NestedSlice(v.Object, "status", "history")
		must(t, err)
		last := map[string]any{"state": "Completed", "version": version, "image": "quay.io/example/release:" + version, "startedTime": now, "completionTime": now, "verified": true}
		must(t, unstructured.SetNestedSlice(v.Object, slices.Insert(history, 0, any(last)), "status", "history"))
		return w.Status().Update(w.ctx, v)
	})
}

// TestTheClusterIsUpgraded: a new release of the operator comes in the middle of it.
func TestTheClusterIsUpgraded(t *testing.T) {
	o := options{nodes: 4, hosts: 2, seed: 1, patience: 6 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		for range o.hosts {
			w.listHost(t, w.addHost(t), true)
		}
		w.rest(t)
		w.upgradeCluster(t)
		w.exchangeOperator(t)
		w.rest(t)
		w.print(t)
	})
}
