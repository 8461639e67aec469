package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/applier/remote"
	"wmco/bundle/published"
	"wmco/controller/drain"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/join"
	"wmco/controller/keys"
	"wmco/controller/record"
)

// parallelHosts is how many hosts of one kind are worked on at the same time. One without progress does not count (remote.Places).
const parallelHosts = 16

// parallelCopies is to how many hosts executables are copied at the same time: each gets up to 150 MB.
const parallelCopies = 4

// copying are the places of hosts that get executables. None of them waits for an open one: whether there is a place is asked before.
func copying() *remote.Places {
	limits := remote.DefaultLimits().Places(parallelCopies)
	limits.Asking, limits.Open = math.MaxInt, math.MaxInt
	return remote.NewPlaces(limits)
}

// The kinds that are watched here.
func kindNode() schema.GroupVersionKind    { return corev1.SchemeGroupVersion.WithKind("Node") }
func kindMachine() schema.GroupVersionKind { return machinev1beta1.GroupVersion.WithKind("Machine") }
func kindConfig() schema.GroupVersionKind  { return corev1.SchemeGroupVersion.WithKind("ConfigMap") }
func kindCSR() schema.GroupVersionKind {
	return certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
}

// joining is what works on hosts.
type joining struct {
	leading
	options Options
	joiner  *join.Joiner
}

// addJoining adds what is done over SSH: hosts become nodes, and silent node agents are repaired.
func addJoining(ctx context.Context, m leading, o Options, p publishing) error {
	read, records, say := p.read, p.records, p.say
	if o.Hosts == nil {
		return nil
	}
	login := &hosts.Login{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Records: records}
	discovered, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return err
	}
	versions := func(context.Context) ([]string, error) {
		v, err := discovered.ServerVersion()
		if err != nil {
			return nil, err
		}
		return []string{v.GitVersion}, nil
	}
	j := joining{leading: m, options: o, joiner: &join.Joiner{
		Checks: &join.Checks{Live: m.GetAPIReader(), Login: login, Versions: versions, Payload: o.Payload, Now: o.Now},
		Reader: m.GetClient(), Client: m.GetClient(), Inputs: read, Hosts: o.Hosts(login).GuardedBy(m.mayChange()), Login: login, Version: o.Version,
		Log: o.Log.WithName("join"), Now: o.Now, Silence: o.Silence, Random: rand.Read, Unjoined: say.unjoined, Counters: say.counters,
	}}
	for _, add := range []func() error{j.addNodes, j.addInstances, j.addApprover, j.addUserData, j.addCluster} {
		if err := add(); err != nil {
			return err
		}
	}
	collector, err := j.addCollector()
	if err != nil {
		return err
	}
	// Machines join when the cluster serves them.
	wanted := slices.DeleteFunc(gather.Wants(o.Namespace), func(w objects.Want) bool { return kindOf(w) != kindMachine() })
	return m.kinds.begin(ctx, wanted, func() error { return errors.Join(j.addMachines(), j.collectMachines(collector)) })
}

// reaching is controller for reconcilers that reach hosts: there are workers for all hosts that may be open, and for what needs no host.
func (j joining) reaching(name string, r reconcile.Reconciler) (controller.Controller, error) {
	limits := remote.DefaultLimits().Places(parallelHosts)
	reaches, queue := newReaching(r, limits)
	c, err := j.controller(name, reaches, limits.Open+parallelHosts)
	if err != nil {
		return nil, err
	}
	return c, c.Watch(queue)
}

