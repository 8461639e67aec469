package api

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of objects that the server has.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name in requests.
	Resource   string
	Namespaced bool
	// Status is true where the status is a subresource.
	Status bool
	// Generation is true where metadata.generation counts the changes of anything but metadata and status.
	Generation bool
	// Custom is true for a kind of a CustomResourceDefinition.
	Custom bool
	// Schema is the openAPIV3Schema of its definition, where server-side apply has to know it.
	Schema map[string]any
}

// WithDefinition returns kinds of which one has the schema of a CustomResourceDefinition.
func WithDefinition(kinds []Kind, definition *unstructured.Unstructured) ([]Kind, error) {
	name, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		return nil, fmt.Errorf("the definition %s has no versions: %w", definition.GetName(), err)
	}
	first, _ := versions[0].(map[string]any)
	schema, ok, err := unstructured.NestedMap(first, "schema", "openAPIV3Schema")
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Kind == name && k.Custom })
	if err != nil || !ok || i < 0 {
		return nil, fmt.Errorf("the definition %s has no schema, or its kind is not known: %w", definition.GetName(), err)
	}
	kinds = slices.Clone(kinds)
	kinds[i].Schema = schema
	return kinds, nil
}

func builtin(gv schema.GroupVersion, kind, resource string, namespaced, status, generation bool) Kind {
	return Kind{gv.WithKind(kind), resource, namespaced, status, generation, false, nil}
}

// custom is a kind of a cluster of OpenShift. All of them count generations, as API servers do for custom resources.
func custom(group, version, kind, resource string, namespaced, status bool) Kind {
	return Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, resource, namespaced, status, true, true, nil}
}

// Kinds returns the kinds of a cluster of OpenShift that the operator, the node agents and kubelets ask for.
func Kinds() []Kind {
	const config, operator, machine, machineConfig = "config.openshift.io", "operator.openshift.io", "machine.openshift.io", "machineconfiguration.openshift.io"
	core := corev1.SchemeGroupVersion
	return []Kind{
		builtin(core, "Namespace", "namespaces", false, true, false),
		builtin(core, "Node", "nodes", false, true, false),
		builtin(core, "Pod", "pods", true, true, true),
		builtin(core, "Secret", "secrets", true, false, false),
		builtin(core, "ConfigMap", "configmaps", true, false, false),
		builtin(core, "ServiceAccount", "serviceaccounts", true, false, false),
		builtin(core, "Service", "services", true, true, false),
		builtin(core, "Event", "events", true, false, false),
		builtin(eventsv1.SchemeGroupVersion, "Event", "events", true, false, false),
		builtin(appsv1.SchemeGroupVersion, "Deployment", "deployments", true, true, true),
		builtin(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", true, true, true),
		builtin(rbacv1.SchemeGroupVersion, "Role", "roles", true, false, false),
		builtin(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings", true, false, false),
		builtin(rbacv1.SchemeGroupVersion, "ClusterRole", "clusterroles", false, false, false),
		builtin(rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "clusterrolebindings", false, false, false),
		builtin(coordinationv1.SchemeGroupVersion, "Lease", "leases", true, false, false),
		builtin(certificatesv1.SchemeGroupVersion, "CertificateSigningRequest", "certificatesigningrequests", false, true, false),
		builtin(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", true, true, true),
		builtin(networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies", true, false, true),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false, true, true),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false, false, true),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false, false, true),
		custom(config, "v1", "Infrastructure", "infrastructures", false, true),
		custom(config, "v1", "Network", "networks", false, false),
		custom(config, "v1", "Proxy", "proxies", false, true),
		custom(config, "v1", "APIServer", "apiservers", false, true),
		custom(config, "v1", "Image", "images", false, true),
		custom(config, "v1", "ClusterVersion", "clusterversions", false, true),
		custom(config, "v1", "ImageDigestMirrorSet", "imagedigestmirrorsets", false, true),
		custom(config, "v1", "ImageTagMirrorSet", "imagetagmirrorsets", false, true),
		custom(operator, "v1alpha1", "ImageContentSourcePolicy", "imagecontentsourcepolicies", false, true),
		custom(operator, "v1", "Network", "networks", false, false),
		custom(machineConfig, "v1", "MachineConfigPool", "machineconfigpools", false, true),
		custom(machineConfig, "v1", "MachineConfig", "machineconfigs", false, false),
		custom(machineConfig, "v1", "ControllerConfig", "controllerconfigs", false, true),
		custom(machineConfig, "v1", "PinnedImageSet", "pinnedimagesets", false, true),
		custom(machine, "v1beta1", "Machine", "machines", true, true),
		custom("windowsmachineconfig.openshift.io", "v1alpha1", "WindowsNodesStatus", "windowsnodesstatuses", true, true),
	}
}
