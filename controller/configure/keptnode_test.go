package configure

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// TestWhatUsersSetOnANodeIsSetOnItsSuccessor and nothing that a controller or the kubelet wrote for the Node that is gone.
func TestWhatUsersSetOnANodeIsSetOnItsSuccessor(t *testing.T) {
	taint := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	gone := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "1",
			Labels: map[string]string{
				"team": "a", "node-role.kubernetes.io/gpu": "", "topology.kubernetes.io/zone": "z", "node.kubernetes.io/windows-build": "10.0.17763", InstanceLabel: "true",
				domain + "upgrading": "true",
			},
			Annotations: map[string]string{
				"example.com/owner": "b", "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "plain": "c", VersionAnnotation: "1", published.ReportAnnotation: "{}",
				"k8s.ovn.org/hybrid-overlay-node-subnet": "10.132.1.0/24", "machineconfiguration.openshift.io/state": "Done", "node.alpha.kubernetes.io/ttl": "0",
				"csi.volume.kubernetes.io/nodeid": "{}",
			},
		},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{taint("os", "Windows"), taint("dedicated", "build"), taint("node.kubernetes.io/unreachable", "")}},
	}
	if got := TaintsOfUsers(gone); !slices.Equal(got, []string{"dedicated"}) {
		t.Errorf("taints of users: %q", got)
	}
	k := SetByUsers(gone, "192.0.2.1")
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	var kept KeptNode
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	successor := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "2", ResourceVersion: "7", Labels: map[string]string{"node.kubernetes.io/windows-build": "10.0.20348"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{taint("os", "Windows"), taint("node.kubernetes.io/not-ready", "")}},
	}
	m := Marks{Labels: map[string]string{RoleLabel: ""}, Annotations: map[string]string{VersionAnnotation: ""}}
	kept.restoreOnto(&m, successor)
	want := Marks{
		Labels:      map[string]string{RoleLabel: "", "team": "a", "node-role.kubernetes.io/gpu": "", "topology.kubernetes.io/zone": "z"},
		Annotations: map[string]string{VersionAnnotation: "", "example.com/owner": "b", "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true", "plain": "c"},
		Cordon:      new(true),
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	patch, err := m.mergePatch(successor)
	if err != nil {
		t.Fatal(err)
	}
	const wantPatch = `{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","example.com/owner":"b","plain":"c"},` +
		`"labels":{"node-role.kubernetes.io/gpu":"","node-role.kubernetes.io/worker":"","team":"a","topology.kubernetes.io/zone":"z"},"resourceVersion":"7"},` +
		`"spec":{"unschedulable":true}}`
	if diff := cmp.Diff(wantPatch, string(patch)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	again := successor.DeepCopy()
	again.Labels = map[string]string{"node.kubernetes.io/windows-build": "10.0.20348", "team": "other", "node-role.kubernetes.io/gpu": "", "topology.kubernetes.io/zone": "z", RoleLabel: ""}
	again.Annotations = map[string]string{"example.com/owner": "b", "cluster-autoscaler.kubernetes.io/scale-down-disabled": "false", "plain": "c"}
	again.Spec.Unschedulable = true
	m = Marks{Labels: map[string]string{RoleLabel: ""}, Annotations: map[string]string{}}
	kept.restoreOnto(&m, again)
	if patch, err := m.mergePatch(again); patch != nil || err != nil {
		t.Errorf("a Node that has a value for everything is patched with %s, %v", patch, err)
	}
}

// TestOnlyTheCordonOfAnAdministratorIsKept and not the operator's own.
func TestOnlyTheCordonOfAnAdministratorIsKept(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations   map[string]string
		unschedulable bool
		want          bool
	}{
		"not cordoned":           {nil, false, false},
		"by an administrator":    {nil, true, true},
		"until it has joined":    {map[string]string{JoiningAnnotation: "true"}, true, false},
		"for a rollout":          {map[string]string{published.CordonAnnotation: published.CordonedForRollout}, true, false},
		"annotated, schedulable": {map[string]string{published.CordonAnnotation: published.CordonedForRollout}, false, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: tt.annotations}, Spec: corev1.NodeSpec{Unschedulable: tt.unschedulable}}
		if got := SetByUsers(node, "b").Cordoned; got != tt.want {
			t.Errorf("%s: kept: %t", name, got)
		}
	}
}
