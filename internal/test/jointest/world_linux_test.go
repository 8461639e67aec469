package jointest_test

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/applier/agent/executables"
	"wmco/applier/agent/images"
	"wmco/bundle"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/controller/status"
	"wmco/internal/test/existing"
	"wmco/internal/test/shards"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/memoryssh"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/sshd"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
	"wmco/internal/verify/permissions"
)

var server = testenv.Environment{Options: controlplane.Options{Controllers: true, Audit: true}, BeforeStop: keepRequests}

var programs sshtest.Shared

var must, number = testenv.Must, testenv.Number

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if text := os.Getenv(operatorVariable); text != "" {
		os.Exit(runOperator(text))
	}
	audited := shards.Options{Processes: 2}
	if folder := auditFolder(); folder != "" {
		audited.Begin = func() error { return permissions.BeginLogs(folder) }
		audited.End = func() error { return permissions.EndLogs(folder) }
	}
	os.Exit(shards.Run(audited, func() int {
		status := server.Main(m)
		programs.Remove()
		return status
	}))
}

// auditFolder is where what operators have asked for is kept for the check of their permissions (make permissions); empty is nowhere.
func auditFolder() string {
	if folder := os.Getenv(permissions.Variable); folder != "" {
		return filepath.Join(folder, "jointest")
	}
	return ""
}

// keepRequests keeps what operators have asked for, where all tests run.
func keepRequests(plane *controlplane.ControlPlane) error {
	if auditFolder() == "" || !shards.IsShard() {
		return nil
	}
	return permissions.KeepLog(auditFolder(), plane)
}

// world is a cluster, machines, and an operator that runs with the permissions that it ships.
type world struct {
	client.Client
	t *testing.T
	// memory is the cluster of a story that is played in memory; nil is a real one. Admin is the configuration of its administrator.
	memory *memory
	admin  *rest.Config
	signer ssh.Signer
	// at is where the SSH server of each address really is.
	at addressBook
	// names are what the operator's resolver knows.
	names resolver
	// log is everything that operators log.
	log *journal
	// asked is how many requests of the audit log are not looked at.
	asked int
	// guard is how long machines that are started from now on wait for a new node agent.
	guard time.Duration
	// images is the container runtime of machines that are started from now on; nil is none.
	images images.Runtime
	// registry returns what the node agents of machines that are started from now on fetch executables with; nil is none.
	registry func() executables.Registry
	// machines are those that were started, by their names.
	machines map[string]*joinedMachine
}

// joinedMachine is a simulated machine with its SSH server.
type joinedMachine struct {
	*simnode.Machine
	ssh hostServer
	// existing is what the existing operator has left on it.
	existing existing.Furnishing
}

// journal keeps a log.
type journal struct {
	mu   sync.Mutex
	text []byte
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, p...)
	return len(p), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text)
}

// newWorld loads the example cluster, and the key with which the operator logs in. No operator runs yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	with := runtime.NewScheme()
	must(t, scheme.AddToScheme(with))
	must(t, machinev1beta1.Install(with))
	must(t, mcfgv1.Install(with))
	w := &world{t: t, memory: memoryOf(t), at: addressBook(filepath.Join(t.TempDir(), "addresses")), names: resolver{}, log: &journal{}, machines: map[string]*joinedMachine{}}
	if w.memory == nil {
		programs.Build(t)
		plane := server.ControlPlane(t)
		server.LoadExample(t, "../../..", "deploy/rbac", "deploy/admission", "deploy/crd")
		must(t, cluster.Connect(t.Context(), plane.Config, plane.ClientCA()))
		w.admin = plane.Config
	} else {
		w.admin = w.memory.admin
	}
	var err error
	w.Client, err = client.New(testenv.RetryReads(w.admin), client.Options{Scheme: with})
	must(t, err)
	t.Cleanup(w.explain)
	w.forget()
	w.signer = w.newSecret()
	t.Cleanup(w.checkSecrets)
	t.Cleanup(w.checkLog)
	silent := slog.New(slog.DiscardHandler)
	w.background(func(ctx context.Context) error { return cluster.Network(ctx, w.admin, silent) })
	w.background(func(ctx context.Context) error {
		return cluster.Approve(ctx, w.admin, silent, func(node string) bool { return strings.HasPrefix(node, "machine-") || strings.HasPrefix(node, "winw-") })
	})
	return w
}