func of(kind schema.GroupVersionKind) object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// addNodes removes instances, and repairs silent agents.
func (j joining) addNodes() error {
	clients, err := kubernetes.NewForConfigAndClient(j.GetConfig(), j.GetHTTPClient())
	if err != nil {
		return err
	}
	c, err := j.reaching("nodes", &join.Nodes{
		Reader: j.GetClient(), Client: j.GetClient(), Joiner: j.joiner, Inputs: j.joiner.Inputs, Hosts: j.joiner.Hosts, Drainer: drain.Drainer{Client: clients},
		Namespace: j.options.Namespace, Version: j.options.Version, Payload: j.options.Payload.Digest(), Copying: copying(),
		Events: j.GetEventRecorder(operatorName), Log: j.options.Log.WithName("nodes"), Elapsed: j.options.Elapsed, APITime: apiTime(j),
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(j.GetCache(), of(kindNode()), &handler.TypedEnqueueRequestForObject[object]{}, kept())); err != nil {
		return err
	}
	return c.Watch(source.Kind(j.GetCache(), of(kindConfig()), handler.TypedEnqueueRequestsFromMapFunc(j.instanceNodes)))
}

// kept passes what a Node says besides the kubelet's own signs of life: with each of those, a host that cannot be reached would be tried
// again.
func kept() predicate.TypedPredicate[object] {
	return predicate.TypedFuncs[object]{UpdateFunc: func(e event.TypedUpdateEvent[object]) bool {
		return !reflect.DeepEqual(keptOf(e.ObjectOld), keptOf(e.ObjectNew))
	}}
}

// keptOf returns the labels, annotations and addresses of a Node, whether its kubelet is Ready, and the last sign of life of its node agent.
func keptOf(node object) map[string]any {
	all := map[string]any{"labels": node.GetLabels(), "annotations": node.GetAnnotations(), "addresses": addressesOf(node)}
	conditions, _, _ := unstructured.NestedSlice(node.Object, "status", "conditions")
	for _, c := range conditions {
		switch m, _ := c.(map[string]any); m["type"] {
		case string(corev1.NodeReady):
			all["ready"] = m["status"]
		case published.Condition:
			all["agent"] = m["lastHeartbeatTime"]
		}
	}
	return all
}

// instanceNodes returns the Nodes of instances, one of which may have lost its entry.
func (j joining) instanceNodes(ctx context.Context, config object) []reconcile.Request {
	if config.GetName() != join.InstancesName {
		return nil
	}
	records, _, err := j.joiner.Login.Records.Cached(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, id := range records.IDs() {
		if r, _ := records.Get(id); r.Entry != "" && r.Node != "" {
			names = append(names, r.Node)
		}
	}
	return requestsFor(names)
}

func (j joining) addMachines() error {
	c, err := j.reaching("machines", &join.Machines{
		Joiner: j.joiner, Reader: j.GetClient(), Live: j.GetAPIReader(), Client: j.GetClient(), Events: j.GetEventRecorder(operatorName),
		Replacements: join.Replacements{Live: j.GetAPIReader(), Client: j.GetClient(), Namespace: j.options.Namespace},
		Log:          j.options.Log.WithName("machines"), Now: j.options.Now, Elapsed: j.options.Elapsed,
	})
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(j.GetCache(), of(kindMachine()), &handler.TypedEnqueueRequestForObject[object]{})); err != nil {
		return err
	}
	return c.Watch(source.Kind(j.GetCache(), of(kindNode()), handler.TypedEnqueueRequestsFromMapFunc(j.machinesOf), unjoined()))
}

// unjoined passes Nodes that the operator has not finished with, and those that are gone: their hosts join again.
func unjoined() predicate.TypedPredicate[object] {
	p := predicate.NewTypedPredicateFuncs(func(u object) bool { return !join.IsJoined(u.GetAnnotations()) })
	p.DeleteFunc = func(event.TypedDeleteEvent[object]) bool { return true }
	return p
}

// recordOf returns the record of the host that is, or was, a Node of this name; zero where there is none.
func (j joining) recordOf(ctx context.Context, node object) record.Record {
	records, _, err := j.joiner.Login.Records.Cached(ctx)
	if err != nil {
		return record.Record{}
	}
	r, _ := records.Named(node.GetName())
	return r
}

// machinesOf returns the Machine of the Node, and those with an address that it reports: one of them may be its own, and has to be asked.
func (j joining) machinesOf(ctx context.Context, node object) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineList"))
	if err := j.GetClient().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil
	}
	names, own := addressesOf(node), j.recordOf(ctx, node).Machine
	var requests []reconcile.Request
	for _, m := range list.Items {
		if own != "" && m.GetUID() == own || slices.ContainsFunc(addressesOf(&m), func(a string) bool { return slices.Contains(names, a) }) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
		}
	}
	return requests
}

// addressesOf returns the addresses and names in a status.
func addressesOf(u object) []string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
	var all []string
	for _, a := range list {
		if m, ok := a.(map[string]any); ok {
			text, _ := m["address"].(string)
			all = append(all, strings.ToLower(text))
		}
	}
	return all
}

func (j joining) addInstances() error {
	c, err := j.reaching("instances", &join.Instances{
		Joiner: j.joiner, Namespace: j.options.Namespace, Events: j.GetEventRecorder(operatorName), Log: j.options.Log.WithName("instances"),
	})
	if err != nil {
		return err
	}
	entries := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, u object) []reconcile.Request {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if u.GetName() != join.InstancesName {
			return nil
		}
		return requestsFor(slices.Sorted(maps.Keys(data)))
	})
	if err := c.Watch(source.Kind(j.GetCache(), of(kindConfig()), entries)); err != nil {
		return err
	}
	return c.Watch(source.Kind(j.GetCache(), of(kindNode()), handler.TypedEnqueueRequestsFromMapFunc(j.instancesOf), unjoined()))
}

