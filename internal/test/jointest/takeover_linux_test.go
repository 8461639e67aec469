package jointest_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/prerequisites"
	"wmco/deploy/kustomize"
	"wmco/internal/test/testenv/controlplane"
	"wmco/internal/test/testenv/manifests"
)

// existingObjects are the objects of an installation of the existing operator, beside its Deployment, which is in the example cluster.
var existingObjects = filepath.Join("testdata", "existing")

const deploymentName = "windows-machine-config-operator"

// existingOperator returns the Pod of the existing operator, which holds its lock, as operator-lib's leader does.
func (w *world) existingOperator() *corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	eventually(w.t, "the Pod of the existing operator", func() bool {
		must(w.t, w.List(w.t.Context(), &pods, client.InNamespace(gather.OperatorNamespace), client.MatchingLabels{"name": deploymentName}))
		return len(pods.Items) == 1
	})
	pod := &pods.Items[0]
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: "windows-machine-config-operator-lock",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
	}})
	return pod
}

// replaceDeployment gives the existing Deployment our specification in one update, as OLM does with one of the same name.
func (w *world) replaceDeployment() {
	w.t.Helper()
	list, err := kustomize.Build(filepath.Join("..", "..", "..", "deploy"))
	must(w.t, err)
	var ours, have appsv1.Deployment
	for _, o := range list {
		if o.GetKind() == "Deployment" {
			must(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &ours))
		}
		if o.GetKind() == "Namespace" {
			w.label(o.GetLabels())
		}
	}
	must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(&ours), &have))
	before := have.DeepCopy()
	have.Spec, have.Labels = ours.Spec, ours.Labels
	must(w.t, w.Patch(w.t.Context(), &have, client.MergeFrom(before)))
	if have.UID != before.UID || have.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		w.t.Errorf("the Deployment is %+v", have.Spec.Strategy)
	}
}

// label gives the namespace of the operator its labels until the end of the test.
func (w *world) label(labels map[string]string) {
	w.t.Helper()
	var before corev1.Namespace
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Name: gather.OperatorNamespace}, &before))
	after := before.DeepCopy()
	after.Labels = labels
	must(w.t, w.Patch(w.t.Context(), after.DeepCopy(), client.MergeFrom(&before)))
	w.t.Cleanup(func() { must(w.t, w.Patch(context.Background(), before.DeepCopy(), client.MergeFrom(after))) })
}

// contents returns what the objects of files hold now. Of a Secret that is only its type: a controller fills it.
func (w *world) contents(path string) map[string]any {
	w.t.Helper()
	list, err := manifests.Read(path)
	must(w.t, err)
	all := map[string]any{}
	for _, m := range list {
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(m.GroupVersionKind())
		if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(m), have); err != nil {
			all[m.String()] = err.Error()
			continue
		}
		kept := map[string]any{"labels": operators(have.GetLabels()), "annotations": operators(have.GetAnnotations())}
		kept["unschedulable"], _, _ = unstructured.NestedBool(have.Object, "spec", "unschedulable")
		for _, field := range []string{"data", "rules", "subjects", "roleRef", "type"} {
			if have.GetKind() != "Secret" || field == "type" {
				kept[field] = have.Object[field]
			}
		}
		all[m.String()] = kept
	}
	return all
}

// operators returns the labels or annotations that operators write. Controllers of the cluster write others.
func operators(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, _ string) bool { return !strings.HasPrefix(key, published.Domain) })
	return kept
}

// writes returns what the operator has asked the API server to change.
func (w *world) writes(about func(controlplane.Request) bool) []string {
	w.t.Helper()
	requests, err := server.ControlPlane(w.t).Requests()
	must(w.t, err)
	var list []string
	for _, r := range requests[w.asked:] {
		if r.User == operatorUser && r.IsWrite() && about(r) {
			list = append(list, r.String())
		}
	}
	return list
}

// dialed reports whether an operator has tried to reach a host.
func (w *world) dialed(address string) bool {
	w.t.Helper()
	text, err := os.ReadFile(string(w.at) + ".dialed")
	if os.IsNotExist(err) {
		return false
	}
	must(w.t, err)
	return slices.Contains(strings.Fields(string(text)), address)
}

