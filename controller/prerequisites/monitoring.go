package prerequisites

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/base/conditions"
	"wmco/controller/gather"
)

// NamespaceMonitored is the type of the condition that cluster monitoring scrapes the operator's namespace. The
// existing operator has Events alone for it.
const NamespaceMonitored = "NamespaceMonitored"

// The reasons of NamespaceMonitored.
const (
	ReasonNotMonitored      = "NamespaceNotMonitored"
	ReasonOtherNamespace    = "InstalledElsewhere"
	ReasonMonitoringUnknown = "NamespaceNotReadable"
)

// Prometheus of OpenShift's cluster monitoring takes ServiceMonitors and rules of the namespaces with this label alone.
const (
	monitoringLabel = "openshift.io/cluster-monitoring"
	monitoringTrue  = "true"
)

// monitoringCondition reports whether Prometheus of the cluster scrapes a namespace. Without that, Windows nodes have no
// graphs and no alerts, and nothing else shows it.
func monitoringCondition(ctx context.Context, live client.Reader, namespace string) (metav1.Condition, error) {
	if namespace != gather.OperatorNamespace {
		return metav1.Condition{
			Type: NamespaceMonitored, Status: metav1.ConditionFalse, Reason: ReasonOtherNamespace,
			Message: fmt.Sprintf("the operator is installed in namespace %s, and the objects for Prometheus "+
				"name %s: Windows nodes have neither graphs nor alerts; fix: install it in %[2]s, or write %[1]s "+
				"into the serverName, namespaceSelector and namespace of its ServiceMonitors and rules", namespace,
				gather.OperatorNamespace),
		}, nil
	}
	var n corev1.Namespace
	err := live.Get(ctx, client.ObjectKey{Name: namespace}, &n)
	if apierrors.IsForbidden(err) {
		return metav1.Condition{
			Type: NamespaceMonitored, Status: metav1.ConditionUnknown, Reason: ReasonMonitoringUnknown,
			Message: published.Shorten(fmt.Sprintf("whether metrics of Windows nodes are collected is not known: "+
				"%v; fix: apply deploy/rbac/operator.yaml", err)),
		}, nil
	}
	if err != nil {
		return metav1.Condition{}, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	if n.Labels[monitoringLabel] == monitoringTrue {
		return conditions.AsExpected(NamespaceMonitored), nil
	}
	return metav1.Condition{
		Type: NamespaceMonitored, Status: metav1.ConditionFalse, Reason: ReasonNotMonitored,
		Message: fmt.Sprintf("Prometheus of the cluster does not scrape namespace %[1]s, so Windows nodes have "+
			"neither graphs nor alerts; fix: oc label namespace %[1]s %[2]s=%[3]s", namespace, monitoringLabel,
			monitoringTrue),
	}, nil
}
