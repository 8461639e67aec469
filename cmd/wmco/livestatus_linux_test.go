package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"wmco/controller/gather"
	"wmco/controller/status"
	"wmco/internal/cli"
)

// serveLease serves the Lease of an operator that renewed it so long ago.
func (c *liveCluster) serveLease(t *testing.T, ago time.Duration) {
	t.Helper()
	lease := coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: status.OperatorName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("a process"), LeaseDurationSeconds: new(int32(137)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-ago)}},
	}
	c.serve(t, "coordination.k8s.io/v1", "Lease", &lease)
}

// setReady changes the condition Ready of the Node.
func (c *liveCluster) setReady(t *testing.T, value corev1.ConditionStatus, since time.Time, message string) {
	t.Helper()
	for i, o := range c.api.Objects {
		if o.GetKind() != "Node" {
			continue
		}
		var node corev1.Node
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &node))
		node.Status.Conditions[0].Status, node.Status.Conditions[0].Message = value, message
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(since)
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&node)
		must(t, err)
		c.api.Objects[i].Object = u
	}
}

const (
	wellTable     = "NODE   STATE    SINCE  REASON   READY  ROLLOUT\nwin-0  Updated  60m    Applied  True   Done\n"
	notReadyTable = "NODE   STATE    SINCE  REASON   READY    ROLLOUT\nwin-0  Updated  60m    Applied  Unknown  Done\n"
)

// TestStatusOfAClusterWhoseOperatorOrKubeletIsSilent: outdated reports are not shown as if all were well.
func TestStatusOfAClusterWhoseOperatorOrKubeletIsSilent(t *testing.T) {
	since := time.Now().Add(-50*time.Hour - 10*time.Minute).UTC().Truncate(time.Second)
	for _, c := range []struct {
		name   string
		change func(*testing.T, *liveCluster)
		args   []string
		want   answer
	}{
		{"all is well", func(t *testing.T, c *liveCluster) { c.serveLease(t, 20*time.Second) }, nil, answer{cli.ExitDone, wellTable, ""}},
		{"the clocks differ, or another process takes over", func(t *testing.T, c *liveCluster) { c.serveLease(t, 4*time.Minute) }, nil, answer{cli.ExitDone, wellTable, ""}},
		{"the operator has ended", func(t *testing.T, c *liveCluster) { c.serveLease(t, 11*time.Minute) }, nil, answer{cli.ExitDiffers,
			"the operator in namespace openshift-windows-machine-config-operator has been\n    silent for 11m; the status below is outdated; fix: check its Pods and their\n    logs: oc -n openshift-windows-machine-config-operator get\n    deployment,pods,lease\n" + wellTable, ""}},
		{"there is none in this namespace", func(*testing.T, *liveCluster) {}, []string{"-n", "nosuch"}, answer{cli.ExitDiffers,
			"no operator in namespace nosuch (found neither its Lease\n    windows-machine-config-operator nor a WindowsNodesStatus); fix: give the\n    operator's namespace with -n, or install the operator (docs/install.md)\n" + wellTable, ""}},
		{"the user may not read the Lease", func(t *testing.T, c *liveCluster) {
			c.serveLease(t, 20*time.Second)
			c.api.Refuses = []string{"get leases " + gather.OperatorNamespace}
		}, nil, answer{cli.ExitDone, wellTable, "cannot tell whether the operator is running: the user cannot get leases.coordination.k8s.io in namespace openshift-windows-machine-config-operator\n"}},
		{"a kubelet is silent", func(t *testing.T, c *liveCluster) {
			c.serveLease(t, 20*time.Second)
			c.setReady(t, corev1.ConditionUnknown, since, "Kubelet stopped posting node status.\x1b[31m")
		}, nil, answer{cli.ExitDiffers, notReadyTable + "\nwin-0: the Node has not been Ready for 2d2h: Kubelet stopped posting node\n  status.\n" +
			"  fix: check that the host is up, and that its services kubelet and containerd\n       are running; logs: C:\\var\\log\n", ""}},
		{"a folder of manifests has no Lease", func(*testing.T, *liveCluster) {}, []string{"--from", "FILES"}, answer{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newLiveCluster(t, factsOfNone(t))
			c.change(t, cluster)
			args := append([]string{"status"}, c.args...)
			if c.want == (answer{}) {
				args[len(args)-1] = cluster.files
				if got := cluster.wmco(t, args...); got.stderr != "" || got.stdout == "" || got.stdout[:4] != "NODE" {
					t.Errorf("%+v", got)
				}
				return
			}
			if diff := cmp.Diff(c.want, cluster.wmco(t, args...), cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
