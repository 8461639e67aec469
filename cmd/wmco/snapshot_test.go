package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// resources are what docs/gitops/example/snapshot/snapshot.sh asks oc for, by apiVersion and kind.
var resources = map[string]string{
	"config.openshift.io/v1 Infrastructure":                  "infrastructures.config.openshift.io",
	"config.openshift.io/v1 Network":                         "networks.config.openshift.io",
	"operator.openshift.io/v1 Network":                       "networks.operator.openshift.io",
	"config.openshift.io/v1 Proxy":                           "proxies.config.openshift.io",
	"config.openshift.io/v1 APIServer":                       "apiservers.config.openshift.io",
	"config.openshift.io/v1 ClusterVersion":                  "clusterversions.config.openshift.io",
	"machineconfiguration.openshift.io/v1 MachineConfigPool": "machineconfigpools.machineconfiguration.openshift.io",
	"machineconfiguration.openshift.io/v1 ControllerConfig":  "controllerconfigs.machineconfiguration.openshift.io",
	"machineconfiguration.openshift.io/v1 MachineConfig":     "machineconfigs.machineconfiguration.openshift.io",
	"machine.openshift.io/v1beta1 Machine":                   "machines.machine.openshift.io",
	"v1 Node":                                                "nodes",
	"v1 ConfigMap":                                           "configmaps",
	"apps/v1 Deployment":                                     "deployments.apps",
}

const (
	currentMachineConfig = "rendered-worker-58bdb8c2231879b2756e8f8f8aecba94"
	lastApplied          = "kubectl.kubernetes.io/last-applied-configuration"
	proxyURL             = "http://example-user:example-proxy/p%40ss@word@proxy.example.com:3128"
)

// plantedSecrets are the secrets in the objects of secretCluster, whole or the part of them that no encoding changes.
var plantedSecrets = []string{
	"example-pull-secret-password", "example-internal-registry-password", "example-proxy-password", "example-proxy/p%40ss@word",
	"example-cloud-client-secret", "example-password-hash", "example-registry-password", "example-user",
	"example-controllerconfig-secret", "example-controllerconfig-cloud", "example-annotation-secret", "example-environment-secret",
}

// clusterObjects reads the folders of example clusters. A later object replaces an earlier one.
func clusterObjects(t *testing.T, folders ...string) map[string]unstructured.Unstructured {
	t.Helper()
	found := map[string]unstructured.Unstructured{}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join("..", "..", "golden", "clusters", folder, "*.yaml"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range strings.Split("\n"+string(data), "\n---\n") {
				var o unstructured.Unstructured
				if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
					t.Fatal(err)
				}
				found[o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetNamespace()+" "+o.GetName()] = o
			}
		}
	}
	return found
}

// set sets a field of the objects of a kind.
func set(t *testing.T, objects map[string]unstructured.Unstructured, kind string, value any, path ...string) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			t.Fatal(err)
		}
	}
}

// secretCluster returns a cluster whose objects hold secrets wherever those of a real cluster may.
func secretCluster(t *testing.T) map[string]unstructured.Unstructured {
	t.Helper()
	objects := clusterObjects(t, "common", "azure", "traits/machine-config-operator")
	for _, part := range []string{"spec", "status"} {
		for _, field := range []string{"httpProxy", "httpsProxy"} {
			set(t, objects, "Proxy", proxyURL, part, field)
		}
	}
	set(t, objects, "Proxy", `{"spec":{"httpProxy":"`+proxyURL+`","x":"example-annotation-secret"}}`, "metadata", "annotations", lastApplied)
	secret := base64.StdEncoding.EncodeToString([]byte(`{"auths":{"x":{"auth":"example-controllerconfig-secret"}}}`))
	set(t, objects, "ControllerConfig", secret, "spec", "internalRegistryPullSecret")
	set(t, objects, "ControllerConfig", "password = example-controllerconfig-cloud", "spec", "cloudProviderConfig")
	set(t, objects, "ControllerConfig", map[string]any{"httpProxy": proxyURL}, "spec", "proxy")
	set(t, objects, "Deployment", []any{map[string]any{"name": "manager", "env": []any{
		map[string]any{"name": "HTTPS_PROXY", "value": proxyURL}, map[string]any{"name": "TOKEN", "value": "example-environment-secret"},
	}}}, "spec", "template", "spec", "containers")
	set(t, objects, "Deployment", `{"x":"example-annotation-secret"}`, "metadata", "annotations", lastApplied)
	return objects
}

