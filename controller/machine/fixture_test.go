package machine

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys"
	"wmco/controller/metrics"
	"wmco/controller/windowsnode"
	"wmco/internal/test/testenv/manifests"
	"wmco/payload"
	"wmco/payload/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// broken is a transport to hosts that all have one fault.
type broken struct{ fault func(remote.Target) error }

func (b broken) Connect(_ context.Context, t remote.Target) error { return b.fault(t) }

func (b broken) Run(_ context.Context, t remote.Target, _ remote.Command) error { return b.fault(t) }

func (b broken) Transfer(_ context.Context, t remote.Target, _ func(remote.Files) error) error {
	return b.fault(t)
}

func (broken) Close() error { return nil }

func refusesLogin(t remote.Target) error {
	return &remote.AuthError{Target: t, Offered: []string{"ssh-ed25519 SHA256:x"}, Err: errors.New("no supported methods remain")}
}

func unreachable(t remote.Target) error {
	return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errors.New("connection refused")}
}

func otherHostKey(t remote.Target) error {
	return &remote.HostKeyError{Target: t, Pinned: []string{"a"}, Offered: "b"}
}

// operator reconciles Machines of the example cluster in memory, with a clock and a fault of all hosts.
type operator struct {
	*Machines
	client.WithWatch
	t        *testing.T
	recorder *events.FakeRecorder
	// now is the time of the monotonic clock.
	now time.Duration
}

// kindsOf returns which kinds the cluster serves.
func kindsOf(list []manifests.Manifest, more ...schema.GroupVersionKind) meta.RESTMapper {
	var preferred []schema.GroupVersion
	for _, kind := range more {
		preferred = append(preferred, kind.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(preferred)
	for _, m := range list {
		scope := meta.RESTScopeRoot
		if m.GetNamespace() != "" {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(m.GroupVersionKind(), scope)
	}
	for _, kind := range append(more, corev1.SchemeGroupVersion.WithKind("ConfigMap"), base.MachineKind()) {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return mapper
}

// newOperator is that of a cluster which serves these kinds too.
func newOperator(t *testing.T, fault func(remote.Target) error, more ...schema.GroupVersionKind) *operator {
	t.Helper()
	golden := filepath.Join("..", "..", "golden")
	none := filepath.Join(golden, "clusters", "none")
	list, err := manifests.Read(filepath.Join(golden, "clusters", "common"), filepath.Join(none, "infrastructure.yaml"), filepath.Join(none, "controllerconfig.yaml"), filepath.Join(none, "machineconfigs.yaml"))
	must(t, err)
	with := runtime.NewScheme()
	must(t, scheme.AddToScheme(with))
	must(t, machinev1beta1.Install(with))
	build := fake.NewClientBuilder().WithScheme(with).WithRESTMapper(kindsOf(list, more...)).WithStatusSubresource(&machinev1beta1.Machine{}).
		WithIndex(&machinev1beta1.Machine{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	for _, m := range list {
		if m.GetName() != keys.SecretName {
			build = build.WithObjects(m.Unstructured)
		}
	}
	for _, part := range "0123456789abcdef" { // a fake client gives no UIDs, without which an object does not exist for Records
		build = build.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: gather.OperatorNamespace, Name: "windows-hosts-" + string(part), UID: types.UID(part), Labels: map[string]string{hosts.RecordsLabel: "true"},
		}})
	}
	o := &operator{WithWatch: build.WithObjects(privateKey(t)).Build(), t: t, recorder: events.NewFakeRecorder(1000)}
	o.Machines = o.machines(fault)
	return o
}

func privateKey(t *testing.T) *corev1.Secret {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: pem.EncodeToMemory(block)}}
}

func (o *operator) machines(fault func(remote.Target) error) *Machines {
	o.t.Helper()
	files, err := store.Open(filepath.Join("..", "..", "golden", "payload"))
	must(o.t, err)
	program, err := remote.FileProgram("controller.go") // it is never sent
	must(o.t, err)
	source := desired.Source{
		Objects: objects.NewClusterReader(o.WithWatch), Set: files.Set(), Key: bundle.Key(strings.Repeat("k", 32)), Gather: gather.Options{Namespace: gather.OperatorNamespace, Complete: true},
	}
	records := &hosts.Records{Live: o.WithWatch, Client: o.WithWatch, Cache: o.WithWatch, Namespace: gather.OperatorNamespace}
	login := &hosts.Login{Live: o.WithWatch, Client: o.WithWatch, Namespace: gather.OperatorNamespace, Records: records}
	versions := func(context.Context) ([]string, error) {
		return []string{payload.For(payload.Kubelet, payload.TestedKubernetes).Version}, nil
	}
	inputs := func(ctx context.Context) (*desired.Hosts, error) {
		all, _, err := records.CachedRecords(ctx)
		if err != nil {
			return nil, err
		}
		from := source
		from.Gather.Records = &all
		return desired.ReadHosts(ctx, from)
	}
	elapsed := func() time.Duration { return o.now }
	return &Machines{
		Joiner: &configure.Joiner{
			Counters: metrics.NewCounters(metrics.Known{}), Reader: o.WithWatch, Client: o.WithWatch, Inputs: inputs,
			Hosts: hosts.New(hosts.Options{Transports: hosts.Transports{Kept: broken{fault}, Fresh: broken{fault}}, Program: program}), Login: login,
			Checks: &configure.Checks{Live: o.WithWatch, Login: login, Versions: versions, Now: time.Now}, Version: "test", Log: logr.Discard(), Now: time.Now, Elapsed: elapsed,
			Silence: windowsnode.SilenceByKubelet, Random: rand.Read, Unjoined: &configure.Unjoined{},
		},
		Reader: o.WithWatch, Live: o.WithWatch, Client: o.WithWatch, Events: o.recorder, Log: logr.Discard(), Now: time.Now, Elapsed: elapsed,
		Replacements: Replacements{Live: o.WithWatch, Client: o.WithWatch, Namespace: gather.OperatorNamespace},
	}
}

// intercept has requests that decide and write go through these functions first.
func (o *operator) intercept(f interceptor.Funcs) {
	c := interceptor.NewClient(o.WithWatch, f)
	o.Machines.Live, o.Machines.Client = c, c
	o.Replacements.Live, o.Replacements.Client = c, c
}

func requestOf(machine string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: base.MachinesNamespace, Name: machine}}
}

