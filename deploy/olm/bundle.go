package olm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"wmco/payload"
)

// Files are the files of a bundle or catalog by their path, with slashes.
type Files map[string][]byte

// ErrKind means that OLM installs no object of this kind from a bundle.
var ErrKind = errors.New("a bundle cannot carry this kind")

// bundled are the kinds that are files of the bundle; OLM knows more (operator-registry,
// pkg/lib/bundle/supported_resources.go).
func bundled() []string {
	return []string{
		kindCRD, kindClusterRole, kindClusterRoleBinding, kindRole, kindRoleBinding, "Service", "ServiceMonitor", "PrometheusRule", "NetworkPolicy", "ConfigMap",
	}
}

const (
	kindNamespace          = "Namespace"
	kindServiceAccount     = "ServiceAccount"
	kindDeployment         = "Deployment"
	kindCRD                = "CustomResourceDefinition"
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindRole               = "Role"
	kindRoleBinding        = "RoleBinding"
	kindPolicy             = "ValidatingAdmissionPolicy"
	kindPolicyBinding      = "ValidatingAdmissionPolicyBinding"
	kindWebhook            = "ValidatingWebhookConfiguration"
)

// parts are the objects of a deployment, by what becomes of them.
type parts struct {
	// namespace becomes an annotation, and deployment a part of the ClusterServiceVersion.
	namespace, deployment *unstructured.Unstructured
	// rules are what the operator may do in the whole cluster.
	rules []rbacv1.PolicyRule
	// files are the other objects.
	files []*unstructured.Unstructured
}

// Bundle returns the files of a bundle with these objects.
func Bundle(objects []*unstructured.Unstructured, r Release) (Files, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	p, err := split(objects)
	if err != nil {
		return nil, err
	}
	csv, err := p.csv(r)
	if err != nil {
		return nil, err
	}
	all := Files{}
	if err := all.add("manifests/"+Package+".clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	for _, o := range p.files {
		o = o.DeepCopy()
		o.SetNamespace("") // OLM puts it where the operator is installed
		name := fmt.Sprintf("manifests/%s_%s.yaml", o.GetName(), strings.ToLower(o.GetKind()))
		if err := all.add(name, o.Object); err != nil {
			return nil, err
		}
	}
	if err := all.add("metadata/annotations.yaml", map[string]any{"annotations": Labels()}); err != nil {
		return nil, err
	}
	return all, all.add("metadata/properties.yaml", map[string]any{"properties": []property{maxOpenShift()}})
}

// Labels are the annotations of the bundle, which are the labels of its image too.
func Labels() map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": Package, prefix + "channels.v1": channelPreview + "," + channelStable, prefix + "channel.default.v1": channelStable,
		"com.redhat.openshift.versions": catalogVersions(),
	}
}

// catalogVersions are the clusters whose catalogs have the bundle
// (redhat-openshift-ecosystem.github.io/operator-pipelines/users/packaging-required-fields).
func catalogVersions() string {
	all := payload.ClusterVersions()
	return "v" + all[0].Cluster + "-v" + all[len(all)-1].Cluster
}

type property struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// maxOpenShift keeps a cluster from an update to a version that this release is not for
// (github.com/openshift/enhancements, olm/max-openshift-versions-for-operators.md).
func maxOpenShift() property {
	versions := payload.ClusterVersions()
	return property{"olm.maxOpenShiftVersion", versions[len(versions)-1].Cluster}
}