// snapshot runs snapshot.sh against the objects and returns the folder that it writes to. The program oc is a stand-in.
func (r repository) snapshot(objects map[string]unstructured.Unstructured) (folder string, raw []byte) {
	r.t.Helper()
	if _, err := exec.LookPath("jq"); err != nil {
		r.t.Skip("jq is not installed")
	}
	answers := r.t.TempDir()
	byResource := map[string][]any{}
	for _, o := range objects {
		resource := resources[o.GetAPIVersion()+" "+o.GetKind()]
		isOther := o.GetKind() == "MachineConfig" && o.GetName() != currentMachineConfig || o.GetKind() == "MachineConfigPool" && o.GetName() != "worker" ||
			o.GetKind() == "Node" && o.GetLabels()["kubernetes.io/os"] != "windows" || o.GetKind() == "ConfigMap" && o.GetName() != "trusted-ca" ||
			o.GetKind() == "Machine" && o.GetLabels()["machine.openshift.io/os-id"] != "Windows"
		if resource != "" && !isOther {
			byResource[resource] = append(byResource[resource], o.Object)
		}
	}
	for resource, items := range byResource {
		answer := items[0]
		if resource == "nodes" || strings.HasPrefix(resource, "machines.") {
			answer = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
		}
		data, err := json.Marshal(answer)
		if err != nil {
			r.t.Fatal(err)
		}
		raw = append(raw, data...)
		r.write(filepath.Join(answers, resource+".json"), string(data))
	}
	r.write(filepath.Join(r.bin, "oc"), `#!/bin/sh
case "$*" in *jsonpath*) echo `+currentMachineConfig+`; exit;; esac
exec cat "`+answers+`/$2.json"
`)
	r.run(0, "rm -f "+r.bin+"/jq; rm -r snapshot/common snapshot/none; echo old >snapshot/proxy.yaml; cd snapshot && sh ./snapshot.sh")
	return filepath.Join(r.dir, "snapshot"), raw
}

var (
	base64Text = regexp.MustCompile(`[A-Za-z0-9+/]{8,}={0,2}`)
	dataURL    = regexp.MustCompile(`data:[^"\s]*`)
)

// views returns the data and everything that is encoded in it: in data URLs, base64 and gzip, in each other up to a depth.
func views(data []byte, depth int) [][]byte {
	all := [][]byte{data}
	if depth == 0 {
		return all
	}
	add := func(inner []byte) {
		if zr, err := gzip.NewReader(bytes.NewReader(inner)); err == nil {
			if text, err := io.ReadAll(zr); err == nil {
				inner = text
			}
		}
		all = append(all, views(inner, depth-1)...)
	}
	for _, text := range dataURL.FindAll(data, -1) {
		if plain, err := url.PathUnescape(string(text)); err == nil {
			add([]byte(plain))
		}
	}
	for _, text := range base64Text.FindAllString(string(data), -1) {
		if inner, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "=")); err == nil {
			add(inner)
		}
	}
	return all
}

// holds reports whether one of the views has the secret in any encoding.
func holds(views [][]byte, secret string) bool {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	for shift := range 3 {
		// base64 of the secret behind 0, 1 and 2 other bytes, without the characters that other bytes decide.
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		forms = append(forms, text[(shift*8+5)/6:len(text)-1])
	}
	for _, view := range views {
		for _, form := range forms {
			if bytes.Contains(view, []byte(form)) {
				return true
			}
		}
	}
	return false
}

func TestSnapshotHoldsNoSecret(t *testing.T) {
	r := newRepository(t)
	folder, raw := r.snapshot(secretCluster(t))
	before := views(raw, 4)
	for _, secret := range plantedSecrets {
		if !holds(before, secret) {
			t.Errorf("the cluster does not hold %s, or the search does not find it", secret)
		}
	}
	files := 0
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		after := views(data, 4)
		for _, secret := range plantedSecrets {
			if holds(after, secret) {
				t.Errorf("%s holds %s:\n%s", path, secret, data)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "proxy.yaml")); err == nil || files < len(resources) {
		t.Errorf("%d files; the YAML of an earlier snapshot: %v", files, err)
	}
	r.run(0, "wmco golden update windows")
	findings := r.run(0, "cat windows/want/*/findings.json")
	for _, want := range []string{`"field": "data[\".dockerconfigjson\"]"`, `"field": "status.httpProxy"`} {
		if !strings.Contains(findings, want) {
			t.Errorf("no finding names what is elided in %s:\n%s", want, findings)
		}
	}
}

// TestSnapshotLosesNothing renders the nodes from a whole cluster and from its snapshot.
func TestSnapshotLosesNothing(t *testing.T) {
	r := newRepository(t)
	golden, err := filepath.Abs(filepath.Join("..", "..", "golden", "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	r.snapshot(clusterObjects(t, "common", "azure"))
	rest := " --from " + golden + "/common/image.yaml --all"
	r.run(0, "mkdir secrets; cp "+golden+"/common/secret-*.yaml secrets/")
	r.run(0, "wmco render --from "+golden+"/common --from "+golden+"/azure"+rest+" --out whole")
	r.run(0, "wmco render --from ./snapshot --from secrets"+rest+" --out again")
	// Findings and provenance name the files.
	diff := r.run(0, "diff --recursive --brief --exclude=findings.json --exclude=provenance.json --exclude=MANIFEST.json whole again || true")
	if d := cmp.Diff("", diff); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
