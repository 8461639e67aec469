package fleettest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv/controlplane"
)

// root is the folder of this module.
const root = "../../.."

// size is the number of machines.
const size = 5

// fleet is a cluster with joined Windows nodes.
type fleet struct {
	client.Client
	plane    *controlplane.ControlPlane
	machines []*machine
	// started are the machines in memory, those that are gone too.
	started []*simnode.Machine
	// identity is the file of the private key for all machines.
	identity string
	signer   ssh.Signer
	// stop ends the operator, ended is how often it has ended without a stop.
	stop  func()
	ended atomic.Int32
	// environment is that of operators that live.
	environment map[string]string
	// since is the number of requests in the audit log before this fleet.
	since int
	// network is between operators that live and the API server; nil is none.
	network *faults.Network
	// aged are the times of heartbeats, by Node, that count as the last ones for half an hour already.
	aged sync.Map
	// created are removed at the end, like the Nodes.
	created []client.Object
}

// machine is a simulated machine, and a Machine of the cluster.
type machine struct {
	*simnode.Machine
	// server is the SSH server in front of it; nil for one in memory, which has none.
	server        *sshd.Server
	name, address string
}

// newFleet joins the machines. No operator runs yet.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	programs.Build(t)
	f := prepare(t)
	f.newKey(t)
	for i := range size {
		f.add(t, fmt.Sprintf("win-%d", i+1))
	}
	f.apply(t)
	eventually(t, "the Nodes", func() bool { return len(f.nodes(t)) == size })
	// The kubelets are there now, so the node agents get their access to the cluster. All else follows from it.
	f.apply(t)
	return f
}

// prepare makes a cluster for machines.
func prepare(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{plane: server.ControlPlane(t), stop: func() {}}
	server.LoadExample(t, root, "deploy/rbac", "deploy/admission")
	f.Client, f.since = server.Client(t), len(f.requests(t))
	must(t, cluster.Connect(t.Context(), f.plane.Config, f.plane.ClientCA()))
	t.Cleanup(func() { f.remove(t) })
	// Canaries are not observed: the node agents report what they prove here.
	f.settings(t, `{rollout: {settle: 0s}}`)
	background(t, func(ctx context.Context) error { return cluster.Approve(ctx, f.plane.Config, logs(), nil) })
	background(t, func(ctx context.Context) error { return cluster.Network(ctx, f.plane.Config, logs()) })
	background(t, func(ctx context.Context) error { return cluster.Record(ctx, f.plane.Config, logs()) })
	t.Cleanup(func() { f.stop() })
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = fmt.Fprintf(t.Output(), "logged last:\n%s\n", &recent)
		}
	})
	return f
}

// remove removes what the nodes and the operator have made.
func (f *fleet) remove(t *testing.T) {
	ctx := context.Background()
	for _, o := range f.created {
		must(t, client.IgnoreNotFound(f.Delete(ctx, o)))
	}
	for _, m := range f.machines {
		must(t, client.IgnoreNotFound(f.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}})))
	}
	must(t, f.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}))
	// A Machine of the same name in the next test is another host.
	must(t, f.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{hosts.RecordsLabel}))
}

// newKey makes the key of all machines, which is also that of the operator.
func (f *fleet) newKey(t *testing.T) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	f.signer, err = ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	text := pem.EncodeToMemory(block)
	f.identity = filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(f.identity, text, 0o600))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}}
	must(t, f.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":null,"stringData":{%q:%q}}`, keys.SecretKey, text))))
}

// add starts a machine, and makes its Machine.
func (f *fleet) add(t *testing.T, name string) {
	t.Helper()
	host := sshd.Loopback()
	facts := bundle.Facts{
		Schema: bundle.FactsSchema, HostName: name, Addresses: []string{host}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
		DefaultRoute: bundle.DefaultRoute{Address: host, Gateway: "10.0.0.1"},
	}
	folder := filepath.Join(t.TempDir(), name)
	must(t, os.Mkdir(folder, 0o700))
	m, s, err := simnode.WithSSH(programs.Programs, folder, sshd.Options{Address: net.JoinHostPort(host, "0"), Key: f.signer}, simnode.Options{Facts: facts, Times: simnode.FastTimes(), Log: logs()})
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	file := filepath.Join(t.TempDir(), "machine.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata:\n  name: %s\n  namespace: openshift-machine-api\n"+
		"  labels: {machine.openshift.io/os-id: Windows}\nspec: {}\nstatus:\n  phase: Provisioned\n  addresses:\n  - {type: InternalIP, address: %s}\n", name, host), 0o600))
	server.Load(t, file)
	f.machines = append(f.machines, &machine{Machine: m, server: s, name: name, address: host})
}

// apply runs `wmco apply` for all machines, as a person does.
func (f *fleet) apply(t *testing.T) {
	t.Helper()
	args := []string{"apply", "--from", "cluster", "--identity", f.identity, "--known-hosts", filepath.Join(t.TempDir(), "known_hosts"), "--node-program", programs.Node, "--payload", payloadFolder(t)}
	for _, m := range f.machines {
		args = append(args, "--host", m.server.User+"@"+m.server.Address)
	}
	cmd := exec.CommandContext(t.Context(), programs.Command, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.plane.Kubeconfig, "XDG_CONFIG_HOME="+t.TempDir())
	cmd.Dir = t.TempDir() // a folder named cluster would win over the word
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// payloadFolder has stand-ins of the executables.
func payloadFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", "..", "golden", "payload"))
	must(t, err)
	return folder
}

// nodes returns the Windows Nodes, by name.
func (f *fleet) nodes(t *testing.T) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	must(t, f.List(t.Context(), &list, client.MatchingLabels{corev1.LabelOSStable: "windows"}))
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

func (f *fleet) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var n corev1.Node
	must(t, f.Get(t.Context(), client.ObjectKey{Name: name}, &n))
	return &n
}

// bundles returns the digests of each node's published bundle.
func (f *fleet) bundles(t *testing.T) map[string]bundle.Digest {
	t.Helper()
	return desiredBundles(f.nodes(t))
}

// desiredBundles returns the digests of the nodes' published bundles.
func desiredBundles(nodes []corev1.Node) map[string]bundle.Digest {
	all := map[string]bundle.Digest{}
	for _, n := range nodes {
		if d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation]); err == nil {
			all[n.Name] = d.Bundle
		}
	}
	return all
}

// watch observes until the end of the test.
func (f *fleet) watch(t *testing.T) *observer.Observer {
	t.Helper()
	o := observer.New(time.Now, 0)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	must(t, o.Watch(ctx, f.plane.Config))
	return o
}

// isSettled reports whether all nodes are current, and no Secret is left that none of them has.
func (f *fleet) isSettled(t *testing.T) bool {
	t.Helper()
	nodes := f.nodes(t)
	if len(nodes) != len(f.machines) || slices.ContainsFunc(nodes, func(n corev1.Node) bool { return !observer.IsCurrent(n) }) {
		return false
	}
	wanted := map[string]bool{}
	for _, n := range nodes {
		d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		must(t, err)
		for _, l := range []published.Layer{d.Cluster, d.Node} {
			for _, name := range l.Names() {
				wanted[name] = true
			}
		}
	}
	var secrets corev1.SecretList
	must(t, f.List(t.Context(), &secrets, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}))
	return len(secrets.Items) == len(wanted) && !slices.ContainsFunc(secrets.Items, func(s corev1.Secret) bool { return !wanted[s.Name] })
}