// explain shows what operators have logged, of a test that has failed, without the places of messages: those are of why it failed.
func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	show := func(format string, args ...any) { _, _ = fmt.Fprintf(w.t.Output(), format+"\n", args...) }
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, " logger=") || !strings.Contains(line, "level=INFO") { // not what controller-runtime starts and stops
			show("%s", strings.TrimSpace(line))
		}
	}
	if s, err := status.Read(context.Background(), w, gather.OperatorNamespace); err != nil {
		w.t.Error(err)
	} else {
		for _, c := range s.Conditions {
			show("condition %s %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
		}
		for _, h := range s.Hosts {
			show("host %s %s (%s): %s", h.Name, h.State, h.Reason, h.Message)
		}
	}
	for _, e := range w.allEvents() {
		show("event %s %s/%s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Note)
	}
}

// hasLogged reports whether operators have logged a line with these texts.
func (w *world) hasLogged(texts ...string) bool {
	for line := range strings.Lines(w.log.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// checkLog checks that operators call nothing an error that happens all the time.
func (w *world) checkLog() {
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "Reconciler error") && strings.Contains(line, "the object has been modified") {
			w.t.Error(strings.TrimSpace(line))
		}
	}
}

// forget removes what operators of earlier tests have written, and what was written about their machines.
func (w *world) forget() {
	w.t.Helper()
	for _, namespace := range []string{metav1.NamespaceDefault, gather.OperatorNamespace, "openshift-machine-api"} {
		must(w.t, w.DeleteAllOf(w.t.Context(), &eventsv1.Event{}, client.InNamespace(namespace)))
	}
	must(w.t, w.DeleteAllOf(w.t.Context(), &certificatesv1.CertificateSigningRequest{}))
	must(w.t, w.DeleteAllOf(w.t.Context(), &corev1.ConfigMap{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{hosts.RecordsLabel}))
	for _, name := range []string{hosts.PinsConfigMap, "windows-machine-replacements"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: name}}
		must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), cm)))
	}
}

// newKey returns a key with its private half.
func newKey(t *testing.T) (ssh.Signer, ed25519.PrivateKey) {
	t.Helper()
	key, private, err := memoryssh.NewKey()
	must(t, err)
	return key, private
}

// newSecret makes the Secret with the private key.
func (w *world) newSecret() ssh.Signer {
	w.t.Helper()
	signer, private := newKey(w.t)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(w.t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: pem.EncodeToMemory(block)}}
	must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), secret.DeepCopy())))
	w.create(secret)
	return signer
}

