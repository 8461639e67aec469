package olm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// opened is a bundle as the rules see it.
type opened struct {
	files Files
	csv   clusterServiceVersion
	// objects are the other files of manifests/, notes those of metadata/annotations.yaml.
	objects map[string]map[string]any
	notes   map[string]string
}

func open(t *testing.T, f Files) *opened {
	t.Helper()
	o := &opened{files: f, objects: map[string]map[string]any{}}
	for name, text := range f {
		var content map[string]any
		parse(t, text, &content)
		switch {
		case strings.HasSuffix(name, ".clusterserviceversion.yaml"):
			if err := yaml.UnmarshalStrict(text, &o.csv); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(name, "manifests/"):
			o.objects[name] = content
		}
	}
	var metadata struct{ Annotations map[string]string }
	parse(t, f["metadata/annotations.yaml"], &metadata)
	o.notes = metadata.Annotations
	return o
}

// rule is one that operator-framework's validators check. They are not linked here: `make olm-check` runs them.
type rule struct {
	name string
	// source is the validator, in github.com/operator-framework/api/pkg/validation/internal unless noted.
	source string
	// problem returns the problem, empty if there is none.
	problem func(*opened) string
	// broken makes the bundle break the rule.
	broken func(*opened)
}

func metadataRules() []rule {
	const csvRule = "csv.go"
	return []rule{
		{"the name is a DNS name and a label", csvRule, func(o *opened) string {
			name := o.csv.Metadata.Name
			return strings.Join(slices.Concat(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)), "; ")
		}, func(o *opened) { o.csv.Metadata.Name = "Operator_1" }},
		{"the name is that of the package and the version", "good_practices.go", func(o *opened) string {
			_, err := semver.Parse(o.csv.Spec.Version)
			return unless(err == nil && o.csv.Metadata.Name == o.notes["operators.operatorframework.io.bundle.package.v1"]+".v"+o.csv.Spec.Version, o.csv.Metadata.Name)
		}, func(o *opened) { o.csv.Spec.Version = "0.2.0" }},
		{"the GVK is that of a ClusterServiceVersion", csvRule, func(o *opened) string {
			return unless(o.csv.APIVersion == "operators.coreos.com/v1alpha1" && o.csv.Kind == "ClusterServiceVersion", o.csv.Kind)
		}, func(o *opened) { o.csv.Kind = "Operator" }},
		{"one install mode is supported, and each is named once", csvRule, func(o *opened) string {
			var types []string
			for _, m := range o.csv.Spec.InstallModes {
				types = append(types, m.Type)
			}
			slices.Sort(types)
			some := slices.ContainsFunc(o.csv.Spec.InstallModes, func(m installMode) bool { return m.Supported })
			return unless(some && slices.Equal(types, []string{"AllNamespaces", "MultiNamespace", "OwnNamespace", "SingleNamespace"}), fmt.Sprint(types))
		}, func(o *opened) { o.csv.Spec.InstallModes = o.csv.Spec.InstallModes[1:3] }},
		{"minKubeVersion is a version", csvRule, func(o *opened) string {
			_, err := semver.Parse(o.csv.Spec.MinKubeVersion)
			return text(err)
		}, func(o *opened) { o.csv.Spec.MinKubeVersion = "1.36" }},
		{"annotations that OLM reads are spelt as it does", csvRule, func(o *opened) string {
			for key := range o.csv.Metadata.Annotations {
				for _, known := range []string{"olm.skipRange", "operatorframework.io/suggested-namespace", "operatorframework.io/cluster-monitoring", "operators.operatorframework.io/internal-objects"} {
					if strings.EqualFold(key, known) && key != known {
						return key
					}
				}
			}
			return ""
		}, func(o *opened) { o.csv.Metadata.Annotations["olm.skiprange"] = "" }},
		{"the range of versions that are skipped is one, without the version itself", csvRule, func(o *opened) string {
			accepts, err := semver.ParseRange(o.csv.Metadata.Annotations["olm.skipRange"])
			if err != nil {
				return err.Error()
			}
			return unless(!accepts(semver.MustParse(o.csv.Spec.Version)), "it skips itself")
		}, func(o *opened) { o.csv.Metadata.Annotations["olm.skipRange"] = ">=0.0.0" }},
		{"related images are images", csvRule, func(o *opened) string {
			for _, i := range o.csv.Spec.RelatedImages {
				if i.Name == "" || !imageByDigest.MatchString(i.Image) {
					return i.Image
				}
			}
			return unless(len(o.csv.Spec.RelatedImages) > 0, "none")
		}, func(o *opened) { o.csv.Spec.RelatedImages[0].Image = "REPLACE_IMAGE" }},
		{"capabilities are a known level", "standardcapabilities.go", func(o *opened) string {
			level := o.csv.Metadata.Annotations["capabilities"]
			return unless(slices.Contains([]string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}, level), level)
		}, func(o *opened) { o.csv.Metadata.Annotations["capabilities"] = "All" }},
		{"categories are known ones", "standardcategories.go", func(o *opened) string {
			category := o.csv.Metadata.Annotations["categories"]
			return unless(slices.Contains([]string{"Cloud Provider", "OpenShift Optional"}, category), category)
		}, func(o *opened) { o.csv.Metadata.Annotations["categories"] = "Windows" }},
	}
}

