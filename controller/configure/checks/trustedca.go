package checks

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// TrustedCALimit is how long the network operator has to fill the ConfigMap before that is an error. It takes seconds,
// unless it is being updated.
const TrustedCALimit = 10 * time.Minute

// TrustedCA is what the cluster has of the proxy's CAs.
type TrustedCA struct {
	// Proxy reports whether the cluster has a proxy. Without one, no CAs are needed.
	Proxy bool
	// ConfigMap is that of the operator's namespace; one without a name is absent.
	ConfigMap corev1.ConfigMap
}

// ConfigMapToApply returns the ConfigMap to apply: its name and its label, which is all that is the operator's. ok is
// false if the cluster has them, or needs none.
func (t TrustedCA) ConfigMapToApply(namespace string) (wanted corev1.ConfigMap, ok bool) {
	if !t.Proxy || t.isLabelled() {
		return corev1.ConfigMap{}, false
	}
	return corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: render.TrustedCAConfigMap,
			Labels: map[string]string{render.TrustedCALabel: "true"}},
	}, true
}

func (t TrustedCA) isLabelled() bool {
	return t.ConfigMap.Name != "" && t.ConfigMap.Labels[render.TrustedCALabel] == "true"
}

// checkInjected returns a finding for CAs that are not known yet, and when it will be an error.
func (t TrustedCA) checkInjected(now time.Time) (f bundle.Finding, again time.Duration, ok bool) {
	if !t.Proxy || strings.TrimSpace(t.ConfigMap.Data[render.TrustedCAKey]) != "" {
		return f, 0, true
	}
	f = bundle.Finding{
		Severity: bundle.SeverityWarning, Reason: reason.TrustedCAPending,
		Object: bundle.Ref{Kind: "ConfigMap", Namespace: t.ConfigMap.Namespace, Name: render.TrustedCAConfigMap},
		Fix: "none for " + TrustedCALimit.String() +
			"; then check the network operator: oc get clusteroperator network",
	}
	switch {
	case t.ConfigMap.Name == "":
		f.Message = "does not exist; the operator creates it with the label " + render.TrustedCALabel +
			"=true, and the network operator fills it"
		return f, 0, false
	case !t.isLabelled():
		f.Message = "has not the label " + render.TrustedCALabel +
			"=true; the operator sets it, and the network operator fills the ConfigMap"
		return f, 0, false
	}
	f.Field = `data["` + render.TrustedCAKey + `"]`
	waited := now.Sub(t.lastWritten())
	if waited < TrustedCALimit {
		f.Message = "is empty; the network operator has not filled it with the CAs of the proxy yet"
		return f, TrustedCALimit - max(waited, 0), false
	}
	f.Severity, f.Reason = bundle.SeverityError, reason.TrustedCAEmpty
	f.Message = fmt.Sprintf("is empty, and the network operator has not filled it with the CAs of the proxy for "+
		"more than %s; hosts wait to join", TrustedCALimit)
	f.Fix = "check the network operator (oc get clusteroperator network), and the ConfigMap that spec.trustedCA of Proxy/cluster names"
	return f, 0, false
}

// lastWritten is when the ConfigMap was last written, by its label or its data: nothing else remembers since when it
// waits.
func (t TrustedCA) lastWritten() time.Time {
	last := t.ConfigMap.CreationTimestamp.Time
	for _, m := range t.ConfigMap.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
