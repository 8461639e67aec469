package jointest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	operatorv1 "github.com/openshift/api/operator/v1"
	"golang.org/x/crypto/ssh"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/status"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv/manifests"
)

// makeKey makes the key pair and its Secret by the commands of docs/okd.md, instead of those of the test.
func (p page) makeKey() {
	p.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}}
	must(p.t, p.Delete(p.t.Context(), secret))
	p.run(p.withoutLine(p.open("docs/okd.md").block("3. The operator", "ssh-keygen"), "oc apply --server-side"))
}

// prepareMachine starts a machine that accepts the key which the user data has: a page's block prints it.
func (p page) prepareMachine(block, name, address string) *joinedMachine {
	p.t.Helper()
	script := p.run(block)
	text, err := os.ReadFile(filepath.Join(p.folder, "windows-key"))
	must(p.t, err)
	signer, err := ssh.ParsePrivateKey(text)
	must(p.t, err)
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if !strings.Contains(script, public) {
		p.t.Fatalf("the script does not accept %s", public)
	}
	return p.machineWith(name, address, sshd.Options{Key: signer})
}

// withoutLine drops the line of a block that begins like this; the test fails without one.
func (p page) withoutLine(block, begin string) string {
	p.t.Helper()
	lines := slices.Collect(strings.Lines(block))
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), begin) })
	if len(kept) == len(lines) {
		p.t.Fatalf("no line begins with %q in\n%s", begin, block)
	}
	return strings.Join(kept, "")
}

// namedObject is an object of a kind that the client has no Go type of.
func namedObject(kind schema.GroupVersionKind, name string) client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	return u
}

// discard deletes what commands have created, at the end of the test.
func (w *world) discard(list ...client.Object) {
	w.t.Cleanup(func() {
		for _, o := range list {
			must(w.t, client.IgnoreNotFound(w.Delete(context.Background(), o, client.PropagationPolicy(metav1.DeletePropagationBackground))))
		}
	})
}

// TestTheGuideOfYourOwnHostsIsFollowed from the network to a Pod that a scheduler would place, with mirrors for a disconnected cluster.
func TestTheGuideOfYourOwnHostsIsFollowed(t *testing.T) {
	w := newWorld(t)
	p := w.openPage("docs/okd.md")
	p.run(p.withoutLine(p.block("1. The cluster's network", "oc patch"), "oc rollout status"))
	p.run(p.block("1. The cluster's network", "wmco validate"))
	p.makeKey()
	w.operate()

	const name, address = "winworker-x7k2p", "192.0.2.14"
	script := p.block("4. A Windows machine", "wmco userdata")
	m := p.prepareMachine(script, name, address)
	if other := p.open("docs/platforms/none.md").block("The host", "wmco userdata"); strings.TrimSpace(other) != strings.TrimSpace(script) {
		t.Errorf("docs/platforms/none.md has %q, docs/okd.md %q", other, script)
	}
	w.discard(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: configure.InstancesName}})
	p.run(p.withoutLine(p.block("4. A Windows machine", "oc create configmap"), "wmco status --watch"))
	eventually(t, "the host to be a node", func() bool { return w.joined(name) })
	if text := p.run("wmco status\n"); !strings.Contains(text, name) || !strings.Contains(text, "Updated") {
		t.Errorf("wmco status prints\n%s", text)
	}

	mirrors := p.open("docs/disconnected.md")
	must(t, os.Symlink("docs/examples/mirrors.yaml", filepath.Join(p.folder, "my-mirrors.yaml")))
	w.discard(
		namedObject(configv1.GroupVersion.WithKind("ImageTagMirrorSet"), "windows-images"),
		namedObject(configv1.GroupVersion.WithKind("ImageDigestMirrorSet"), "windows-operator"),
	)
	starts := m.Starts()
	p.run(mirrors.block("Tell the cluster", "oc apply"))
	eventually(t, "the mirror of the pause image", func() bool {
		return strings.Contains(m.Text(`C:\k\containerd\registries\mcr.microsoft.com\hosts.toml`), "mirror.corp.example:5000")
	})
	if diff := cmp.Diff(starts, m.Starts()); diff != "" {
		t.Errorf("a mirror set has restarted services, and the page promises no restart (-before +after):\n%s", diff)
	}

	for _, release := range []string{"2019", "2022", "2025"} {
		w.discard(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "windows" + release}})
	}
	w.discard(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web"}})
	p.run(p.open("docs/workloads.md").block("Workloads on Windows nodes", "oc apply"))
	var pods corev1.PodList
	eventually(t, "the Pod of the Deployment", func() bool {
		return w.List(t.Context(), &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": "web"}) == nil && len(pods.Items) > 0
	})
	w.checkFits(pods.Items[0], name)

	w.discard(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "hello"}})
	must(t, os.WriteFile(filepath.Join(p.folder, "hello.yaml"), []byte(p.manifest("kind: Deployment")), 0o600))
	p.run(p.withoutLine(p.withoutLine(p.block("5. A Pod", "hello.yaml"), "oc rollout status"), "oc logs"))
	eventually(t, "the Pod of the guide", func() bool {
		return w.List(t.Context(), &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": "hello"}) == nil && len(pods.Items) > 0
	})
	w.checkFits(pods.Items[0], name)
}

// manifest returns the first manifest of the page that has a text.
func (p page) manifest(contains string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, p.document))
	must(p.t, err)
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		if block, _, ended := strings.Cut(part, "```"); ended && strings.Contains(block, contains) {
			return block
		}
	}
	p.t.Fatalf("%s has no manifest with %q", p.document, contains)
	return ""
}