func hubRules() []rule {
	const hub = "operatorhubv2.go"
	return []rule{
		{"somebody provides it", hub, func(o *opened) string { return unless(o.csv.Spec.Provider.Name != "", "no provider") }, func(o *opened) { o.csv.Spec.Provider.Name = "" }},
		{"maintainers have a name and an address", hub, func(o *opened) string {
			for _, m := range o.csv.Spec.Maintainers {
				if _, err := mail.ParseAddress(m.Email); err != nil || m.Name == "" {
					return m.Email
				}
			}
			return unless(len(o.csv.Spec.Maintainers) > 0, "none")
		}, func(o *opened) { o.csv.Spec.Maintainers[0].Email = "nobody" }},
		{"links have a name and an address", hub, func(o *opened) string {
			for _, l := range o.csv.Spec.Links {
				if u, err := url.Parse(l.URL); err != nil || u.Host == "" || l.Name == "" {
					return l.URL
				}
			}
			return unless(len(o.csv.Spec.Links) > 0, "none")
		}, func(o *opened) { o.csv.Spec.Links[0].URL = "docs" }},
		{"there is an icon of its media type", hub, func(o *opened) string {
			if len(o.csv.Spec.Icon) != 1 || o.csv.Spec.Icon[0].MediaType != "image/svg+xml" {
				return "no SVG"
			}
			image, err := base64.StdEncoding.DecodeString(o.csv.Spec.Icon[0].Data)
			var root struct{ XMLName xml.Name }
			if err == nil {
				err = xml.Unmarshal(image, &root)
			}
			return text(err) + unless(root.XMLName.Local == "svg", "not an SVG")
		}, func(o *opened) { o.csv.Spec.Icon[0].Data = "AAAA" }},
		{"the version is one", hub, func(o *opened) string {
			_, err := semver.Parse(o.csv.Spec.Version)
			return text(err)
		}, func(o *opened) { o.csv.Spec.Version = "v1" }},
	}
}

