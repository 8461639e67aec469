package rollout

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/instance"
	"wmco/controller/keys"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/node"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/nodelist"
	"wmco/controller/windowsnode/record"
	"wmco/payload"
	"wmco/render"
)

const (
	lifeNamespace = gather.OperatorNamespace
	lifeHosts     = 3
	lifeVariants  = 3
	// lifeUnknown is a minor version of the cluster that this release does not support.
	lifeUnknown = 2
	// lifeKey makes digests of secrets.
	lifeKey = "0123456789abcdef0123456789abcdef"
)

// brokenLaw is what TestTheLifeOfNodes finds.
type brokenLaw string

// lifeWorld is a cluster with its operator.
type lifeWorld struct {
	ctx    context.Context //nolint:containedctx // of the test
	t      *testing.T
	client client.Client
	pods   kubernetes.Interface
	clock  *clocktesting.FakeClock
	start  time.Time
	hosts  []*lifeHost
	inputs lifeInputs
	// entries are those of windows-instances, nodes is how many Nodes were created.
	entries map[string]string
	nodes   int
	layers  map[bundle.Digest]bundle.Layer
	op      *lifeOperator
}

// lifeInputs say which inputs there are, without hosts.
type lifeInputs struct {
	variant, operator, minor int
	paused                   bool
}

// lifeOperator is one process of the operator.
type lifeOperator struct {
	version   string
	joiner    *configure.Joiner
	instances *instance.Instances
	nodes     *node.Nodes
	publishes *publisher
	drains    *drains.Drains
	decoded   *nodelist.Cache
	// seen are the Nodes of the last call of publishes, and a key for the other inputs: watches see them change.
	seen map[string]*corev1.Node
	// last is the last outcome of the rollout, about the inputs that were rendered.
	last outcome
	// read are the inputs that were read last, by what they were read from.
	read    *desired.Hosts
	readFor string
}

func newLifeWorld(t *testing.T) *lifeWorld {
	t.Helper()
	start := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	w := &lifeWorld{ctx: t.Context(), t: t, clock: clocktesting.NewFakeClock(start), start: start, entries: map[string]string{}, layers: map[bundle.Digest]bundle.Layer{}}
	for i := range lifeHosts {
		key, err := ssh.NewPublicKey(lifePrivateKey(10 + byte(i)).Public())
		w.must(err)
		w.hosts = append(w.hosts, &lifeHost{number: i, name: "win-" + strconv.Itoa(i), address: fmt.Sprintf("10.0.140.%d", 30+i), key: key, executables: map[bundle.Digest]bool{}})
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, machinev1beta1.Install} {
		w.must(add(scheme))
	}
	block, err := ssh.MarshalPrivateKey(lifePrivateKey(1), "")
	w.must(err)
	all := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: pem.EncodeToMemory(block)}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: configure.InstancesName}},
	}
	for _, name := range record.ConfigMapNames() {
		all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: name, UID: types.UID(name), Labels: map[string]string{hosts.RecordsLabel: "true"}}})
	}
	all = append(all, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: lifeNamespace, Name: "windows-rejoining-nodes", UID: "rejoining"}})
	w.client = cachedReads(fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build())
	w.pods, err = kubernetes.NewForConfig(&rest.Config{Host: "http://model", Transport: http.RoundTripper(w), QPS: -1})
	w.must(err)
	w.startOperator()
	return w
}

// cachedReads keeps what was read until something is written: the fake client encodes and decodes each object that it returns.
func cachedReads(c client.WithWatch) client.Client {
	var mu sync.Mutex // Nodes are told of their bundles at the same time
	known := map[string]runtime.Object{}
	forget := func() {
		mu.Lock()
		defer mu.Unlock()
		clear(known)
	}
	read := func(into runtime.Object, what string, do func() error) error {
		mu.Lock()
		defer mu.Unlock()
		have, ok := known[what]
		if !ok {
			if err := do(); err != nil {
				return err
			}
			have = into.DeepCopyObject()
			known[what] = have
		}
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(have.DeepCopyObject()).Elem())
		return nil
	}
	return &lifeClient{interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return read(o, fmt.Sprintf("%T %s %s", o, o.GetObjectKind().GroupVersionKind(), key), func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return read(list, fmt.Sprintf("%T %s %v", list, list.GetObjectKind().GroupVersionKind(), opts), func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			defer forget()
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			defer forget()
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer forget()
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			defer forget()
			return c.Delete(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			defer forget()
			return c.SubResource(name).Update(ctx, o, opts...)
		},
	})}
}

