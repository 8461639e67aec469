package jointest_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base/policies"
	"wmco/controller/userdata"
	"wmco/deploy/admission"
)

// userData is the Secret of a namespace.
func userData(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "windows-user-data"}}
}

// clusterAPI makes the cluster have the namespace of the Cluster API until the end of the test, and another platform than none.
func (w *world) clusterAPI() {
	w.t.Helper()
	w.clusterAPINamespace()
	w.t.Cleanup(func() {
		must(w.t, client.IgnoreNotFound(w.Delete(context.Background(), userData("openshift-machine-api"))))
	})
	w.patchCluster("Infrastructure", `{"status":{"platformStatus":{"type":"VSphere"}}}`, `{"status":{"platformStatus":{"type":"None"}}}`)
	must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), userData("openshift-machine-api"))))
}

// clusterAPINamespace creates the namespace of the Cluster API until the end of the test. An earlier test may have deleted it a moment ago.
func (w *world) clusterAPINamespace() {
	w.t.Helper()
	var namespace *corev1.Namespace
	eventually(w.t, "the namespace of the Cluster API", func() bool {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-cluster-api"}}
		return w.Create(w.t.Context(), namespace) == nil
	})
	w.t.Cleanup(func() { must(w.t, w.Delete(context.Background(), namespace)) })
}

// TestUserDataThatMayNotBeWritten: the Role for the Cluster API is installed by those who have it. Without it the other namespace gets user
// data all the same, and the condition has the commands that give the right.
func TestUserDataThatMayNotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.clusterAPI()
	stop := w.operate()
	eventually(t, "the condition", func() bool { return w.condition(userdata.UserDataWritten).Status == metav1.ConditionFalse })
	c := w.condition(userdata.UserDataWritten)
	if c.Reason != "NotPermitted" || strings.Contains(c.Message, "openshift-machine-api") ||
		!strings.Contains(c.Message, "fix: oc -n openshift-cluster-api create role windows-machine-config-operator --verb=get,create,patch --resource=secrets --resource-name=windows-user-data && oc -n openshift-cluster-api create rolebinding") {
		t.Errorf("%+v", c)
	}
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(userData("openshift-machine-api")), &corev1.Secret{}))
	stop()
	server.Load(t, filepath.Join("..", "..", "..", "deploy", "cluster-api", "user-data.yaml"))
	// One that another program made: it gets the user data, and nothing of what it had.
	foreign := userData("openshift-cluster-api")
	foreign.Labels, foreign.Data = map[string]string{"made-by": "another"}, map[string][]byte{"userData": []byte("x"), "more": []byte("y")}
	must(t, w.Create(t.Context(), foreign))
	w.operate()
	eventually(t, "the condition", func() bool { return w.condition(userdata.UserDataWritten).Status == metav1.ConditionTrue })
	var here, there corev1.Secret
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(foreign), &here))
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(userData("openshift-machine-api")), &there))
	if !reflect.DeepEqual(here.Data, there.Data) || here.Labels["made-by"] != "another" || len(here.Data) != 1 {
		t.Errorf("%d and %d values, labels %v", len(here.Data), len(there.Data), here.Labels)
	}
}

// TestNoUserDataWithoutThePolicy: what binds the operator's account is missing, and the operator may not apply it.
func TestNoUserDataWithoutThePolicy(t *testing.T) {
	w := newWorld(t)
	w.patchCluster("Infrastructure", `{"status":{"platformStatus":{"type":"VSphere"}}}`, `{"status":{"platformStatus":{"type":"None"}}}`)
	must(t, client.IgnoreNotFound(w.Delete(t.Context(), userData("openshift-machine-api"))))
	must(t, w.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admission.Operator}}))
	w.operate()
	for _, kind := range []string{policies.SecretWritesBound, userdata.UserDataWritten} {
		eventually(t, kind, func() bool { return w.condition(kind).Status == metav1.ConditionFalse })
		if c := w.condition(kind); c.Reason != "PolicyNotApplied" || !strings.Contains(c.Message, "ValidatingAdmissionPolicyBinding") {
			t.Errorf("%+v", c)
		}
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(userData("openshift-machine-api")), &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("user data is written: %v", err)
	}
}
