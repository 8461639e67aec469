package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/render"
)

// Names of the policies about what administrators write. Nothing depends on them: the operator judges the objects
// again, in more detail.
const (
	Instances = "windows-instances"
	Settings  = "windows-machine-config"
)

// CheckInstances returns the policy that refuses entries of windows-instances which the operator would skip, and its
// binding. An entry that was there before may stay as it is. Namespace is that of the operator.
func CheckInstances(namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	const entries = "has(object.data) ? object.data : {}"
	const before = "oldObject != null && has(oldObject.data) ? oldObject.data : {}"
	const changed = "variables.entries.all(k, k in variables.before && variables.before[k] == variables.entries[k] || %s)"
	p := configMapPolicy(Instances, namespace, render.InstancesConfigMap)
	p.Spec.Variables = []admissionv1.Variable{{Name: "entries", Expression: entries}, {Name: "before", Expression: before}}
	p.Spec.Validations = []admissionv1.Validation{
		{
			// The key of a ConfigMap has no colon, so what has digits and dots alone must be an IPv4 address.
			Expression: fmt.Sprintf(
				changed,
				`(k.matches('^[0-9.]+$') ? isIP(k) : k.lowerAscii().matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')) && !(k.lowerAscii() == 'localhost' || k.lowerAscii().endsWith('.localhost') || k.startsWith('127.'))`,
			),
			Message: "an entry of windows-instances has the IPv4 address or the DNS name of the host as its key",
		},
		{
			Expression: fmt.Sprintf(
				changed,
				`variables.entries[k].matches('^[[:space:]]*username[[:blank:]]*=[[:blank:]]*[^[:space:]][^\n]*[[:space:]]*$')`,
			),
			Message: "an entry of windows-instances has the one line username=NAME as its value",
		},
	}
	return p, bind(Instances)
}

// CheckSettings returns the policy that refuses a windows-machine-config without effect, and its binding. CEL reads no
// YAML: what begins a line is looked at, and nothing else.
func CheckSettings(namespace string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	fields := SettingsFields()
	p := configMapPolicy(Settings, namespace, render.SettingsConfigMap)
	p.Spec.Validations = []admissionv1.Validation{
		{
			Expression: fmt.Sprintf("!has(object.data) || object.data.size() == 0 || '%s' in object.data", render.SettingsKey),
			Message:    "windows-machine-config has its settings in the key " + render.SettingsKey,
		},
		{
			Expression: fmt.Sprintf("!has(object.data) || !('%[1]s' in object.data) || "+
				"object.data['%[1]s'].split('\\n').all(l, "+
				"!l.matches('^[A-Za-z][-A-Za-z0-9_]*[[:blank:]]*:([[:space:]]|$)') || l.matches('^(%[2]s)[[:blank:]]*:'))",
				render.SettingsKey, strings.Join(fields, "|")),
			Message: "windows-machine-config knows these settings: " + strings.Join(fields, ", "),
		},
	}
	return p, bind(Settings)
}

// SettingsFields returns the names of the settings, sorted.
func SettingsFields() []string {
	var names []string
	for f := range reflect.TypeFor[render.Settings]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// configMapPolicy returns a policy about one ConfigMap. What the policy itself cannot judge is not refused.
func configMapPolicy(name, namespace, configMap string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionv1.Ignore),
			MatchConstraints: core([]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "configmaps"),
			MatchConditions: []admissionv1.MatchCondition{{
				Name:       "configmap",
				Expression: fmt.Sprintf("request.namespace == '%s' && request.name == '%s'", namespace, configMap),
			}},
		},
	}
}