// checkFits checks what a scheduler looks at, which does not run here: the labels and the taints of the node.
func (w *world) checkFits(pod corev1.Pod, node string) {
	w.t.Helper()
	n := w.node(node)
	if len(pod.Spec.NodeSelector) == 0 {
		w.t.Error("the Pod asks for no node")
	}
	for label, value := range pod.Spec.NodeSelector {
		if n.Labels[label] != value {
			w.t.Errorf("the Pod asks for %s=%s, and the node has %q", label, value, n.Labels[label])
		}
	}
	if len(n.Spec.Taints) == 0 {
		w.t.Error("the node has no taint")
	}
	for _, taint := range n.Spec.Taints {
		tolerated := false
		for _, toleration := range pod.Spec.Tolerations {
			tolerated = tolerated || toleration.ToleratesTaint(logr.Discard(), &taint, false)
		}
		if !tolerated {
			w.t.Errorf("the Pod does not tolerate %v", taint)
		}
	}
}

// TestTheGuideOfVSphereIsFollowed from the network to a Machine that is a node: its template has no name of its own.
func TestTheGuideOfVSphereIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.onVSphere()
	p := w.openPage("docs/platforms/vsphere.md")
	t.Cleanup(func() { // the clusters of other tests have no port of their own
		network := namedObject(operatorv1.GroupVersion.WithKind("Network"), "cluster")
		none := `{"spec":{"defaultNetwork":{"ovnKubernetesConfig":{"hybridOverlayConfig":{"hybridOverlayVXLANPort":null}}}}}`
		must(t, w.Patch(context.Background(), network, client.RawPatch(types.MergePatchType, []byte(none))))
	})
	p.run(p.block("The network", "oc patch"))
	p.makeKey()
	w.operate()
	const name, address = "winw-x7k2p", "192.0.2.149"
	w.discard(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}) // after its machine, which knows another name
	p.prepareMachine(p.block("The template", "wmco userdata"), "win-template", address)
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: "winw"}}
	w.discard(set)
	p.run(p.withoutLine(p.block("A MachineSet", "wmco machineset"), "wmco status --watch"))
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	if set.Spec.Replicas == nil || *set.Spec.Replicas != 1 {
		t.Fatalf("the MachineSet has %v replicas", set.Spec.Replicas)
	}
	// There is no machine-api here, which makes the Machine of the MachineSet, and its virtual machine.
	machine := w.machineObject(name, address)
	before := machine.DeepCopy()
	machine.Labels, machine.Spec = set.Spec.Template.Labels, set.Spec.Template.Spec
	must(t, w.Patch(t.Context(), machine, client.MergeFrom(before)))
	eventually(t, "the Machine to be a node", func() bool { return w.joined(name) })
	if have := w.machines["win-template"].Name(); have != name {
		t.Errorf("the computer is named %q", have)
	}
}

// onVSphere makes the cluster one on vSphere, with the MachineSets that its installer has made.
func (w *world) onVSphere() {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "golden", "clusters", "vsphere", "infrastructure.yaml"))
	must(w.t, err)
	var i configv1.Infrastructure
	must(w.t, yaml.Unmarshal(text, &i))
	change, err := yaml.Marshal(map[string]any{"status": map[string]any{"platform": i.Status.PlatformStatus.Type, "platformStatus": i.Status.PlatformStatus}})
	must(w.t, err)
	change, err = yaml.YAMLToJSON(change)
	must(w.t, err)
	sets := filepath.Join("..", "..", "..", "golden", "clusters", "vsphere", "machinesets.yaml")
	server.Load(w.t, sets)
	list, err := manifests.Read(sets)
	must(w.t, err)
	for _, m := range list {
		w.discard(m.DeepCopy())
	}
	w.patchCluster("Infrastructure", string(change), `{"status":{"platform":"None","platformStatus":{"type":"None","vsphere":null}}}`)
}

// TestThePageOfKeysIsFollowed: its commands rotate the key of the operator, and show which key a node accepts.
func TestThePageOfKeysIsFollowed(t *testing.T) {
	w := newWorld(t)
	p := w.openPage("docs/keys.md")
	const name, address = "instance-page", "192.0.2.206"
	k := w.watchKeys(w.machine(name, address))
	w.instances(address)
	w.operate()
	w.allJoin([]string{name})
	eventually(t, "the key to be accepted", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })

	rotate := p.block("Rotate a key", "ssh-keygen -t")
	said := p.run(rotate)
	text, err := os.ReadFile(filepath.Join(p.folder, "windows-key"))
	must(t, err)
	next, err := ssh.ParsePrivateKey(text)
	must(t, err)
	eventually(t, "the new key alone", func() bool { return k.accepts(next) })
	k.checkExchange(t, w.signer, next, false)
	eventually(t, "the condition", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })
	if last := p.run(lastLine(rotate)); !strings.Contains(last, w.condition(status.KeysAccepted).Message) || last == said {
		t.Errorf("the last command prints %q, and before %q", last, said)
	}
	hash := keys.HashPublicKey(lineOf(next))
	eventually(t, "the annotation of the Node", func() bool { return w.node(name).Annotations[keys.HashAnnotation] == hash })
	if text := p.run(p.block("Rotate a key", "sha256sum")); strings.Count(text, hash) != 2 || !strings.Contains(text, name) {
		t.Errorf("the hash of the Node and that of the key are not both %s:\n%s", hash, text)
	}
}

// lastLine returns the last line of a block.
func lastLine(block string) string {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	return lines[len(lines)-1]
}
