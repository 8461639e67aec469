package fleettest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/internal/hostsim/simulation"
)

// TestFleet is one test, because its parts need the same five nodes.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	f.operate(t, nil)
	eventually(t, "five nodes that follow the cluster", func() bool { return f.isSettled(t) })
	f.rest(t)
	for _, c := range slices.Concat(mirrorChanges(), proxyChanges(), kubeletChanges()) {
		t.Run(c.name, func(t *testing.T) { f.checkChange(t, c) })
	}
	t.Run("the forecast of a change", func(t *testing.T) { f.checkForecast(t) })
	t.Run("a must-gather", func(t *testing.T) { f.checkGather(t) })
	t.Run("a cordon and a pause are kept", func(t *testing.T) { f.checkKept(t) })
	t.Run("nodes are drained one after the other", func(t *testing.T) { f.checkDrains(t) })
	t.Run("hosts boot because a person asks for it", func(t *testing.T) { f.checkBootsByHand(t) })
	t.Run("hosts boot because Windows waits for it", func(t *testing.T) { f.checkBootsForWindows(t) })
	t.Run("permissions of a node", func(t *testing.T) { f.checkPermissions(t) })
	// Before the API server is away: one that has just started refuses what it will allow when it has read the roles.
	t.Run("what node agents and the operator ask for", func(t *testing.T) { f.checkRequests(t) })
	t.Run("the API server is away", func(t *testing.T) { f.checkOutage(t) })
	t.Run("a silent node agent", func(t *testing.T) { f.checkSilence(t) })
}

// change is something that a person or the cluster changes.
type change struct {
	name string
	// apply changes objects.
	apply func(t *testing.T, f *fleet)
	// hidden changes concern no Windows node.
	hidden bool
	want   effects
	// see checks one node; not for hidden changes.
	see func(t *testing.T, f *fleet, m *machine)
}

func (f *fleet) checkChange(t *testing.T, c change) {
	r := f.read(t)
	c.apply(t, f)
	if !c.hidden {
		f.followed(t, r)
	}
	took := time.Since(r.begun)
	f.rest(t)
	operator, agents := f.check(t, r, c.want)
	if c.hidden {
		t.Logf("%d writes of the operator, %d of the node agents", operator, agents)
		return
	}
	t.Logf("%.1f s from the change to the last of %d reports; %d writes of the operator, %d of the node agents", took.Seconds(), size, operator, agents)
	for _, m := range f.machines {
		c.see(t, f, m)
	}
}

// publishedAll are the writes of the operator for a bundle with another cluster layer: its Secret and the access to it, the Nodes, and when
// all have it, the old Secret, noted as replaced before, and its place in the Role. The canary is written again when it is confirmed. Two events are about the whole
// rollout.
func publishedAll() map[string]int {
	return map[string]int{"create secrets": 1, "update roles.rbac.authorization.k8s.io": 2, "patch nodes": size + 1, "patch secrets": 1, "delete secrets": 1, "create events.events.k8s.io": 2}
}

// warnedAll are those for inputs with a new warning, here that a mirror of a part of a registry is asked for all of it: an event has it.
func warnedAll() map[string]int {
	all := publishedAll()
	all["create events.events.k8s.io"]++
	return all
}

// restartedAll are those for a bundle that restarts services: it is also noted when the canary has it, and begins to settle.
func restartedAll() map[string]int {
	all := publishedAll()
	all["patch nodes"]++
	return all
}

// reported are the writes of all node agents for a bundle that they apply.
func reported() map[string]int {
	return map[string]int{"patch nodes/status": size, "create events": size}
}

// begun are those for a bundle that the Node confirms: the agents also say when they begin.
func begun() map[string]int {
	return map[string]int{"patch nodes/status": 2 * size, "create events": size}
}

