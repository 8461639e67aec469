package olmtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"wmco/deploy/kustomize"
	"wmco/deploy/olm"
)

const (
	namespace = "openshift-windows-machine-config-operator"
	// agent is the name of the account of the existing operator's agent, and of its roles.
	agent = "windows-instance-config-daemon"
	rbac  = "rbac.authorization.k8s.io"
)

// nameOf is the name of the ClusterServiceVersion of a version, of both operators.
func nameOf(version string) string { return olm.Package + ".v" + version }

// imageOf is the image of a release: its digest is made of the version.
func imageOf(version string) string {
	digits := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, version)
	return "registry.example.com/wmco/operator@sha256:" + strings.Repeat("a", 64-len(digits)) + digits
}

func bundleImageOf(version string) string {
	return "registry.example.com/wmco/operator-bundle:v" + version
}

// release writes the bundle and the catalog of a release of this tree, and returns their folders.
func release(t *testing.T, folder, version string) (bundle, catalog string) {
	t.Helper()
	objects, err := kustomize.Build(filepath.Join("..", "..", "..", "deploy"))
	must(t, err)
	r := olm.Release{
		Version: version, Image: imageOf(version), BundleImage: bundleImageOf(version),
		Maintainer: "Example maintainers <maintainers@wmco.example>", Created: time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC),
	}
	files, err := olm.Bundle(objects, r)
	must(t, err)
	index, err := olm.Catalog(files, r)
	must(t, err)
	bundle, catalog = filepath.Join(folder, "bundle-"+version), filepath.Join(folder, "catalog-"+version)
	must(t, files.Write(bundle))
	must(t, index.Write(filepath.Join(catalog, olm.Package)))
	return bundle, catalog
}

// object is one object or document.
type object = map[string]any

// existingCatalog writes a catalog with made-up bundles of the existing operator, each in a channel of its name, and the first one in the
// channel of users. What is in them is in the catalog, so that nothing is unpacked.
func existingCatalog(t *testing.T, folder string, versions ...string) string {
	t.Helper()
	documents := []object{{"schema": "olm.package", "name": olm.Package, "defaultChannel": "stable"}}
	for i, v := range versions {
		channels := []string{"v" + v}
		if i == 0 {
			channels = append(channels, "stable")
		}
		for _, c := range channels {
			documents = append(documents, object{"schema": "olm.channel", "name": c, "package": olm.Package, "entries": []object{{"name": nameOf(v)}}})
		}
		properties := []object{{"type": "olm.package", "value": object{"packageName": olm.Package, "version": v}}}
		for _, o := range existingBundle(v) {
			data, err := json.Marshal(o)
			must(t, err)
			properties = append(properties, object{"type": "olm.bundle.object", "value": object{"data": data}}) // as base64
		}
		documents = append(documents, object{"schema": "olm.bundle", "name": nameOf(v), "package": olm.Package, "properties": properties})
	}
	var text []byte
	for _, d := range documents {
		part, err := yaml.Marshal(d)
		must(t, err)
		text = append(append(text, "---\n"...), part...)
	}
	folder = filepath.Join(folder, "catalog-existing")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, "catalog.yaml"), text, 0o644))
	return folder
}

// existingBundle are objects with the names of those in the existing operator's bundle (openshift/windows-machine-config-operator,
// bundle/manifests). What is in them is made up.
func existingBundle(version string) []object {
	account := object{"kind": "ServiceAccount", "name": agent, "namespace": namespace}
	nodes := object{"apiGroup": rbac, "kind": "Group", "name": "system:wicd-nodes"}
	rule := func(resource string, verbs ...string) object {
		return object{"apiGroups": []string{""}, "resources": []string{resource}, "verbs": verbs}
	}
	list := []object{
		existingCSV(version),
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": agent}},
		{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": "windows-exporter", "labels": object{"name": "windows-exporter"}}, "spec": object{"clusterIP": "None", "ports": []object{{"name": "metrics", "port": 9182}}}},
		{"apiVersion": rbac + "/v1", "kind": "Role", "metadata": object{"name": "manager-role"}, "rules": []object{rule("pods", "get")}},
		{"apiVersion": rbac + "/v1", "kind": "Role", "metadata": object{"name": agent}, "rules": []object{rule("configmaps", "get", "list")}},
		{"apiVersion": rbac + "/v1", "kind": "Role", "metadata": object{"name": "prometheus-k8s"}, "rules": []object{rule("services", "get", "list", "watch")}},
		{"apiVersion": rbac + "/v1", "kind": "RoleBinding", "metadata": object{"name": "prometheus-k8s"}, "roleRef": object{"apiGroup": rbac, "kind": "Role", "name": "prometheus-k8s"}, "subjects": []object{{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}}},
		{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": object{"name": "windows-prometheus-k8s-rules"}, "spec": object{"groups": []object{}}},
	}
	for name, of := range map[string]struct {
		subject object
		rule    object
	}{agent: {account, rule("nodes", "get", "patch")}, "system-wicd-nodes": {nodes, rule("nodes", "get")}} {
		list = append(list,
			object{"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": object{"name": name}, "rules": []object{of.rule}},
			object{"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": name}, "roleRef": object{"apiGroup": rbac, "kind": "ClusterRole", "name": name}, "subjects": []object{of.subject}})
	}
	return list
}

// existingCSV supports the modes of the existing operator.
func existingCSV(version string) object {
	labels := object{"name": olm.Package}
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": object{"name": nameOf(version), "namespace": "placeholder", "annotations": object{"operatorframework.io/suggested-namespace": namespace}},
		"spec": object{
			"displayName": "Existing operator", "version": version, "maturity": "stable", "provider": object{"name": "Somebody"},
			"installModes": []object{
				{"type": "OwnNamespace", "supported": true}, {"type": "SingleNamespace", "supported": true},
				{"type": "MultiNamespace", "supported": false}, {"type": "AllNamespaces", "supported": false},
			},
			"install": object{"strategy": "deployment", "spec": object{
				"clusterPermissions": []object{{"serviceAccountName": olm.Package, "rules": []object{{"apiGroups": []string{""}, "resources": []string{"nodes"}, "verbs": []string{"get", "list", "watch"}}}}},
				"deployments": []object{{"name": olm.Package, "label": labels, "spec": object{
					"replicas": 1, "selector": object{"matchLabels": labels}, "strategy": object{},
					"template": object{
						"metadata": object{"labels": labels},
						"spec": object{
							"serviceAccountName": olm.Package, "hostNetwork": true, "nodeSelector": object{"node-role.kubernetes.io/control-plane": ""},
							"tolerations": []object{{"operator": "Exists"}},
							"containers":  []object{{"name": "manager", "image": "registry.example.com/existing/operator@sha256:" + strings.Repeat("b", 64), "command": []string{"operator"}}},
						},
					},
				}}},
			}},
		},
	}
}
