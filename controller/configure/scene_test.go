package configure

import (
	"context"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/internal/golden"
	"wmco/render"
)

const (
	namespace = "operator"
	version   = "11.0.0-new"
	// hostA and hostB are the addresses of two hosts, and their entries in windows-instances.
	hostA, hostB = "10.0.140.21", "10.0.140.22"
	// ownKey is the seed of the operator's key, keyA and keyB those of the two hosts.
	ownKey, keyA, keyB = 1, 10, 11
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noon is the time in scenes.
func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

func recordKey() bundle.Key { return bundle.Key("0123456789abcdef0123456789abcdef") }

// plainCluster and imagesCluster are clusters of the goldens, with what renders their bundles; the second has pinned images.
var (
	plainCluster  = exampleCluster("none-before-join")
	imagesCluster = exampleCluster("none-pinned-images")
)

// exampleCluster returns what reads a golden case, once.
func exampleCluster(name string) func() (*desired.Hosts, error) {
	return sync.OnceValues(func() (*desired.Hosts, error) {
		dir := filepath.Join("..", "..", "golden", "cases", name)
		c, err := golden.Load(dir)
		if err != nil {
			return nil, err
		}
		return c.Read(context.Background(), dir, recordKey())
	})
}

// scene is a cluster whose hosts are reached in process. Without changes it has one entry of windows-instances, whose host was never reached.
type scene struct {
	t       *testing.T
	client  client.Client
	network *network
	joiner  *Joiner
	inputs  *desired.Hosts
	counted counted
	// elapsed is the monotonic clock; now the other one.
	elapsed time.Duration
	now     time.Time
	// pinsWritten is when the keys of hosts.PinsConfigMap were written.
	pinsWritten []metav1.ManagedFieldsEntry
	// fails are errors of the API server, by verb and name of the object.
	fails map[string]error
}

// counted are the counters of a scene.
type counted struct{ nodes, failures []string }

func (c *counted) CountNode(backing string, took time.Duration) {
	c.nodes = append(c.nodes, fmt.Sprint(backing, " ", took))
}
func (c *counted) CountMachine(time.Duration) {}

func (c *counted) CountFailure(reason string) { c.failures = append(c.failures, reason) }

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneOf(t, plainCluster)
}

// newSceneOf returns a scene with the settings of a cluster.
func newSceneOf(t *testing.T, cluster func() (*desired.Hosts, error)) *scene {
	t.Helper()
	example, err := cluster()
	must(t, err)
	inputs := *example
	inputs.Findings, inputs.All, inputs.Instances = nil, nil, nil
	s := &scene{t: t, inputs: &inputs, now: noon(), fails: map[string]error{}}
	s.client = s.newClient()
	records := &hosts.Records{Live: s.client, Client: s.client, Cache: s.client, Namespace: namespace}
	login := &hosts.Login{Live: s.client, Client: s.client, Namespace: namespace, Records: records, RecordKey: recordKey()}
	s.network = &network{login, map[string]*computer{}}
	s.joiner = &Joiner{
		Reader: s.client, Client: s.client, Inputs: s.readInputs, Login: login, Version: version, Log: logr.Discard(),
		Hosts: hosts.New(hosts.Options{
			Transports: hosts.Transports{Kept: s.network, Fresh: s.network},
			Program:    remote.Program{Path: `C:\Windows\wmco\wmco-node-0123456789ab.exe`, Sum: "01234567"},
		}),
		Checks: &Checks{
			Live: s.client, Login: login, Now: func() time.Time { return s.now },
			Versions: func(context.Context) ([]string, error) { return []string{"v1.36.2"}, s.fails["version"] },
		},
		Now: func() time.Time { return s.now }, Elapsed: func() time.Duration { return s.elapsed }, Silence: windowsnode.SilenceByKubelet,
		Random: func(p []byte) (int, error) { clear(p); return len(p), nil }, Unjoined: &Unjoined{}, Counters: &s.counted,
	}
	s.addEntry(hostA)
	s.network.at[hostA] = &computer{hostKey: hostKey(t, keyA), facts: factsOf("WIN-A", hostA)}
	return s
}

// newClient returns a client of an API server that has the key of the operator, and the ConfigMaps of the records.
func (s *scene) newClient() client.Client {
	scheme := runtime.NewScheme()
	must(s.t, clientgoscheme.AddToScheme(scheme))
	must(s.t, machinev1beta1.Install(scheme))
	block, err := ssh.MarshalPrivateKey(keyWithSeed(ownKey), "")
	must(s.t, err)
	objects := []client.Object{&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: pem.EncodeToMemory(block)},
	}}
	for _, name := range append(record.ConfigMapNames(), rejoiningName) {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{hosts.RecordsLabel: "true"}}
		if name == rejoiningName {
			meta.Labels = nil
		}
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta})
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&machinev1beta1.Machine{}, "metadata.name", byName).Build()
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := s.fails["get "+key.Name]; err != nil {
				return err
			}
			err := c.Get(ctx, key, o, opts...)
			if err == nil && key.Name == hosts.PinsConfigMap { // the fake client writes its own
				o.SetManagedFields(s.pinsWritten)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			verb := "list"
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
				verb = "list machines"
			}
			if err := s.fails[verb]; err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := s.fails["patch "+o.GetName()]; err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
}