// lifeClient is a client that can be compared.
type lifeClient struct{ client.Client }

// lifePrivateKey returns one of 256 keys.
func lifePrivateKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
}

func (w *lifeWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// breakLaw ends a life.
func (w *lifeWorld) breakLaw(format string, args ...any) {
	panic(brokenLaw(fmt.Sprintf(format, args...)))
}

func (w *lifeWorld) elapsed() time.Duration { return w.clock.Now().Sub(w.start) }

// node returns the Node of a host.
func (w *lifeWorld) node(h *lifeHost) (corev1.Node, bool) {
	var n corev1.Node
	err := w.client.Get(w.ctx, client.ObjectKey{Name: h.name}, &n)
	w.must(client.IgnoreNotFound(err))
	return n, err == nil
}

func (w *lifeWorld) isListed(h *lifeHost) bool { return w.entries[h.address] != "" }

// noEvents records no event.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// noCounters count nothing.
type noCounters struct{}

func (noCounters) CountNode(string, time.Duration) {}
func (noCounters) CountMachine(time.Duration)      {}
func (noCounters) CountFailure(string)             {}

// startOperator starts a process, as controller.addControllers does.
func (w *lifeWorld) startOperator() {
	c, now := w.client, w.clock.Now
	op := &lifeOperator{version: fmt.Sprintf("11.%d.0", w.inputs.operator), decoded: &nodelist.Cache{}, seen: map[string]*corev1.Node{}}
	w.op = op
	records := &hosts.Records{Live: c, Client: c, Cache: c, Namespace: lifeNamespace}
	login := &hosts.Login{Live: c, Client: c, Namespace: lifeNamespace, Records: records, RecordKey: bundle.Key(lifeKey)}
	_, err := login.ReadPublicKey(w.ctx)
	w.must(err)
	reaches := &lifeNetwork{w, login}
	executables := configure.NewExecutables(lifePayload(w.inputs.operator))
	versions := func(context.Context) ([]string, error) { return []string{"v1.40.0"}, nil }
	op.joiner = &configure.Joiner{
		Reader: c, Client: c, Inputs: w.read, Login: login, Version: op.version, Log: logr.Discard(), Now: now, Elapsed: w.elapsed, Silence: windowsnode.SilenceByKubelet,
		Hosts:  hosts.New(hosts.Options{Transports: hosts.Transports{Kept: reaches, Fresh: reaches}, Program: remote.Program{Path: `C:\Windows\wmco\wmco-node-0123456789ab.exe`, Sum: "01234567"}}),
		Checks: &configure.Checks{Live: c, Login: login, Versions: versions, Now: now},
		Random: func(p []byte) (int, error) { clear(p); return len(p), nil }, Unjoined: &configure.Unjoined{Elapsed: w.elapsed}, Counters: noCounters{},
	}
	op.instances = &instance.Instances{Joiner: op.joiner, Namespace: lifeNamespace, Events: noEvents{}, Log: logr.Discard()}
	signs := &signing.Keys{Live: c, Client: c, Namespace: lifeNamespace, Now: now}
	told := windowsnode.VerifyWith(signs.OpenDesired)
	op.nodes = node.New(node.Options{
		Decoded: op.decoded, Joiner: op.joiner, Drainer: drain.Drainer{Client: w.pods}, Namespace: lifeNamespace, Payload: executables, Copying: node.CopyPlaces(), ReadDesired: told,
		Events: noEvents{}, Log: logr.Discard(), Clock: w.clock, APITime: func(context.Context) (time.Time, error) { return now(), nil },
	})
	op.drains = &drains.Drains{Drainer: drain.Drainer{Client: w.pods}, Live: c, Enqueue: func(context.Context, string) {}, Changed: func() {}, Events: noEvents{}}
	executor := &steps.Executor{
		Nodes: c, Decoded: op.decoded, Live: c, Client: c, Pods: w.pods, Drains: op.drains, Notary: signs, Namespace: lifeNamespace, Deployment: &corev1.ObjectReference{Name: "operator"}, Events: noEvents{},
		Layers: &layers.Cache{Live: c, Namespace: lifeNamespace}, Log: logr.Discard(), Now: now, Elapsed: w.elapsed, Heartbeats: windowsnode.SilenceByKubelet,
	}
	renders := &renderer{
		read: w.read, nodes: c, decoded: op.decoded, readDesired: told, unjoined: op.joiner.Unjoined, login: login, executables: executables.ChooseFor, servers: versions,
		keeper: &keeper{cache: executor.Layers, readDesired: windowsnode.VerifyWith(signs.OpenNewest), log: logr.Discard()}, layers: executor.Layers, now: now, log: logr.Discard(), count: newRenderCounter(),
	}
	layersTo := &layers.Publisher{Nodes: &lifeClient{c}, Decoded: op.decoded, Layers: &lifeClient{c}, Live: c, Client: c, Known: records.KnownNodes, Namespace: lifeNamespace, Now: now, Elapsed: w.elapsed}
	op.publishes = &publisher{
		inputs: &debouncer{now: now}, pauses: base.NewPauses(logr.Discard()), now: now, log: logr.Discard(), render: renders.renderJoined, publish: layersTo.PublishLayers, roll: executor.RunSteps,
		removeConfirmations: func(context.Context, []windowsnode.Node) []windowsnode.Node { return nil },
		report:              func(_ context.Context, o outcome) (time.Duration, error) { op.last = o; return 0, nil },
	}
}

// lifePayload returns the executables of an operator.
func lifePayload(operator int) payload.Set {
	var set payload.Set
	for _, x := range payload.Table() {
		set.Built = append(set.Built, payload.Built{Name: x.Name, Version: x.Version, Digest: bundle.Of(fmt.Appendf(nil, "%s of %d", x.Name, operator)), Size: 1 << 20})
	}
	return set
}

// lifeClusters are the clusters of the model, which are read once, and lifeObjects their objects.
var lifeClusters, lifeObjects sync.Map

// clusterReader reads the objects of a golden cluster without its hosts, with settings of the model.
type clusterReader struct {
	lifeInputs
	w *lifeWorld
}

// Read implements objects.Reader.
func (r clusterReader) Read(ctx context.Context, wants []objects.Want) (objects.Set, error) {
	r.operator = 0 // which is no object
	if known, ok := lifeObjects.Load(r.lifeInputs); ok {
		return known.(objects.Set), nil //nolint:forcetypeassert // stored below
	}
	clusters := filepath.Join("..", "..", "golden", "clusters")
	paths := []string{filepath.Join(clusters, "common")}
	for _, name := range []string{"controllerconfig", "infrastructure", "machineconfigs"} {
		paths = append(paths, filepath.Join(clusters, "none", name+".yaml"))
	}
	folder := r.w.t.TempDir()
	switch r.minor {
	case 1:
		paths = append(paths, filepath.Join(clusters, "..", "cases", "none-4.22", "version.yaml"))
	case lifeUnknown:
		version := filepath.Join(folder, "version.yaml")
		text := `{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}, "status": {"history": [{"state": "Completed", "version": "5.9.1"}]}}`
		if err := os.WriteFile(version, []byte(text), 0o600); err != nil {
			return objects.Set{}, err
		}
		paths = append(paths, version)
	}
	settings := filepath.Join(folder, "settings.yaml")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "windows-machine-config", "namespace": %q}, "data": {"config.yaml":
"{rollout: {maxUnavailable: 1, canaries: 1, paused: %t}, logs: {size: %dMi}}"}}`, lifeNamespace, r.paused, 10+r.variant)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		return objects.Set{}, err
	}
	set, err := objects.NewPathsReader(append(paths, settings), strings.NewReader("")).Read(ctx, wants)
	lifeObjects.Store(r.lifeInputs, set)
	return set, err
}

// cluster returns the cluster, without hosts.
func (w *lifeWorld) cluster() *desired.Hosts {
	if known, ok := lifeClusters.Load(w.inputs); ok {
		return known.(*desired.Hosts) //nolint:forcetypeassert // stored below
	}
	public, _ := w.op.joiner.Login.PublicKey()
	read, err := desired.ReadHosts(w.ctx, desired.Source{Objects: clusterReader{w.inputs, w}, Set: lifePayload(w.inputs.operator), Key: bundle.Key(lifeKey), LoginKey: public})
	w.must(err)
	if read.Findings.Refused() {
		w.t.Fatalf("the inputs of the model are refused: %v", read.Findings)
	}
	lifeClusters.Store(w.inputs, read)
	return read
}

// read returns the inputs: the cluster, and the hosts as controller/gather reads them from Nodes, records and windows-instances.
func (w *lifeWorld) read(ctx context.Context) (*desired.Hosts, error) {
	nodes, err := w.op.decoded.ListCached(ctx, w.client)
	if err != nil {
		return nil, err
	}
	records, _, err := w.op.joiner.Login.Records.CachedRecords(ctx)
	if err != nil {
		return nil, err
	}
	from := fmt.Sprint(w.inputs, w.entries)
	for _, n := range nodes {
		from += fmt.Sprint(n.Name, n.UID, n.DeletionTimestamp, n.Labels, n.Annotations, n.Status.Addresses)
	}
	for _, id := range records.IDs() {
		r, _ := records.RecordByID(id)
		text, err := r.Encode()
		w.must(err)
		from += text
	}
	if w.op.readFor == from {
		return w.op.read, nil
	}
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: windows-instances, namespace: " + lifeNamespace + "}, data: {"
	for _, address := range slices.Sorted(maps.Keys(w.entries)) {
		text += strconv.Quote(address) + ": " + strconv.Quote(w.entries[address]) + ", "
	}
	all, err := gather.Gather(ctx, objects.NewOverlayReader(clusterReader{w.inputs, w}, objects.NewPathsReader([]string{"-"}, strings.NewReader(text+"}}"))), gather.Options{
		Nodes: nodes, Records: &records, RecordKey: bundle.Key(lifeKey),
	})
	if err != nil {
		return nil, err
	}
	read := *w.cluster()
	read.All, read.Instances, read.Records, read.Reserved = all.Nodes, all.Instances, records, all.Reserved
	w.op.read, w.op.readFor = &read, from
	return &read, nil
}

// play has one thing happen.
func (w *lifeWorld) play(e lifeEvent) {
	h := w.hosts[e.host]
	switch e.what {
	case "join":
		w.join(h)
	case "node":
		w.reconcile(w.op.nodes, h.name)
	case "publish":
		w.publish()
	case "drain":
		w.reconcile(w.op.drains, h.name)
	case "agent":
		w.agent(h)
	case "kubelet":
		w.kubelet(h)
	case "time":
		w.pass(time.Duration(1+e.value*e.value) * time.Second)
	case "entry":
		w.toggleEntry(h)
	case "inputs":
		w.inputs.variant = e.value
	case "operator":
		w.inputs.operator = e.value
		w.startOperator()
	case "minor":
		w.inputs.minor = e.value
	case "pause":
		w.inputs.paused = e.value == 1
	case "budget":
		h.blocked = !h.blocked
	case "power":
		h.off = !h.off
	case "slow":
		h.slow = e.value
	case "lost":
		h.lost = e.value
	case "stop":
		h.stopped = h.digest != ""
	case "existing":
		w.joinByExisting(h, e.value == 1)
	case "adopt":
		if n, ok := w.node(h); ok && published.WaitsForAdoption(n.Annotations) {
			w.annotate(h, published.AdoptAnnotation, published.AdoptTrue)
		}
	case "clear":
		w.inputs.paused = false
		for _, h := range w.hosts {
			h.off, h.blocked, h.slow = false, false, 0
		}
	case "settle":
		w.settle()
	default:
		w.t.Fatalf("unknown event %q", e.what)
	}
}

// reconcile calls a controller for a node or an entry. A conflict is retried by its queue.
func (w *lifeWorld) reconcile(r reconcile.Reconciler, name string) {
	_, err := r.Reconcile(w.ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil && !apierrors.IsConflict(err) {
		w.breakLaw("reconciling %s: %v", name, err)
	}
}

// join has the entry of a host reconciled. A node that this operator joins has no pods before it has joined. One that is removed in its turn of the rollout
// may have some, until the next step of its removal cordons it again.
func (w *lifeWorld) join(h *lifeHost) {
	w.reconcile(w.op.instances, h.address)
	n, ok := w.node(h)
	_, isMarked := n.Annotations[hosts.PinAnnotation]
	if ok && isMarked && w.isListed(h) && !n.Spec.Unschedulable && windowsnode.Decode(n).Life() == windowsnode.LifeNew {
		w.breakLaw("%s has not joined, and is not cordoned", h.name)
	}
}

// publish renders if what watches see has changed, and makes the steps of the rollout.
func (w *lifeWorld) publish() {
	nodes, err := w.op.decoded.ListCached(w.ctx, w.client)
	w.must(err)
	seen := map[string]*corev1.Node{}
	for _, n := range nodes {
		before, ok := w.op.seen[n.Name]
		if !ok || before.UID != n.UID || changesNodeInput(before, n.Node) {
			w.op.publishes.inputs.noteChange()
		}
		seen[n.Name] = n.Node
	}
	key := fmt.Sprint(w.inputs, w.entries)
	seen[key] = &corev1.Node{}
	if _, same := w.op.seen[key]; !same || len(seen) != len(w.op.seen) {
		w.op.publishes.inputs.noteChange()
	}
	w.op.seen = seen
	w.reconcile(w.op.publishes, "everything")
}

// pass lets time pass: kubelets and agents give signs of life, and pods come where they may run.
func (w *lifeWorld) pass(d time.Duration) {
	w.clock.Step(d)
	for _, h := range w.hosts {
		switch n := w.writeReady(h); {
		case n.Name == "":
			h.pods = 0
		case windowsnode.Decode(n).IsReady() && !n.Spec.Unschedulable && len(n.Spec.Taints) == 0:
			h.pods = 2
		}
	}
}

// toggleEntry removes the entry of a host, or adds it again. An entry is not removed between the registration of its Node and the record of which host that
// is: that Node is left to a person, as wmco status shows.
func (w *lifeWorld) toggleEntry(h *lifeHost) {
	if w.isListed(h) {
		n, ok := w.node(h)
		records, err := w.op.joiner.Login.Records.LiveRecords(w.ctx)
		w.must(err)
		if _, recorded := records.OfNode(n.Name, n.UID); ok && !recorded && windowsnode.Decode(n).Life() == windowsnode.LifeNew {
			return
		}
		delete(w.entries, h.address)
	} else {
		w.entries[h.address] = "username=Administrator"
	}
	var cm corev1.ConfigMap
	w.must(w.client.Get(w.ctx, client.ObjectKey{Namespace: lifeNamespace, Name: configure.InstancesName}, &cm))
	cm.Data = w.entries
	w.must(w.client.Update(w.ctx, &cm))
}

// joinByExisting has the existing operator join a host that was no node. It upgrades one node at a time, and ends in the middle of that: before the upgrade
// it labels and cordons the node, and removes the version.
func (w *lifeWorld) joinByExisting(h *lifeHost, removed bool) {
	r, _, err := w.op.joiner.Login.Records.GetRecord(w.ctx, record.OfEntry(h.address))
	w.must(err)
	if _, ok := w.node(h); ok || h.digest != "" || h.off || r.Origin != "" {
		return
	}
	isUpgrading := slices.ContainsFunc(w.hosts, func(h *lifeHost) bool { return h.existing })
	h.existing = true
	w.kubelet(h)
	n, _ := w.node(h)
	n.Labels[published.InstanceLabel], n.Annotations[published.DesiredVersionAnnotation] = "true", "10.0.0"
	if !isUpgrading {
		n.Labels[published.UpgradingLabel], n.Spec.Unschedulable = "true", true
	}
	if isUpgrading || !removed {
		n.Annotations[published.VersionAnnotation] = "10.0.0"
	}
	w.must(w.client.Update(w.ctx, &n))
	if !w.isListed(h) {
		w.toggleEntry(h)
	}
}

// How a node ends.
const (
	endJoined  = "joined"
	endGone    = "gone"
	endForeign = "waits for its adoption"
	// endInterrupted is one that takes a place of maxUnavailable: its row reports that another user has cordoned it.
	endInterrupted = "waits for its adoption, and is cordoned"
	endUnadopted   = "its entry was removed while it is adopted"
	endOff         = "its host is off"
	endDrain       = "its drain is blocked"
	endPaused      = "the rollout is paused"
	endEmpty       = "an empty list was not confirmed"
	endOthers      = "waits for others"
)

// settleRounds is after how many rounds without an event each node is at its end.
const settleRounds = 120

// settle ends events: all do what they do, until each node is at its end. A person who reads that a try has failed asks for another one.
func (w *lifeWorld) settle() []string {
	var ends []string
	var wrong string
	for round := range settleRounds {
		w.pass(time.Minute)
		for _, h := range w.hosts {
			w.kubelet(h)
			w.agent(h)
			w.join(h)
			w.reconcile(w.op.nodes, h.name)
			w.reconcile(w.op.drains, h.name)
		}
		w.publish()
		if ends, wrong = w.ends(); wrong == "" {
			return ends
		}
		if round == settleRounds/2 {
			w.retryFailed()
		}
	}
	w.breakLaw("%s", wrong)
	return nil
}

// retryFailed does what the rows of nodes that have failed say.
func (w *lifeWorld) retryFailed() {
	for _, s := range w.op.last.rollout.Nodes {
		i := slices.IndexFunc(w.hosts, func(h *lifeHost) bool { return h.name == s.Node })
		if s.Phase == plan.PhaseDegraded && i >= 0 {
			w.annotate(w.hosts[i], published.RetryAnnotation, w.clock.Now().Format(time.RFC3339))
		}
	}
}

// ends returns how each node ends. Wrong is why one has not.
func (w *lifeWorld) ends() (ends []string, wrong string) {
	read, err := w.read(w.ctx)
	w.must(err)
	last := w.op.joiner.Unjoined.StatusHosts(configure.ListHosts(read))
	for _, h := range w.hosts {
		end, why := w.endOf(h, read, last)
		if end == "" {
			wrong = cmp.Or(wrong, h.name+": "+why)
		}
		ends = append(ends, end)
	}
	for i, end := range ends {
		isHeld := slices.ContainsFunc(ends, func(other string) bool {
			return other == endOff || other == endDrain || other == endInterrupted || other == endUnadopted
		})
		if end == endOthers && !isHeld {
			wrong = cmp.Or(wrong, w.hosts[i].name+" waits for others, and none of them is kept from anything")
		}
	}
	return ends, wrong
}

// endOf returns how a node ends; empty, and why, if it has not.
func (w *lifeWorld) endOf(h *lifeHost, read *desired.Hosts, last []status.Host) (end, why string) {
	n, ok := w.node(h)
	isListed := w.isListed(h)
	row := status.Host{}
	for _, s := range last {
		if s.Fix != "" && (s.Node == h.name || s.Address == h.address || s.Name == h.address) || s.Name == h.name {
			row = s
		}
	}
	rolled := plan.Status{}
	for _, s := range w.op.last.rollout.Nodes {
		if s.Node == h.name {
			rolled = s
		}
	}
	life := windowsnode.Decode(n).Life()
	switch {
	case !ok && !isListed: // what was applied to a host that never became a node stays there
		return endGone, ""
	case h.off && (row.Fix != "" || ok && !windowsnode.Decode(n).IsReady()):
		return endOff, ""
	case ok && life == windowsnode.LifeForeign && n.Annotations[published.DesiredAnnotation] == "" && (n.Annotations[published.AdoptAnnotation] == "" || !isListed):
		if n.Spec.Unschedulable {
			return endInterrupted, ""
		}
		return endForeign, ""
	case ok && isListed && w.isAtRest(h, n, read):
		return endJoined, ""
	case ok && !isListed && len(w.entries) == 0 && row.Reason == configure.ReasonNotConfirmed && row.Fix != "":
		return endEmpty, ""
	case ok && !isListed && row.Reason == "Adopting" && row.Fix != "":
		return endUnadopted, ""
	case h.blocked && (row.Reason == configure.ReasonDrainBlocked || strings.Contains(rolled.DrainBlocked, "PodDisruptionBudget")):
		return endDrain, ""
	case w.inputs.paused && rolled.Reason == plan.ReasonPaused:
		return endPaused, ""
	case isListed && (life == windowsnode.LifeJoined || life == windowsnode.LifeForeign) && slices.Contains([]plan.Reason{plan.ReasonUnavailable, plan.ReasonCanary, plan.ReasonDrain}, rolled.Reason):
		return endOthers, ""
	}
	report := windowsnode.Decode(n).Report
	return "", fmt.Sprintf("Node %t, entry %t, bundle %s; life %s, cordoned %t, taints %v; report %s about %s; rollout %+v; row %+v; %+v", ok, isListed, h.digest.Short(), life, n.Spec.Unschedulable, n.Spec.Taints,
		report.State, report.Desired.Short(), rolled, row, lifeMarks(n))
}

// lifeMarks are the marks of this operator on a Node, without long texts.
func lifeMarks(n corev1.Node) map[string]string {
	marks := map[string]string{}
	for _, all := range []map[string]string{n.Labels, n.Annotations} {
		for key, value := range all {
			if short, ok := strings.CutPrefix(key, published.Domain); ok && key != published.DesiredAnnotation && key != published.ReportAnnotation {
				marks[short] = value
			}
		}
	}
	return marks
}

// isAtRest reports whether a node is Joined with its wanted bundle, and nothing of a turn, an upgrade or a removal is left on it.
func (w *lifeWorld) isAtRest(h *lifeHost, n corev1.Node, read *desired.Hosts) bool {
	decoded := windowsnode.Decode(n)
	i := slices.IndexFunc(read.All, func(r render.Node) bool { return r.Name == h.name })
	if i < 0 || decoded.Life() != windowsnode.LifeJoined || !decoded.IsReady() || n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || !decoded.Rollout.Slot.IsZero() {
		return false
	}
	for _, left := range []string{published.CordonAnnotation, published.JoiningAnnotation, published.AdoptAnnotation, published.RemoveAnnotation, windowsnode.ScaleDownAnnotation} {
		if _, ok := n.Annotations[left]; ok {
			return false
		}
	}
	if _, ok := n.Labels[published.UpgradingLabel]; ok || n.Annotations[published.VersionAnnotation] != w.op.version {
		return false
	}
	list, _, err := read.RenderBundles([]render.Node{read.All[i]})
	w.must(err)
	return len(list) == 1 && h.digest == list[0].Bundle.Digest && decoded.Report.State == published.StateApplied && decoded.Report.Desired == h.digest && decoded.Desired.Bundle == h.digest
}
