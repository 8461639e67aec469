package prerequisites

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
)

// namespaceReader answers with one namespace, or with an error.
type namespaceReader struct {
	client.Reader
	labels map[string]string
	err    error
}

func (r namespaceReader) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	o.SetLabels(r.labels)
	return r.err
}

func TestANamespaceWithoutTheLabelOfClusterMonitoringIsSaid(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "wmco", errors.New("no rule"))
	for name, c := range map[string]struct {
		reader namespaceReader
		status metav1.ConditionStatus
		fix    string
	}{
		"with the label":    {namespaceReader{labels: map[string]string{monitoringLabel: "true"}}, metav1.ConditionTrue, ""},
		"without labels":    {namespaceReader{}, metav1.ConditionFalse, "oc label namespace openshift-windows-machine-config-operator openshift.io/cluster-monitoring=true"},
		"with another text": {namespaceReader{labels: map[string]string{monitoringLabel: "false"}}, metav1.ConditionFalse, "oc label"},
		"may not be read":   {namespaceReader{err: forbidden}, metav1.ConditionUnknown, "operator.yaml"},
	} {
		got, err := monitoringCondition(t.Context(), c.reader, gather.OperatorNamespace)
		if err != nil || got.Type != NamespaceMonitored || got.Status != c.status || got.Reason == "" || !strings.Contains(got.Message, c.fix) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := monitoringCondition(t.Context(), namespaceReader{err: errors.New("no route")}, gather.OperatorNamespace); err == nil {
		t.Error("an API server that does not answer is no label that is missing")
	}
}

// In another namespace the label does not help: the certificate of windows_exporter is for another name than Prometheus asks for.
func TestAnotherNamespaceIsSaid(t *testing.T) {
	got, err := monitoringCondition(t.Context(), namespaceReader{labels: map[string]string{monitoringLabel: "true"}}, "openshift-operators")
	if err != nil || got.Status != metav1.ConditionFalse || got.Reason != ReasonOtherNamespace || !strings.Contains(got.Message, "is installed in namespace openshift-operators") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestANamespaceThatIsNotMonitoredHasOneEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	c := &Cluster{Events: recorder, Deployment: &corev1.ObjectReference{}}
	missing, err := monitoringCondition(t.Context(), namespaceReader{}, gather.OperatorNamespace)
	if err != nil {
		t.Fatal(err)
	}
	met, err := monitoringCondition(t.Context(), namespaceReader{labels: map[string]string{monitoringLabel: "true"}}, gather.OperatorNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range []metav1.Condition{missing, missing, missing, met, met} {
		c.warnOnce(condition)
	}
	if n := len(recorder.Events); n != 1 {
		t.Fatalf("%d Events", n)
	}
	if text := <-recorder.Events; !strings.Contains(text, ReasonNotMonitored) {
		t.Errorf("Event %q", text)
	}
	c.warnOnce(missing)
	if n := len(recorder.Events); n != 1 {
		t.Errorf("%d Events after the label was removed again", n)
	}
}