const (
	registries      = `C:\k\containerd\registries\`
	pullCredentials = `C:\var\lib\kubelet\config.json`
)

// mirrorChanges change files that containerd reads on every pull.
func mirrorChanges() []change {
	return []change{
		{
			name: "ImageDigestMirrorSet",
			apply: func(t *testing.T, f *fleet) {
				f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: digests},
  spec: {imageDigestMirrors: [{source: quay.io/example, mirrors: ["mirror.example.com:5000/example"]}]}}`)
			},
			want: effects{
				Operator: publishedAll(), Agents: reported(),
				// Kubelets lose the entry of a registry that has a mirror.
				Node: nodeEffects{Files: []string{`make ` + registries + `quay.io`, `write ` + registries + `quay.io\hosts.toml`, `write ` + pullCredentials}},
			},
			see: hasText(registries+`quay.io\hosts.toml`, "mirror.example.com:5000"),
		},
		{
			name: "ImageTagMirrorSet",
			apply: func(t *testing.T, f *fleet) {
				f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageTagMirrorSet, metadata: {name: tags},
  spec: {imageTagMirrors: [{source: mcr.microsoft.com/oss, mirrors: ["tags.example.com/oss"]}]}}`)
			},
			want: effects{
				Operator: warnedAll(), Agents: reported(),
				Node: nodeEffects{Files: []string{`make ` + registries + `mcr.microsoft.com`, `write ` + registries + `mcr.microsoft.com\hosts.toml`}},
			},
			see: hasText(registries+`mcr.microsoft.com\hosts.toml`, "tags.example.com"),
		},
		{
			name: "pull secret",
			apply: func(t *testing.T, f *fleet) {
				f.put(t, `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {namespace: openshift-config, name: pull-secret},
  stringData: {.dockerconfigjson: '{"auths":{"tags.example.com":{"auth":"bmV3LXVzZXI6bmV3LXBhc3N3b3Jk"}}}'}}`)
			},
			// One registry has gained credentials, the other one has lost them.
			want: effects{
				Operator: publishedAll(), Agents: reported(),
				Node: nodeEffects{Files: []string{`write ` + registries + `mcr.microsoft.com\hosts.toml`, `write ` + registries + `quay.io\hosts.toml`, `write ` + pullCredentials}},
			},
			see: hasText(registries+`mcr.microsoft.com\hosts.toml`, "bmV3LXVzZXI6bmV3LXBhc3N3b3Jk"),
		},
	}
}

// proxyChanges are those of the cluster's proxy and of the CAs that it needs.
func proxyChanges() []change {
	return []change{
		{
			name: "proxy",
			apply: func(t *testing.T, f *fleet) {
				f.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: "http://proxy.example.com:3128", noProxy: .example.com},
  status: {httpProxy: "http://proxy.example.com:3128", noProxy: ".cluster.local,.svc,.example.com,127.0.0.0/8,localhost"}}`)
			},
			// The agent's own service is started by the service control manager, after the agent has ended.
			want: effects{Operator: restartedAll(), Agents: begun(), Node: nodeEffects{
				Services: slices.Concat(
					each("set", "variable HTTP_PROXY", "variable NO_PROXY"),
					each("stop", "windows_exporter", "kube-proxy", "hybrid-overlay-node", "kubelet", "csi-proxy", "containerd"),
					each("put", "containerd", "csi-proxy", "hybrid-overlay-node", "kube-proxy", "kubelet", bundle.AgentService, "windows_exporter"),
					each("start", "containerd", "csi-proxy", "kubelet", "hybrid-overlay-node", "kube-proxy", "windows_exporter"),
				),
				Starts: map[string]int{"containerd": 1, "csi-proxy": 1, "kubelet": 1, "hybrid-overlay-node": 1, "kube-proxy": 1, "windows_exporter": 1, bundle.AgentService: 1},
			}},
			see: isRunWith("HTTP_PROXY=http://proxy.example.com:3128"),
		},
		{
			name: "trusted CA",
			apply: func(t *testing.T, f *fleet) {
				text, err := os.ReadFile(filepath.Join("..", "..", "..", "golden", "clusters", "traits", "trusted-ca", "trusted-ca.yaml"))
				must(t, err)
				first, _, _ := strings.Cut(string(text), "\n---\n")
				f.put(t, first)
			},
			want: effects{Operator: publishedAll(), Agents: begun(), Node: nodeEffects{
				Files: []string{`write C:\k\ca-bundle.crt`},
				// The two certificates of the file, by their SHA-256.
				Services: each("set", "trusted-ca sha256:ba41d4ae6c3f204f4599239b26e0498c390fb4e77a81072cac28519bedf15337",
					"trusted-ca sha256:df2bb0dfdd8185a8355a83a8c52e048b2e08a421e2b9ea25d91e049b0e8231fe"),
			}},
			see: hasText(`C:\k\ca-bundle.crt`, "MIIBfzCCASagAwIBAgIIPNA4IdqCxM4wCgYIKoZIzj0EAwIwJDEiMCAGA1UEAxMZ"),
		},
	}
}