// factsOf are the facts of a host.
func factsOf(name string, addresses ...string) bundle.Facts {
	return bundle.Facts{
		Schema: bundle.FactsSchema, HostName: name, Addresses: addresses, OSBuild: "10.0.20348",
		DefaultRoute: bundle.DefaultRoute{Address: addresses[0], Gateway: "10.0.0.1"}, DefenderRunning: true, Features: []string{"Containers"},
	}
}

// addEntry adds an entry of windows-instances.
func (s *scene) addEntry(address string, resolved ...string) {
	if len(resolved) == 0 {
		resolved = []string{address}
	}
	s.inputs.Instances = append(s.inputs.Instances, gather.Instance{Address: address, Username: "Administrator", Addresses: resolved})
	s.inputs.All = append(s.inputs.All, render.Node{
		Backing: render.BackingInstance, Address: address, Addresses: resolved, Username: "Administrator", Origins: render.Origins{},
	})
}

// addMachine adds a Machine, whose UID is its name with "uid-" before it.
func (s *scene) addMachine(name, address string) *render.Node {
	s.inputs.All = append(s.inputs.All, render.Node{
		Backing: render.BackingMachine, MachineName: name, MachineUID: "uid-" + name, Address: address, Addresses: []string{address},
		Origins: render.Origins{},
	})
	return &s.inputs.All[len(s.inputs.All)-1]
}

// onlyMachine replaces the entries by a Machine at hostA.
func (s *scene) onlyMachine(name string) *render.Node {
	s.inputs.All, s.inputs.Instances = nil, nil
	return s.addMachine(name, hostA)
}

// host is the host of the inputs at an address.
func (s *scene) host(address string) *render.Node {
	i := slices.IndexFunc(s.inputs.All, func(n render.Node) bool { return n.Address == address })
	return &s.inputs.All[i]
}

// readInputs returns the inputs with the records as they are.
func (s *scene) readInputs(ctx context.Context) (*desired.Hosts, error) {
	if err := s.fails["inputs"]; err != nil {
		return nil, err
	}
	inputs := *s.inputs
	var err error
	inputs.Records, _, err = s.joiner.Login.Records.CurrentRecords(ctx)
	return &inputs, err
}

// hostAt is a host with the inputs, as JoinHost finds it.
func (s *scene) hostAt(address string) Host {
	inputs, err := s.readInputs(s.t.Context())
	must(s.t, err)
	return Host{Joiner: s.joiner, Node: *s.host(address), Wanted: inputs}
}

// addNode creates a Node of Windows that has reported an address.
func (s *scene) addNode(name, address string, changes ...func(*corev1.Node)) {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{corev1.LabelOSStable: "windows"}, Annotations: map[string]string{},
		CreationTimestamp: metav1.NewTime(noon().Add(-10 * time.Minute)),
	}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}}
	for _, change := range changes {
		change(n)
	}
	must(s.t, s.client.Create(s.t.Context(), n))
}

// addConfigMap creates a ConfigMap of the operator.
func (s *scene) addConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}, Data: data}
	must(s.t, s.client.Create(s.t.Context(), cm))
	return cm
}

// annotated gives a Node an annotation.
func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// node returns a Node as the API server has it.
func (s *scene) node(name string) *corev1.Node {
	s.t.Helper()
	n, err := ReadNode(s.t.Context(), s.client, name)
	must(s.t, err)
	return n
}

// addRecord writes a record.
func (s *scene) addRecord(r record.Record) {
	s.t.Helper()
	must(s.t, s.joiner.Login.Records.UpdateRecord(s.t.Context(), r.ID(), func(record.Record) (record.Record, error) { return r, nil }))
}

// record returns the record of a host, zero where there is none.
func (s *scene) record(id record.ID) record.Record {
	s.t.Helper()
	r, _, err := s.joiner.Login.Records.GetRecord(s.t.Context(), id)
	must(s.t, err)
	return r
}

// recordOf is the record of an entry that is the Node of a name, with the host key of a seed.
func (s *scene) recordOf(entry, node string, key byte) record.Record {
	r := record.New(record.OfEntry(entry))
	r.Address, r.Resolved, r.Account, r.HostKey, r.Origin = entry, entry, "Administrator", hosts.EncodeKey(hostKey(s.t, key)), record.OriginJoined
	if node != "" {
		r.Node, r.NodeUID = node, types.UID("uid-"+node)
	}
	return r.WithAcceptedKey(s.publicKey(), recordKey())
}

// publicKey is the operator's, as a line of authorized_keys.
func (s *scene) publicKey() string {
	s.t.Helper()
	key, _, err := s.joiner.Login.PrivateKey(s.t.Context())
	must(s.t, err)
	return key.PublicKey()
}

// join does the next steps for the host at an address.
func (s *scene) join(address string) Progress {
	s.t.Helper()
	n := s.host(address)
	ref := Ref{Machine: n.MachineName, Address: address}
	p, err := s.joiner.JoinHost(s.t.Context(), ref)
	must(s.t, err)
	return p
}

// keyOf returns the name of an object.
func keyOf(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

// targetAt is the host at an address, as the operator logs in to it.
func targetAt(t *testing.T, s *scene, address string) remote.Target {
	t.Helper()
	w, err := s.hostAt(address).ApplyRequest()
	must(t, err)
	return w.Target
}