// TestTakeover: the operator is started while the existing one works. It writes nothing until that one is gone. Its nodes stay as they are,
// and get their certificates; what the existing operator and the user have made stays; a new machine becomes a node.
func TestTakeover(t *testing.T) {
	w := newWorld(t)
	// Operators of other tests move pods.
	requests, err := server.ControlPlane(t).Requests()
	must(t, err)
	w.asked = len(requests)
	server.Load(t, existingObjects)
	w.names["instance-old.example.com"] = []string{"192.0.2.32"}
	old := map[string]string{"machine-old": "192.0.2.31", "instance-old": "192.0.2.32"}
	pod := w.existingOperator()
	entries := w.instances("192.0.2.32")
	w.machineObject("machine-old", "192.0.2.31")
	before := w.contents(existingObjects)
	earlier := len(w.writes(func(controlplane.Request) bool { return true }))

	w.operate()
	eventually(t, "the operator to say for which Pod it waits", func() bool {
		return strings.Contains(w.log.String(), "the existing operator still runs") && strings.Contains(w.log.String(), pod.Name)
	})
	if list := w.writes(func(controlplane.Request) bool { return true })[earlier:]; len(list) > 0 {
		t.Errorf("written while the existing operator works: %q", list)
	}
	w.replaceDeployment()
	eventually(t, "our Pod in the place of theirs", func() bool {
		var pods corev1.PodList
		must(t, w.List(t.Context(), &pods, client.InNamespace(gather.OperatorNamespace), client.MatchingLabels{"name": deploymentName}))
		return len(pods.Items) == 1 && pods.Items[0].Name != pod.Name
	})

	eventually(t, "the condition about nodes of the existing operator", func() bool {
		c := w.condition(prerequisites.NodesAdopted)
		return c.Status == metav1.ConditionFalse && c.Reason == fleet.ReasonWaitingForAdoption && strings.Contains(c.Message, "instance-old, machine-old; oc logs and oc exec fail there from ") && strings.Contains(c.Message, "; fix: ")
	})
	eventually(t, "such a node in the status", func() bool {
		h := w.host("instance-old")
		return h.State == nodestate.Waiting && h.Reason == fleet.ReasonWaitingForAdoption && strings.Contains(h.Fix, "wmco adopt instance-old")
	})
	w.machine("machine-new", "192.0.2.33")
	w.machineObject("machine-new", "192.0.2.33")
	eventually(t, "a new machine to join", func() bool { return w.joined("machine-new") })
	w.serving("instance-old", "192.0.2.32")

	if diff := cmp.Diff(before, w.contents(existingObjects)); diff != "" {
		t.Errorf("what the existing operator has left (-before +after):\n%s", diff)
	}
	var instances corev1.ConfigMap
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(entries), &instances))
	if diff := cmp.Diff(entries.Data, instances.Data); diff != "" {
		t.Errorf("windows-instances (-before +after):\n%s", diff)
	}
	for name, address := range old {
		if list := w.writes(func(r controlplane.Request) bool {
			return r.Name == name && strings.HasPrefix(r.Resource, "nodes")
		}); len(list) > 0 {
			t.Errorf("written on %s: %q", name, list)
		}
		if w.dialed(address) {
			t.Errorf("%s was reached over SSH", name)
		}
	}
	if list := w.writes(func(r controlplane.Request) bool {
		return r.Resource == "pods/eviction" || r.Verb == "delete" && r.Resource == "pods"
	}); len(list) > 0 {
		t.Errorf("pods were moved: %q", list)
	}
	if !w.dialed("192.0.2.33") {
		t.Error("attempts to reach hosts are not noted")
	}
}

// serving requests a serving certificate as the kubelet of a node does, and waits until it is approved.
func (w *world) serving(node, address string) {
	w.t.Helper()
	csr := impostor{node: node, signer: servingSigner, usages: servingUsages, dns: []string{node}, ip: address}.request(w.t, "csr-"+node)
	w.post(w.user("system:node:"+node, "system:nodes"), csr)
	w.t.Cleanup(func() { must(w.t, client.IgnoreNotFound(w.Delete(context.Background(), csr))) })
	eventually(w.t, "the serving certificate of "+node, func() bool {
		var have certificatesv1.CertificateSigningRequest
		must(w.t, w.Get(w.t.Context(), types.NamespacedName{Name: csr.Name}, &have))
		return slices.ContainsFunc(have.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
	})
}
