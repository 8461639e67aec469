package admission

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/controller/gather"
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

// WarningWebhook returns the configuration of the webhook that says, while an object is applied, what it will change on the Windows nodes. It refuses
// nothing: an API server that gets no answer within two seconds goes on. Namespace is that of the operator.
//
// The API server sends no other Secret than the pull secret, and no other ConfigMap than the two that are named: a condition is evaluated before
// anything is sent.
func WarningWebhook(namespace string) *admissionv1.ValidatingWebhookConfiguration {
	rule := func(group, version string, resources ...string) admissionv1.RuleWithOperations {
		return admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: new(admissionv1.AllScopes)},
		}
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
			Rules: []admissionv1.RuleWithOperations{
				rule("config.openshift.io", "v1", "imagedigestmirrorsets", "imagetagmirrorsets", "images", "proxies", "apiservers"),
				rule("operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies"),
				rule("", "v1", "configmaps", "secrets"),
			},
			MatchConditions: []admissionv1.MatchCondition{
				{Name: "secrets", Expression: fmt.Sprintf("request.resource.resource != 'secrets' || request.namespace == '%s' && request.name == '%s'", gather.PullSecretNamespace, gather.PullSecretName)},
				{Name: "configmaps", Expression: fmt.Sprintf("request.resource.resource != 'configmaps' || request.namespace == '%s' && request.name in %s", namespace, list(gather.InstancesName, render.SettingsConfigMap))},
			},
		}},
	}
}
