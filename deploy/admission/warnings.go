package admission

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/render"
)

// Warnings is the name of the webhook configuration, and WebhookService that of the Service that leads to the operator.
const (
	Warnings       = "windows-machine-config-operator-warnings"
	WebhookService = "windows-machine-config-operator-webhook"
	// WarningsPath is the path of its requests.
	WarningsPath = "/warn-about-windows-nodes"
)

// injectCA has OpenShift's service CA write its certificate into the configuration.
const injectCA = "service.beta.openshift.io/inject-cabundle"

// asked is a kind of objects that API servers ask about.
type asked struct{ group, version, resource, kind string }

// askedAbout are the kinds, those of one group together.
func askedAbout() []asked {
	const config = "config.openshift.io"
	return []asked{
		{config, "v1", "imagedigestmirrorsets", "ImageDigestMirrorSet"},
		{config, "v1", "imagetagmirrorsets", "ImageTagMirrorSet"},
		{config, "v1", "images", "Image"},
		{config, "v1", "proxies", "Proxy"},
		{config, "v1", "apiservers", "APIServer"},
		{"operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies", "ImageContentSourcePolicy"},
		{"", "v1", "configmaps", "ConfigMap"},
		{"", "v1", "secrets", "Secret"},
	}
}

// AsksAbout reports whether API servers ask about an object that the operator reads. Others who reach the port may ask
// about any.
func AsksAbout(group, kind, namespace, name string) bool {
	switch {
	case group != "":
	case kind == "Secret" && (namespace != render.PullSecretNamespace || name != render.PullSecretName):
		return false
	case kind == "ConfigMap" && name != render.InstancesConfigMap && name != render.SettingsConfigMap:
		return false
	}
	return slices.ContainsFunc(askedAbout(), func(a asked) bool { return a.group == group && a.kind == kind })
}

// WarningWebhook returns the configuration of the webhook that warns, while an object is applied, what it will change on
// the Windows nodes. It refuses nothing: an API server that gets no answer within two seconds goes on. Namespace is
// that of the operator.
//
// The API server sends no other Secret than the pull secret, and no other ConfigMap than the two that are named: a
// condition is evaluated before anything is sent.
func WarningWebhook(namespace string) *admissionv1.ValidatingWebhookConfiguration {
	var rules []admissionv1.RuleWithOperations
	for _, a := range askedAbout() {
		if n := len(rules); n > 0 && rules[n-1].APIGroups[0] == a.group {
			rules[n-1].Resources = append(rules[n-1].Resources, a.resource)
			continue
		}
		rules = append(rules, admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			Rule: admissionv1.Rule{
				APIGroups: []string{a.group}, APIVersions: []string{a.version}, Resources: []string{a.resource},
				Scope: new(admissionv1.AllScopes),
			},
		})
	}
	return &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: Warnings, Annotations: map[string]string{injectCA: "true"}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "warnings.windowsmachineconfig.openshift.io",
			AdmissionReviewVersions: []string{"v1"},
			FailurePolicy:           new(admissionv1.Ignore),
			SideEffects:             new(admissionv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(2)),
			MatchPolicy:             new(admissionv1.Equivalent),
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: namespace, Name: WebhookService, Path: new(WarningsPath), Port: new(int32(443)),
			}},
			Rules: rules,
			MatchConditions: []admissionv1.MatchCondition{
				{
					Name: "secrets",
					Expression: fmt.Sprintf(
						"request.resource.resource != 'secrets' || request.namespace == '%s' && request.name == '%s'",
						render.PullSecretNamespace, render.PullSecretName,
					),
				},
				{
					Name: "configmaps",
					Expression: fmt.Sprintf(
						"request.resource.resource != 'configmaps' || request.namespace == '%s' && request.name in %s",
						namespace, list(render.InstancesConfigMap, render.SettingsConfigMap),
					),
				},
			},
		}},
	}
}