// kubeletChanges restart the kubelet, and with it the services that depend on it.
func kubeletChanges() []change {
	stopped, started := each("stop", "kube-proxy", "hybrid-overlay-node", "kubelet"), each("start", "kubelet", "hybrid-overlay-node", "kube-proxy")
	starts := map[string]int{"kubelet": 1, "hybrid-overlay-node": 1, "kube-proxy": 1}
	return []change{
		{
			name: "MachineConfig for Linux alone", hidden: true,
			apply: func(t *testing.T, f *fleet) {
				f.renderConfig(t, "rendered-worker-linux", "Example node agent", "Another description")
			},
		},
		{
			name: changedAgain,
			apply: func(t *testing.T, f *fleet) {
				f.renderConfig(t, "rendered-worker-external", "--cloud-provider=", "--cloud-provider=external")
			},
			// The flags of a kubelet are in the layer of its node, which is on the Node: no Secret changes.
			want: effects{Operator: map[string]int{"patch nodes": size + 2, "create events.events.k8s.io": 2}, Agents: begun(), Node: nodeEffects{
				Services: slices.Concat(stopped, each("put", "kubelet"), started), Starts: starts,
			}},
			see: isRunWith("--cloud-provider=external"),
		},
		{
			name: "settings",
			apply: func(t *testing.T, f *fleet) {
				f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+gather.OperatorNamespace+`, name: windows-machine-config}, data: {config.yaml: "{rollout: {settle: 0s}, kubelet: {maxPods: 100}}"}}`)
			},
			want: effects{Operator: restartedAll(), Agents: begun(), Node: nodeEffects{
				Files: []string{`write C:\k\kubelet.conf`}, Services: slices.Concat(stopped, started), Starts: starts,
			}},
			see: func(t *testing.T, f *fleet, m *machine) {
				eventually(t, "a Node for 100 pods", func() bool { return f.node(t, m.name).Status.Capacity.Pods().Value() == 100 })
			},
		},
	}
}

// each puts a verb before every name.
func each(verb string, names ...string) []string {
	var list []string
	for _, n := range names {
		list = append(list, verb+" "+n)
	}
	return list
}

// hasText checks that a file on a node has a text.
func hasText(path, text string) func(*testing.T, *fleet, *machine) {
	return func(t *testing.T, _ *fleet, m *machine) {
		t.Helper()
		if !strings.Contains(m.Text(path), text) {
			t.Errorf("%s: %s lacks %q", m.name, path, text)
		}
	}
}

// isRunWith checks that the kubelet was started with an argument, or a variable of its environment.
func isRunWith(want string) func(*testing.T, *fleet, *machine) {
	return func(t *testing.T, _ *fleet, m *machine) {
		t.Helper()
		must(t, m.Look(t.Context(), func(s *simulation.State) {
			if kubelet := s.Services["kubelet"]; !slices.Contains(kubelet.Argv, want) && !slices.Contains(kubelet.Delivered, want) {
				t.Errorf("%s runs the kubelet with %q and the variables %q", m.name, kubelet.Argv, kubelet.Delivered)
			}
		}))
	}
}

// object is an object of a kind, as far as it is known by its name.
func object(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// put applies an object, with its status, as oc apply --server-side does.
func (f *fleet) put(t *testing.T, text string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	for _, field := range []string{"creationTimestamp", "generation", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	f.created = append(f.created, u)
	owner := client.FieldOwner("person")
	must(t, f.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u.DeepCopy()), owner, client.ForceOwnership))
	if u.Object["status"] != nil {
		must(t, f.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership))
	}
}

// renderConfig gives the worker pool another rendered MachineConfig, as the machine-config-operator does.
func (f *fleet) renderConfig(t *testing.T, name, old, replaced string) {
	t.Helper()
	pool := object("machineconfiguration.openshift.io/v1", "MachineConfigPool", "", "worker")
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
	current, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
	config := object("machineconfiguration.openshift.io/v1", "MachineConfig", "", current)
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	spec, err := yaml.Marshal(config.Object["spec"])
	must(t, err)
	if !strings.Contains(string(spec), old) {
		t.Fatalf("MachineConfig %s has no %q", current, old)
	}
	next := object("machineconfiguration.openshift.io/v1", "MachineConfig", "", name)
	var changed map[string]any
	must(t, yaml.Unmarshal([]byte(strings.Replace(string(spec), old, replaced, 1)), &changed))
	next.Object["spec"] = changed
	must(t, f.Create(t.Context(), next))
	f.created = append(f.created, next)
	must(t, f.Status().Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"configuration":{"name":%q}}}`, name))))
}

// secret names a Secret.
func secret(namespace, name string) *corev1.Secret {
	s := &corev1.Secret{}
	s.Namespace, s.Name = namespace, name
	return s
}