func requestsFor(names []string) []reconcile.Request {
	var list []reconcile.Request
	for _, n := range names {
		list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Name: n}})
	}
	return list
}

// instancesOf returns the entry of the Node, and those with an address that it reports.
func (j joining) instancesOf(ctx context.Context, node object) []reconcile.Request {
	u := of(kindConfig())
	if err := j.GetClient().Get(ctx, client.ObjectKey{Namespace: j.options.Namespace, Name: join.InstancesName}, u); err != nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	names := append(addressesOf(node), j.recordOf(ctx, node).Entry)
	return requestsFor(slices.DeleteFunc(slices.Sorted(maps.Keys(data)), func(entry string) bool { return !slices.Contains(names, strings.ToLower(entry)) }))
}

// addApprover approves certificate signing requests. They are watched as metadata: the one that is judged is read without a cache.
func (j joining) addApprover() error {
	c, err := j.reaching("certificates", &join.Approver{
		Inputs: j.joiner.Inputs, Hosts: j.joiner.Hosts, Records: j.joiner.Login.Records, Resolver: j.options.Resolver, Live: j.GetAPIReader(), Client: j.GetClient(),
		Namespace: j.options.Namespace, Events: j.GetEventRecorder(operatorName), Log: j.options.Log.WithName("certificates"), Elapsed: j.options.Elapsed,
	})
	if err != nil {
		return fmt.Errorf("approving certificates: %w", err)
	}
	csr := &metav1.PartialObjectMetadata{}
	csr.SetGroupVersionKind(kindCSR())
	return c.Watch(source.Kind(j.GetCache(), csr, &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{}))
}

// addCollector forgets hosts that are gone: whenever something is, and at the start.
func (j joining) addCollector() (controller.Controller, error) {
	c, err := j.controller("collector", &join.Collector{Live: j.GetAPIReader(), Login: j.joiner.Login, Namespace: j.options.Namespace, Log: j.options.Log.WithName("collector")}, parallelHosts)
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.Watch(source.Kind(j.GetCache(), of(kindNode()), toAll(), isGone())), c.Watch(source.Kind(j.GetCache(), of(kindConfig()), toAll())), c.Watch(atStart()))
}

// collectMachines has the collector forget the hosts of Machines that are gone.
func (j joining) collectMachines(c controller.Controller) error {
	return c.Watch(source.Kind(j.GetCache(), of(kindMachine()), toAll(), isGone()))
}

// toAll requests everything.
func toAll() handler.TypedEventHandler[object, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, object) []reconcile.Request { return requestsFor([]string{"all"}) })
}

// isGone passes deletions.
func isGone() predicate.TypedPredicate[object] {
	return predicate.TypedFuncs[object]{
		CreateFunc:  func(event.TypedCreateEvent[object]) bool { return false },
		UpdateFunc:  func(event.TypedUpdateEvent[object]) bool { return false },
		GenericFunc: func(event.TypedGenericEvent[object]) bool { return false },
	}
}

// addUserData keeps the user data of new Machines. The private key alone is watched, in a cache of its own.
func (j joining) addUserData() error {
	c, err := j.controller("userdata", &join.UserData{
		Reader: j.GetClient(), Live: j.GetAPIReader(), Client: j.GetClient(), Policies: policies(j, j.options.Namespace), Say: j.sayAs(join.Owner + "-userdata"), Login: j.joiner.Login, Events: j.GetEventRecorder(operatorName), Log: j.options.Log.WithName("userdata"),
	}, parallelHosts)
	if err != nil {
		return err
	}
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", keys.SecretName), Namespaces: map[string]cache.Config{j.options.Namespace: {}}}
	secrets, err := cache.New(j.GetConfig(), cache.Options{Scheme: j.GetScheme(), Mapper: j.GetRESTMapper(), HTTPClient: j.GetHTTPClient(), NewInformer: newInformer, ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: only}})
	if err != nil {
		return err
	}
	if err := j.Add(secrets); err != nil {
		return err
	}
	once := handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *corev1.Secret) []reconcile.Request { return requestsFor([]string{"all"}) })
	if err := c.Watch(source.Kind(secrets, &corev1.Secret{}, once)); err != nil {
		return err
	}
	// At the start, also without the Secret.
	return c.Watch(atStart())
}

// atStart requests once, when the operator starts.
func atStart() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		q.Add(requestsFor([]string{"all"})[0])
		return nil
	})
}
