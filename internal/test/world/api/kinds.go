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

// trait is what is so of a kind.
type trait int

const (
	namespaced trait = 1 << iota
	status
	generation
)

// builtin is a kind of Kubernetes.
func builtin(gv schema.GroupVersion, kind, resource string, is trait) Kind {
	return Kind{
		GroupVersionKind: gv.WithKind(kind), Resource: resource, Namespaced: is&namespaced != 0, Status: is&status != 0, Generation: is&generation != 0,
	}
}

// custom is a kind of a cluster of OpenShift. All of them count generations, as API servers do for custom resources.
func custom(gv schema.GroupVersion, kind, resource string, is trait) Kind {
	k := builtin(gv, kind, resource, is|generation)
	k.Custom = true
	return k
}

// Kinds returns the kinds of a cluster of OpenShift that the operator, the node agents and kubelets ask for. Events of the
// two groups are apart here, and one in a cluster.
func Kinds() []Kind {
	core := corev1.SchemeGroupVersion
	config, machineConfig := schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}, schema.GroupVersion{Group: "machineconfiguration.openshift.io", Version: "v1"}
	operator := schema.GroupVersion{Group: "operator.openshift.io", Version: "v1"}
	mirrors := schema.GroupVersion{Group: operator.Group, Version: "v1alpha1"}
	machines := schema.GroupVersion{Group: "machine.openshift.io", Version: "v1beta1"}
	ours := schema.GroupVersion{Group: "windowsmachineconfig.openshift.io", Version: "v1alpha1"}
	return []Kind{
		builtin(core, "Namespace", "namespaces", status),
		builtin(core, "Node", "nodes", status),
		builtin(core, "Pod", "pods", namespaced|status|generation),
		builtin(core, "Secret", "secrets", namespaced),
		builtin(core, "ConfigMap", "configmaps", namespaced),
		builtin(core, "ServiceAccount", "serviceaccounts", namespaced),
		builtin(core, "Service", "services", namespaced|status),
		builtin(core, "Event", "events", namespaced),
		builtin(eventsv1.SchemeGroupVersion, "Event", "events", namespaced),
		builtin(appsv1.SchemeGroupVersion, "Deployment", "deployments", namespaced|status|generation),
		builtin(appsv1.SchemeGroupVersion, "ReplicaSet", "replicasets", namespaced|status|generation),
		builtin(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets", namespaced|status|generation),
		builtin(rbacv1.SchemeGroupVersion, "Role", "roles", namespaced),
		builtin(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings", namespaced),
		builtin(rbacv1.SchemeGroupVersion, "ClusterRole", "clusterroles", 0),
		builtin(rbacv1.SchemeGroupVersion, "ClusterRoleBinding", "clusterrolebindings", 0),
		builtin(coordinationv1.SchemeGroupVersion, "Lease", "leases", namespaced),
		builtin(certificatesv1.SchemeGroupVersion, "CertificateSigningRequest", "certificatesigningrequests", status),
		builtin(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", namespaced|status|generation),
		builtin(networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies", namespaced|generation),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", status|generation),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", generation),
		builtin(admissionregistrationv1.SchemeGroupVersion, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", generation),
		custom(config, "Infrastructure", "infrastructures", status),
		custom(config, "Network", "networks", 0),
		custom(config, "Proxy", "proxies", status),
		custom(config, "APIServer", "apiservers", status),
		custom(config, "Image", "images", status),
		custom(config, "ClusterVersion", "clusterversions", status),
		custom(config, "ImageDigestMirrorSet", "imagedigestmirrorsets", status),
		custom(config, "ImageTagMirrorSet", "imagetagmirrorsets", status),
		custom(mirrors, "ImageContentSourcePolicy", "imagecontentsourcepolicies", status),
		custom(operator, "Network", "networks", 0),
		custom(machineConfig, "MachineConfigPool", "machineconfigpools", status),
		custom(machineConfig, "MachineConfig", "machineconfigs", 0),
		custom(machineConfig, "ControllerConfig", "controllerconfigs", status),
		custom(machineConfig, "PinnedImageSet", "pinnedimagesets", status),
		custom(machines, "Machine", "machines", namespaced|status),
		custom(machines, "MachineSet", "machinesets", namespaced|status),
		custom(ours, "WindowsNodesStatus", "windowsnodesstatuses", namespaced|status),
	}
}
