package simnode_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

var server = testenv.Environment{Options: controlplane.Options{Controllers: true, NodeGrace: 8 * time.Second}}

var programs sshtest.Shared

var must, eventually, background = testenv.Must, testenv.Await, testenv.RunInBackground

func TestMain(m *testing.M) {
	status := server.Main(m)
	programs.Remove()
	os.Exit(status)
}

// logTo logs to the test, and to nowhere after its end.
func logTo(t testing.TB) *slog.Logger {
	log := &testLog{out: t.Output()}
	t.Cleanup(func() { log.set(io.Discard) })
	return slog.New(slog.NewTextHandler(log, nil))
}

type testLog struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *testLog) set(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = out
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// startCluster loads a golden cluster and what a real one has around it.
func startCluster(t testing.TB) client.Client {
	t.Helper()
	return startClusterWith(t, nil)
}

// startClusterWith approves the certificates of some kubelets only.
func startClusterWith(t testing.TB, approve func(node string) bool) client.Client {
	t.Helper()
	loadCluster(t)
	approveKubelets(t, approve)
	startNetwork(t)
	return server.Client(t)
}

func approveKubelets(t testing.TB, approve func(node string) bool) {
	t.Helper()
	background(t, func(ctx context.Context) error { return cluster.Approve(ctx, server.Config(t), logTo(t), approve) })
}

func startNetwork(t testing.TB) {
	t.Helper()
	background(t, func(ctx context.Context) error { return cluster.Network(ctx, server.Config(t), logTo(t)) })
}

// loadCluster loads a golden cluster that leads to the API server.
func loadCluster(t testing.TB) {
	t.Helper()
	plane := server.ControlPlane(t)
	server.LoadExample(t, "../../..")
	must(t, cluster.Connect(t.Context(), plane.Config, plane.ClientCA()))
}

// overSSH is a machine behind an SSH server that is a Machine of the cluster.
type overSSH struct {
	*simnode.Machine
	server *sshd.Server
	known  string
}

func newOverSSH(t *testing.T, name string) *overSSH {
	t.Helper()
	programs.Build(t)
	host := sshd.Loopback()
	m, s, err := simnode.WithSSH(programs.Programs, t.TempDir(), sshd.Options{Address: net.JoinHostPort(host, "0")}, simnode.Options{Facts: facts(name, host), Times: simnode.FastTimes(), Log: logTo(t)})
	must(t, err)
	t.Cleanup(func() {
		must(t, m.Close())
		forget(t, name)
	})
	must(t, m.InstallPayload())
	file := filepath.Join(t.TempDir(), "machine.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "apiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata:\n  name: %s\n  namespace: openshift-machine-api\n"+
		"  labels: {machine.openshift.io/os-id: Windows}\nspec: {}\nstatus:\n  addresses:\n  - {type: InternalIP, address: %s}\n", name, host), 0o600))
	server.Load(t, file)
	return &overSSH{m, s, filepath.Join(t.TempDir(), "known_hosts")}
}

func facts(name, address string) bundle.Facts {
	return bundle.Facts{
		Schema: bundle.FactsSchema, HostName: name, Addresses: []string{address}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
		DefaultRoute: bundle.DefaultRoute{Address: address, Gateway: "10.0.0.1"},
	}
}

// apply runs `wmco apply` against the cluster, as a person does.
func (o *overSSH) apply(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs.Command, "apply", "--from", "cluster", "--host", o.server.User+"@"+o.server.Address, "--identity", o.server.KeyFile,
		"--known-hosts", o.known, "--node-program", programs.Node)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+server.ControlPlane(t).Kubeconfig, "XDG_CONFIG_HOME="+t.TempDir())
	cmd.Dir = t.TempDir() // a folder named cluster would win over the word
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func getNode(t testing.TB, c client.Client, name string) (*corev1.Node, bool) {
	t.Helper()
	var n corev1.Node
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, &n)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return &n, err == nil
}

func ready(n *corev1.Node) bool { return condition(n, corev1.NodeReady).Status == corev1.ConditionTrue }

func condition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{}
}