// reconcile returns the events about a Machine.
func (o *operator) reconcile(name string) []string {
	o.t.Helper()
	_, err := o.Reconcile(o.t.Context(), requestOf(name))
	must(o.t, err)
	return o.events()
}

func (o *operator) events() []string {
	var list []string
	for len(o.recorder.Events) > 0 {
		list = append(list, <-o.recorder.Events)
	}
	return list
}

// machine is a Machine of Windows, which machine-api removes only when its host is gone; set is the MachineSet that owns it, empty for none.
func (o *operator) machine(set, name, address string, change ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	o.t.Helper()
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: base.MachinesNamespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{labelMachineOS: valueWindows}, Finalizers: []string{"machine.machine.openshift.io"},
	}}
	if set != "" {
		m.OwnerReferences = []metav1.OwnerReference{ownerOf(machinev1beta1.GroupVersion.String(), set)}
	}
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	m.Status.Phase = new("Provisioned")
	for _, c := range change {
		c(m)
	}
	must(o.t, o.Create(o.t.Context(), m))
	return m
}

func ownerOf(version, set string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: version, Kind: kindMachineSet, Name: set, UID: types.UID("uid-" + version + set), Controller: new(true)}
}

// changeStatus writes the status of a Machine.
func (o *operator) changeStatus(name string, change func(*machinev1beta1.Machine)) {
	o.t.Helper()
	m := &machinev1beta1.Machine{}
	must(o.t, o.WithWatch.Get(o.t.Context(), requestOf(name).NamespacedName, m))
	change(m)
	must(o.t, o.WithWatch.Status().Update(o.t.Context(), m))
}

func hasNode(m *machinev1beta1.Machine) {
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
}

// isDeleting reports whether an object was deleted.
func (o *operator) isDeleting(object client.Object) bool {
	o.t.Helper()
	now := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it is one
	err := o.WithWatch.Get(o.t.Context(), client.ObjectKeyFromObject(object), now)
	must(o.t, client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err) || now.GetDeletionTimestamp() != nil
}

// remove is what machine-api does at the end.
func (o *operator) remove(m *machinev1beta1.Machine) {
	o.t.Helper()
	none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	must(o.t, client.IgnoreNotFound(o.Patch(o.t.Context(), m.DeepCopy(), none)))
}

// replaced is how many Machines of a MachineSet were replaced in a row, as it is noted.
func (o *operator) replaced(set string) string {
	o.t.Helper()
	var cm corev1.ConfigMap
	must(o.t, client.IgnoreNotFound(o.WithWatch.Get(o.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: replacementsName}, &cm)))
	number, _, _ := strings.Cut(cm.Data[set], " ")
	return number
}

// contains reports whether a text of the list has all parts.
func contains(list []string, parts ...string) bool {
	return slices.ContainsFunc(list, func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	})
}