func objectRules() []rule {
	const practices = "good_practices.go"
	return []rule{
		{"examples are JSON, one of each owned kind", "csv.go", func(o *opened) string {
			var examples []struct{ APIVersion, Kind string }
			if err := json.Unmarshal([]byte(o.csv.Metadata.Annotations["alm-examples"]), &examples); err != nil {
				return err.Error()
			}
			for _, k := range o.csv.Spec.Owned.Owned {
				if !slices.ContainsFunc(examples, func(e struct{ APIVersion, Kind string }) bool {
					return e.Kind == k.Kind && strings.HasSuffix(e.APIVersion, "/"+k.Version)
				}) {
					return k.Kind
				}
			}
			return ""
		}, func(o *opened) { o.csv.Metadata.Annotations["alm-examples"] = "[]" }},
		{"owned kinds are defined, and defined kinds are owned", "bundle.go", func(o *opened) string {
			var defined, owned []string
			for _, content := range o.objects {
				if content["kind"] == kindCRD {
					defined = append(defined, nameOf(content))
				}
			}
			for _, k := range o.csv.Spec.Owned.Owned {
				owned = append(owned, k.Name)
			}
			slices.Sort(defined)
			return unless(len(defined) > 0 && slices.Equal(defined, slices.Compact(slices.Sorted(slices.Values(owned)))), fmt.Sprint(defined, owned))
		}, func(o *opened) { o.csv.Spec.Owned.Owned = nil }},
		{"the ServiceAccount of the Deployment is OLM's to make", "bundle.go", func(o *opened) string {
			for name, content := range o.objects {
				if content["kind"] == kindServiceAccount {
					return name
				}
			}
			return ""
		}, func(o *opened) { o.objects["manifests/a.yaml"] = map[string]any{"kind": kindServiceAccount} }},
		{"the bundle fits into a ConfigMap, compressed", "bundle.go", func(o *opened) string {
			var all bytes.Buffer
			w := gzip.NewWriter(&all)
			for _, content := range o.files {
				if _, err := w.Write(content); err != nil {
					return err.Error()
				}
			}
			return text(w.Close()) + unless(all.Len() < 1<<20, fmt.Sprintf("%d bytes", all.Len()))
		}, func(o *opened) {
			var noise []byte
			for i := range 1 << 19 {
				noise = fmt.Appendf(noise, "%x", i*2654435761)
			}
			o.files["manifests/large.yaml"] = noise
		}},
		{"no API is one that was removed", "removed_apis.go", func(o *opened) string {
			for name, content := range o.objects {
				if version, _ := content["apiVersion"].(string); !slices.Contains([]string{
					"v1", "apiextensions.k8s.io/v1", "rbac.authorization.k8s.io/v1", "monitoring.coreos.com/v1", "networking.k8s.io/v1",
				}, version) {
					return name + " " + version
				}
			}
			return ""
		}, func(o *opened) {
			o.objects["manifests/a.yaml"] = map[string]any{"apiVersion": "apiextensions.k8s.io/v1beta1"}
		}},
		// The conventions want no limits. That of memory is for what whoever reaches a port has the operator take of a control-plane node.
		{"containers request resources, and have a limit of memory alone", practices + "; openshift/enhancements CONVENTIONS.md", func(o *opened) string {
			requests := container(o)["resources"].(map[string]any)["requests"]
			limits, _ := container(o)["resources"].(map[string]any)["limits"].(map[string]any)
			return unless(requests != nil && len(limits) == 1 && limits["memory"] != nil, fmt.Sprint(requests, limits))
		}, func(o *opened) { container(o)["resources"] = map[string]any{} }},
		{"channels are candidate, fast or stable, but for preview, which the existing operator has", practices, func(o *opened) string {
			for _, c := range strings.Split(o.notes["operators.operatorframework.io.bundle.channels.v1"], ",") {
				prefix, _, _ := strings.Cut(c, "-")
				if !slices.Contains([]string{"candidate", "fast", "stable", channelPreview}, prefix) {
					return c
				}
			}
			return ""
		}, func(o *opened) { o.notes["operators.operatorframework.io.bundle.channels.v1"] = "alpha" }},
		{"the operator writes no definitions", practices, func(o *opened) string {
			for _, r := range o.csv.Spec.Install.Spec.ClusterPermissions[0].Rules {
				reads := !slices.ContainsFunc(r.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				if slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "customresourcedefinitions") && !reads {
					return r.String()
				}
			}
			return ""
		}, func(o *opened) {
			o.csv.Spec.Install.Spec.ClusterPermissions[0].Rules = []rbacv1.PolicyRule{{Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list", "create"}}}
		}},
		{"kinds are those that OLM installs", "operator-registry pkg/lib/bundle/supported_resources.go", func(o *opened) string {
			for name, content := range o.objects {
				if kind, _ := content["kind"].(string); !slices.Contains(bundled(), kind) {
					return name + " " + kind
				}
			}
			return ""
		}, func(o *opened) {
			o.objects["manifests/a.yaml"] = map[string]any{"kind": kindNamespace, "apiVersion": "v1"}
		}},
		{"the metadata says what the bundle is", "operator-registry pkg/lib/bundle/validate.go", func(o *opened) string {
			for _, key := range []string{"mediatype", "manifests", "metadata", "package", "channels"} {
				if o.notes["operators.operatorframework.io.bundle."+key+".v1"] == "" {
					return key
				}
			}
			return unless(o.notes["operators.operatorframework.io.bundle.mediatype.v1"] == "registry+v1", "mediatype")
		}, func(o *opened) { delete(o.notes, "operators.operatorframework.io.bundle.package.v1") }},
	}
}

// container returns the container of the operator.
func container(o *opened) map[string]any {
	pod := o.csv.Spec.Install.Spec.Deployments[0].Spec["template"].(map[string]any)["spec"].(map[string]any)
	return pod["containers"].([]any)[0].(map[string]any)
}

func nameOf(content map[string]any) string {
	name, _ := content["metadata"].(map[string]any)["name"].(string)
	return name
}

// unless returns the problem unless the condition is true.
func unless(ok bool, problem string) string {
	if ok {
		return ""
	}
	return "problem: " + problem
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRulesOfOperatorFramework(t *testing.T) {
	for _, r := range slices.Concat(metadataRules(), hubRules(), objectRules()) {
		t.Run(r.name, func(t *testing.T) {
			if problem := r.problem(open(t, exampleBundle(t))); problem != "" {
				t.Errorf("%s: %s", r.source, problem)
			}
			bad := open(t, exampleBundle(t))
			r.broken(bad)
			if r.problem(bad) == "" {
				t.Error("the rule finds nothing in a bundle that breaks it")
			}
		})
	}
}

// TestVersionsThatAreUpdated: OLM reads skipRange with this library.
func TestVersionsThatAreUpdated(t *testing.T) {
	for version, want := range map[string]map[string]bool{
		"0.2.0":  {"0.1.0": true, "0.2.0": false, "0.3.0": false, "10.17.4": false, "10.18.0": true, "10.22.0": true, "11.0.0": true, "11.0.1-abc": true, "12.0.0": false},
		"11.1.0": {"0.1.0": false, "10.17.4": false, "10.18.0": true, "11.0.0": true, "11.1.0": false, "12.0.0": false},
	} {
		accepts, err := semver.ParseRange(Release{Version: version}.skipRange())
		if err != nil {
			t.Fatal(err)
		}
		for from, ok := range want {
			if accepts(semver.MustParse(from)) != ok {
				t.Errorf("from %s to %s: %t, want %t", from, version, !ok, ok)
			}
		}
	}
}