func (f Files) add(name string, content any) error {
	if _, ok := f[name]; ok {
		return fmt.Errorf("writing %s: two objects have this file", name)
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	f[name] = text
	return nil
}

// split decides where each object goes.
func split(objects []*unstructured.Unstructured) (p parts, err error) {
	roles := map[string]*unstructured.Unstructured{}
	// elsewhere are Roles of other namespaces: OLM puts every Role into the operator's own.
	var elsewhere []*unstructured.Unstructured
	// policies are for the operator to apply: a bundle cannot carry them.
	var policies []*unstructured.Unstructured
	for _, o := range objects {
		switch kind := o.GetKind(); {
		case kind == kindNamespace:
			p.namespace = o
		case kind == kindDeployment:
			p.deployment = o
		case kind == kindServiceAccount && o.GetName() == Package: // OLM makes it
		case isLeftOut(o):
		case kind == kindPolicy || kind == kindPolicyBinding:
			policies = append(policies, o)
		case kind == kindRole && o.GetNamespace() != namespace:
			elsewhere = append(elsewhere, o)
		case kind == kindRoleBinding && o.GetNamespace() != namespace: // the rules of its Role become rules for the whole cluster
		case kind == kindClusterRole && o.GetName() == Package:
			roles[kindClusterRole] = o
		case kind == kindClusterRoleBinding && o.GetName() == Package: // OLM makes it
			roles[kindClusterRoleBinding] = o
		case slices.Contains(bundled(), kind):
			p.files = append(p.files, o)
		default:
			return parts{}, fmt.Errorf("%w: %s %s", ErrKind, kind, o.GetName())
		}
	}
	if p.namespace == nil || p.deployment == nil || len(roles) != 2 {
		return parts{}, errors.New("the manifests lack the Namespace, the Deployment, or the ClusterRole of the operator with its binding")
	}
	for _, o := range append([]*unstructured.Unstructured{roles[kindClusterRole]}, elsewhere...) {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return parts{}, fmt.Errorf("reading %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		p.rules = append(p.rules, role.Rules...)
	}
	return p, p.apply(policies)
}

// isLeftOut reports whether nothing depends on an object that a bundle cannot carry: administrators apply it by themselves (docs/held-changes.md, docs/monitoring.md), and the
// NetworkPolicy the operator does.
func isLeftOut(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case kindWebhook:
		return o.GetName() == Package+"-warnings"
	case "NetworkPolicy":
		// An OLM without operator-framework/operator-registry v1.55 refuses a bundle that has one: OpenShift 4.20 has
		// it, earlier versions since September 2025 (openshift/operator-framework-olm pulls 1047 to 1054,
		// openshift/operator-framework-operator-controller pulls 429 and 432).
		return o.GetName() == Package
	case kindPolicy, kindPolicyBinding:
		return o.GetName() == "windows-instances" || o.GetName() == "windows-machine-config"
	}
	return false
}

// apply lets the operator apply the policies that it looks for, where the manifests let it read them: an apply that
// creates an object is authorized with its name. One that it does not look for is not applied by anything.
func (p parts) apply(policies []*unstructured.Unstructured) error {
	i := slices.IndexFunc(p.rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, "validatingadmissionpolicies") && len(r.ResourceNames) > 0
	})
	for _, o := range policies {
		if i < 0 || !slices.Contains(p.rules[i].ResourceNames, o.GetName()) {
			return fmt.Errorf("%w: %s %s", ErrKind, o.GetKind(), o.GetName())
		}
	}
	if i >= 0 {
		p.rules[i].Verbs = append(p.rules[i].Verbs, "create", "patch")
	}
	return nil
}

// csv returns the ClusterServiceVersion.
func (p parts) csv(r Release) (clusterServiceVersion, error) {
	kinds, err := p.owned()
	if err != nil {
		return clusterServiceVersion{}, err
	}
	namespace, err := template(p.namespace)
	if err != nil {
		return clusterServiceVersion{}, err
	}
	pod, err := withImage(p.deployment, r.Image)
	if err != nil {
		return clusterServiceVersion{}, err
	}
	spec := description(r)
	spec.Owned.Owned = kinds
	spec.Install = install{"deployment", installSpec{
		ClusterPermissions: []permissions{{Package, p.rules}},
		Deployments:        []deployment{{p.deployment.GetName(), p.deployment.GetLabels(), pod}},
	}}
	return clusterServiceVersion{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion",
		Metadata: metadata{Name: r.Name(), Annotations: annotations(r, kinds, namespace), Labels: architectures()},
		Spec:     spec,
	}, nil
}

// architectures are those of the image.
func architectures() map[string]string {
	return map[string]string{
		"operatorframework.io/arch.amd64": "supported", "operatorframework.io/arch.arm64": "supported", "operatorframework.io/os.linux": "supported",
	}
}

// owned are the kinds that the definitions among the objects define.
func (p parts) owned() ([]ownedKind, error) {
	var list []ownedKind
	for _, o := range p.files {
		if o.GetKind() != kindCRD {
			continue
		}
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		if err != nil || kind == "" {
			return nil, fmt.Errorf("reading %s %s: it has no kind or no versions", kindCRD, o.GetName())
		}
		for _, v := range versions {
			content, _ := v.(map[string]any)
			name, _ := content["name"].(string)
			text, _, _ := unstructured.NestedString(content, "schema", "openAPIV3Schema", "description")
			list = append(list, ownedKind{
				Name: o.GetName(), Version: name, Kind: kind, DisplayName: "Windows nodes", Description: text,
			})
		}
	}
	return list, nil
}

// template is the namespace that consoles create for the operator. OLM itself creates none.
func template(namespace *unstructured.Unstructured) (string, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": kindNamespace,
		"metadata": map[string]any{"name": namespace.GetName(), "labels": namespace.GetLabels()},
	})
	return string(text), err
}

// withImage returns the spec of the Deployment with the image of the release.
func withImage(d *unstructured.Unstructured, image string) (map[string]any, error) {
	spec, _, err := unstructured.NestedMap(d.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s: %w", d.GetName(), err)
	}
	containers, _, err := unstructured.NestedSlice(spec, "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		return nil, fmt.Errorf("reading Deployment %s: it must have one container", d.GetName())
	}
	one, _ := containers[0].(map[string]any)
	one["image"] = image
	return spec, unstructured.SetNestedSlice(spec, containers, "template", "spec", "containers")
}