// create creates an object until the end of the test.
func (w *world) create(o client.Object) {
	w.t.Helper()
	must(w.t, w.Create(w.t.Context(), o))
	w.t.Cleanup(func() {
		if err := w.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
}

// background runs something until the end of the test.
func (w *world) background(run func(ctx context.Context) error) { testenv.RunInBackground(w.t, run) }

// machine starts a simulated machine with this name and address, which accepts the operator's key.
func (w *world) machine(name, address string) *joinedMachine {
	w.t.Helper()
	return w.machineWith(name, address, sshd.Options{Key: w.signer})
}

// machineWith starts a simulated machine with a special SSH server.
func (w *world) machineWith(name, address string, o sshd.Options) *joinedMachine {
	w.t.Helper()
	facts := bundle.Facts{
		Schema: bundle.FactsSchema, HostName: name, Addresses: []string{address}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
		DefaultRoute: bundle.DefaultRoute{Address: address, Gateway: "192.0.2.254"},
	}
	times := simnode.FastTimes()
	times.Guard = w.guard
	options := simnode.Options{Facts: facts, Times: times, Log: machineLog(), Images: w.images}
	if w.registry != nil {
		options.Registry = w.registry()
	}
	m, s := w.start(name, o, options)
	w.t.Cleanup(func() {
		must(w.t, m.Close())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		must(w.t, client.IgnoreNotFound(w.Delete(context.Background(), node)))
	})
	must(w.t, w.at.put(address, s.address()))
	w.machines[name] = &joinedMachine{Machine: m, ssh: s}
	return w.machines[name]
}

// start starts a machine with its SSH server, which lets in who has the key of the options.
func (w *world) start(name string, o sshd.Options, options simnode.Options) (*simnode.Machine, hostServer) {
	w.t.Helper()
	if w.memory != nil {
		return w.memory.start(w.t, name, o, options)
	}
	folder, err := os.MkdirTemp(w.t.TempDir(), name)
	must(w.t, err)
	m, s, err := simnode.WithSSH(programs.Programs, folder, o, options)
	must(w.t, err)
	return m, realServer{s}
}

// machineObject is the Machine of an address, until the end of the test.
func (w *world) machineObject(name, address string, finalizers ...string) *machinev1beta1.Machine {
	w.t.Helper()
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "openshift-machine-api", Name: name, Labels: map[string]string{"machine.openshift.io/os-id": "Windows"}, Finalizers: finalizers,
	}}
	w.create(m)
	w.t.Cleanup(func() {
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		must(w.t, client.IgnoreNotFound(w.Patch(context.Background(), m.DeepCopy(), none)))
	})
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	m.Status.Phase = new("Provisioned")
	must(w.t, w.Status().Update(w.t.Context(), m))
	return m
}

// instances writes windows-instances.
func (w *world) instances(addresses ...string) *corev1.ConfigMap {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-instances"}, Data: map[string]string{}}
	for _, a := range addresses {
		cm.Data[a] = "username=Administrator"
	}
	must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), cm.DeepCopy())))
	w.create(cm)
	return cm
}

// condition returns the operator's condition about all hosts; zero where there is none yet.
func (w *world) condition(kind string) metav1.Condition {
	w.t.Helper()
	f, _, err := fleet.Read(w.t.Context(), objects.NewClusterReader(w), gather.OperatorNamespace, time.Now())
	must(w.t, err)
	for _, c := range f.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// host returns the status of a host that is not a node with its bundle; nothing for one that is.
func (w *world) host(name string) status.Host {
	w.t.Helper()
	s, err := status.Read(w.t.Context(), w, gather.OperatorNamespace)
	must(w.t, err)
	for _, h := range s.Hosts {
		if h.Name == name {
			return h
		}
	}
	return status.Host{}
}

// events returns the notes of the events with a reason about an object.
func (w *world) events(reason, about string) []string {
	w.t.Helper()
	var notes []string
	for _, e := range w.allEvents() {
		if e.Reason == reason && e.Regarding.Name == about {
			notes = append(notes, fmt.Sprint(e.Note))
		}
	}
	return notes
}

// allEvents are all Events. In memory, those that were written in the older form are objects of their own.
func (w *world) allEvents(where ...client.ListOption) []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	if err := w.List(context.Background(), &list, where...); err != nil {
		w.t.Error(err)
	}
	if w.memory == nil {
		return list.Items
	}
	var older corev1.EventList
	if err := w.List(context.Background(), &older, where...); err != nil {
		w.t.Error(err)
	}
	for _, e := range older.Items {
		list.Items = append(list.Items, eventsv1.Event{ObjectMeta: e.ObjectMeta, Reason: e.Reason, Note: e.Message, Type: e.Type, Regarding: e.InvolvedObject})
	}
	return list.Items
}

// machineLog shows what the machines say, with -v.
func machineLog() *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}
