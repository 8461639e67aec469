package jointest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/node"
	"wmco/payload"
)

const kubeletProgram = `C:\k\kubelet.exe`

// olderKubelet gives a host the kubelet of an earlier minor version, and waits until its Node has that version. It returns the version that a bundle
// brings.
func (w *world) olderKubelet(name string) (newer string) {
	w.t.Helper()
	old, _ := payload.ReleaseOf("1.35")
	tested, _ := payload.ReleaseOf(payload.TestedKubernetes)
	m := w.machines[name]
	must(w.t, m.WriteFile(w.t.Context(), kubeletProgram, bundle.AccessUsers, []byte(payload.For(payload.Kubelet, old.Minor).Name)))
	must(w.t, m.RestartService(w.t.Context(), "kubelet"))
	eventually(w.t, "a Node with the older kubelet", func() bool {
		n := w.node(name)
		return n.Status.NodeInfo.KubeletVersion == old.Version && isReady(n)
	})
	return tested.Version
}

// refuseKubelet has the API server refuse all reports of a node whose kubelet has a version. The returned function has it accept them again.
func (w *world) refuseKubelet(name, version string) (accept func()) {
	w.t.Helper()
	meta, forbidden := metav1.ObjectMeta{Name: "kubelet-" + name}, metav1.StatusReasonForbidden
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes/status"}},
		}}}},
		Validations: []admissionv1.Validation{{Reason: &forbidden, Expression: fmt.Sprintf(`object.metadata.name != %q || object.status.nodeInfo.kubeletVersion != %q`, name, version)}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	w.create(policy)
	w.create(binding)
	config := w.as(rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes"}})
	kubelet, err := client.New(config, client.Options{})
	must(w.t, err)
	refused := func() bool {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		before := n.DeepCopy()
		n.Status.NodeInfo.KubeletVersion = version
		return kubelet.Status().Patch(w.t.Context(), n, client.MergeFrom(before), client.DryRunAll) != nil
	}
	eventually(w.t, "the policy to refuse", refused)
	return func() {
		w.t.Helper()
		must(w.t, w.Delete(context.Background(), binding))
		eventually(w.t, "the end of the policy", func() bool { return !refused() })
	}
}

// TestAnAdoptionIsRolledBackWhereTheKubeletDoesNotComeBack: its service runs and its probe succeeds, but the API server refuses what it reports. The
// Node stays Ready for a while by the report of the old one.
func TestAnAdoptionIsRolledBackWhereTheKubeletDoesNotComeBack(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-l": "192.0.2.92"})
	m := w.machines["instance-l"]
	accept := w.refuseKubelet("instance-l", w.olderKubelet("instance-l"))
	before := m.Text(kubeletProgram)
	s := w.settings()
	s.KubeletWithin = 30 * time.Second
	w.operateAs(s)
	w.adopt("instance-l")
	w.awaitEvent("TurnBegun", "instance-l", "drain")
	w.awaitEvent(node.EventNotAdopted, "instance-l", "as the existing operator left it", "the kubelet has not reported to the API server since it was restarted")
	eventually(t, "the existing agent and the older kubelet", func() bool { return m.hasExistingAgent() && m.Text(kubeletProgram) == before })
	eventually(t, "the cause in the report", func() bool {
		r, err := published.DecodeReport(w.node("instance-l").Annotations[published.ReportAnnotation])
		return err == nil && r.State == published.StateRolledBack && r.Cause == published.CauseConfirmation
	})
	if !w.recordOf("192.0.2.92").Adopting {
		t.Error("the host counts as adopted")
	}
	eventually(t, "a Node that is Ready by its older kubelet", func() bool { return isReady(w.node("instance-l")) })

	accept()
	w.annotate("instance-l", published.RetryAnnotation, "now")
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-l", "192.0.2.92") })
	if m.Text(kubeletProgram) == before {
		t.Error("the kubelet was not exchanged")
	}
}
