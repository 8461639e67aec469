// Package node has the controller of recorded Windows Nodes: it copies executables, repairs a silent node agent, lets a
// host join again, and removes instances, one step at each call.
package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/applier/remote"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/fleet"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/nodelist"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// eventRelabeled is the reason of an Event about a Node that called itself one of another operating system.
const eventRelabeled = "NodeRelabeled"

// Options are what the controller works with.
type Options struct {
	// Decoded are the Nodes of the cache; nil decodes each time.
	Decoded   *nodelist.Cache
	Joiner    *configure.Joiner
	Drainer   drain.Drainer
	Namespace string
	Payload   *configure.Executables
	// Copying are the places of hosts to which executables are copied at the same time.
	Copying *remote.Places
	Events  events.EventRecorder
	Log     logr.Logger
	Clock   clock.Clock
	// APITime asks an API server for its time of day.
	APITime func(context.Context) (time.Time, error)
	// Machines replaces Machines whose hosts refuse the key, where that is asked for.
	Machines MachineReplacer
	// ReadDesired returns the desired state of a Node that this operator has signed.
	ReadDesired windowsnode.DesiredReader
	// Signer signs removals.
	Signer Signer
}

// Nodes does for Nodes, over SSH, what their agents cannot do. Each job is a type of its own; Reconcile decides which one
// has its turn.
type Nodes struct {
	joiner  *configure.Joiner
	decoded *nodelist.Cache
	events  nodeEvents
	log     logr.Logger

	remover  remover
	adopter  adopter
	rejoiner rejoiner
	upgrader upgrader
	logins   loginConfirmer
	repairer agentRepairer
}

// New returns the controller.
func New(o Options) *Nodes {
	recorder := nodeEvents{o.Events}
	n := &Nodes{
		joiner: o.Joiner, decoded: o.Decoded, events: recorder, log: o.Log,
		remover: remover{joiner: o.Joiner, drainer: o.Drainer, namespace: o.Namespace, events: recorder, log: o.Log,
			agents: agentRemovals{joiner: o.Joiner, readDesired: o.ReadDesired, signer: o.Signer}},
		adopter:  adopter{joiner: o.Joiner, readDesired: o.ReadDesired, clock: o.Clock, events: recorder, log: o.Log},
		rejoiner: rejoiner{joiner: o.Joiner, namespace: o.Namespace, apiTime: o.APITime, events: recorder, log: o.Log},
		upgrader: upgrader{joiner: o.Joiner, payload: o.Payload, copying: o.Copying, events: recorder, log: o.Log,
			fetching: fetches{countHosts: o.Payload.CountHosts, silence: o.Joiner.Silence, elapsed: o.Joiner.Elapsed, list: func(ctx context.Context) ([]windowsnode.Node, error) {
				return o.Decoded.ListCached(ctx, o.Joiner.Reader)
			}}},
		logins: loginConfirmer{joiner: o.Joiner, namespace: o.Namespace, machines: o.Machines,
			events: recorder, log: o.Log},
		repairer: agentRepairer{joiner: o.Joiner, events: recorder, log: o.Log},
	}
	n.adopter.upgrader = &n.upgrader
	o.Payload.CountNodes = n.upgrader.fetching.countNodes
	return n
}

// SetupWithManager watches the Windows Nodes, and windows-instances for entries that are removed.
func (n *Nodes) SetupWithManager(m base.Manager) error {
	c, err := m.NewHostController("node", n, base.ParallelHosts)
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(m.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{},
		base.NodeChanges())); err != nil {
		return err
	}
	key := base.NewSignal()
	n.joiner.Login.OnKeyChange(key.WakeController)
	for _, changed := range []base.Signal{n.upgrader.payload.Changed, key} {
		if err := c.Watch(changed.QueueSource(n.enqueueRecorded)); err != nil {
			return err
		}
	}
	return c.Watch(source.Kind(m.GetCache(), base.NewObject(base.ConfigMapKind()),
		handler.TypedEnqueueRequestsFromMapFunc(n.nodesOfConfig)))
}

// enqueueRecorded requests all Nodes whose hosts are known: other executables are to be copied to them, or they are to
// accept another key.
func (n *Nodes) enqueueRecorded(q base.Queue) {
	records, _, err := n.joiner.Login.Records.CachedRecords(context.Background())
	if err != nil {
		n.log.Info("executables or the private key have changed, and the records of hosts cannot be read: a node is "+
			"looked at when it changes", "error", err)
		return
	}
	for _, id := range records.IDs() {
		if r, _ := records.RecordByID(id); r.Node != "" {
			q.Add(base.RequestsFor([]string{r.Node})[0])
		}
	}
}

// nodesOfConfig returns the Nodes of instances, one of which may have lost its entry, those of records that are adopted,
// and all of them for settings, which may ask for logins.
func (n *Nodes) nodesOfConfig(ctx context.Context, config base.Object) []reconcile.Request {
	entries, settings := config.GetName() == configure.InstancesName, config.GetName() == render.SettingsConfigMap
	if config.GetLabels()[hosts.RecordsLabel] == "" && !entries && !settings {
		return nil
	}
	records, _, err := n.joiner.Login.Records.CachedRecords(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, id := range records.IDs() {
		if r, _ := records.RecordByID(id); r.Node != "" && (settings || r.Adopting || entries && r.Entry != "") {
			names = append(names, r.Node)
		}
	}
	return base.RequestsFor(names)
}

// Reconcile removes an instance that has no entry any longer, adopts a node of another operator, lets a host join again
// whose certificate has expired, copies executables that a host lacks, confirms another key or account, and repairs a
// silent node agent.
func (n *Nodes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	records, _, err := n.joiner.Login.Records.CachedRecords(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	node, err := n.readNode(ctx, req.Name)
	if apierrors.IsNotFound(err) {
		node, err = n.findRelabeled(ctx, req.Name, records)
	}
	if node == nil || err != nil {
		n.forgetNode(req.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// A Node's own annotations are not asked: it cannot leave the record, and nothing is done about one that is not
	// in it.
	r, recorded := records.OfNode(node.Name, node.UID)
	if !recorded {
		return reconcile.Result{}, nil
	}
	n.reportAddressConflict(node, r, records)
	decoded := n.decoded.DecodeCached(*node)
	if n.joiner.IsEnding(decoded) {
		return n.removeInstance(ctx, decoded, r)
	}
	removed, why, err := n.remover.isInstanceRemoved(ctx, n.joiner.Reader, node, r)
	switch {
	case errors.Is(err, errNotAsked):
		return reconcile.Result{RequeueAfter: configure.AgainDrain}, nil
	case err != nil:
		return reconcile.Result{}, err
	case why != "":
		n.remover.reportUnconfirmed(ctx, node, r, why)
	case removed && r.Adopting && node.Annotations[RemoveAnnotation] != removeForce:
		return n.keepUnadopted(ctx, node, r)
	case removed:
		return n.removeInstance(ctx, decoded, r)
	default:
		n.joiner.Unjoined.NoteRemoval(node.Name, "", configure.Progress{})
	}
	n.remover.awaiting.ForgetHost(node.Name)
	if err := n.remover.forgetRemoval(ctx, node, r); err != nil {
		return reconcile.Result{}, err
	}
	if r.Adopting {
		return n.adopter.continueAdoption(ctx, decoded, r)
	}
	if decoded.IsLost() {
		return n.rejoiner.findExpired(ctx, node)
	}
	n.rejoiner.lost.ForgetHost(node.Name)
	n.joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name), configure.Progress{State: configure.StateJoined})
	return n.keepNode(ctx, decoded, r)
}

// removeInstance does the next step of a removal.
func (n *Nodes) removeInstance(ctx context.Context, node windowsnode.Node, r record.Record) (reconcile.Result, error) {
	p, err := n.remover.continueRemoval(ctx, node, r)
	n.remover.reportRemoval(ctx, node.Node, r, p)
	return reconcile.Result{RequeueAfter: p.Again}, err
}

// forgetNode drops the notes of a Node that no longer exists.
func (n *Nodes) forgetNode(name string) {
	n.joiner.Unjoined.RecordProgress(configure.LostNodeKey(name), configure.Progress{State: configure.StateGone})
	n.joiner.Unjoined.NoteRemoval(name, "", configure.Progress{})
	n.remover.awaiting.ForgetHost(name)
	n.remover.agents.seen.ForgetHost(name)
	n.rejoiner.lost.ForgetHost(name)
	n.adopter.forgetAdoption(name)
	n.logins.forgetLogin(name)
	n.upgrader.fetching.forgetNode(name)
}

// keepNode does for a node that stays what its agent cannot do.
func (n *Nodes) keepNode(ctx context.Context, decoded windowsnode.Node, r record.Record) (reconcile.Result, error) {
	later, done, err := n.upgrader.continueUpgrade(ctx, decoded)
	if done || err != nil {
		return later, err
	}
	login, err := n.logins.continueLogin(ctx, decoded, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	// An agent is repaired also where executables could not be copied.
	result := n.repairer.repairSilent(ctx, decoded)
	for _, again := range []time.Duration{later.RequeueAfter, login} {
		if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	return result, nil
}

// readNode returns the Node that was decoded for all. It is only read: writes are patches.
func (n *Nodes) readNode(ctx context.Context, name string) (*corev1.Node, error) {
	decoded, err := n.decoded.ReadCached(ctx, n.joiner.Reader, name)
	if err != nil {
		return nil, err
	}
	return decoded.Node, nil
}

// findRelabeled returns a recorded Node that calls itself one of another operating system, nil if there is none: it
// would leave the operator's caches, and could not be removed. It gets its label back.
func (n *Nodes) findRelabeled(ctx context.Context, name string, records record.Set) (*corev1.Node, error) {
	r, known := records.RecordOfNode(name)
	if !known {
		return nil, nil
	}
	var node corev1.Node
	if err := n.joiner.Login.Live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil ||
		!r.IsNode(node.Name, node.UID) || node.Labels[corev1.LabelOSStable] == "windows" {
		return nil, client.IgnoreNotFound(err)
	}
	if _, err := n.joiner.WriteMarks(ctx, &node,
		configure.Marks{Labels: map[string]string{corev1.LabelOSStable: "windows"}}); err != nil {
		return nil, err
	}
	n.events.recordOnNode(&node, corev1.EventTypeWarning, eventRelabeled, actionRepair,
		"the Node had another label "+corev1.LabelOSStable+" than windows, which its kubelet, or whoever has the "+
			"kubelet's certificate, has written; it was written back; fix: look at the host")
	return configure.ReadNode(ctx, n.joiner.Login.Live, name)
}

// reportAddressConflict reports that a Node has the address of another host.
func (n *Nodes) reportAddressConflict(node *corev1.Node, r record.Record, records record.Set) {
	for _, a := range configure.InternalAddresses(node) {
		// A Machine that is being deleted keeps its address in its record.
		if other, ok := records.RecordAtAddress(a); ok && other.ID() != r.ID() && a != r.Address {
			n.events.recordOnNode(node, corev1.EventTypeWarning, reason.AddressClaimed, configure.ActionJoin,
				fmt.Sprintf("the Node reports the address %s, which is that of %s (node %s); it is ignored; fix: "+
					"look at the host of this Node: its kubelet, or whoever has the kubelet's certificate, has written that", a, other, other.Node))
		}
	}
}

// keepUnadopted is for a Node whose entry was removed before it was adopted. Its host cannot be cleaned up: no bundle
// lists what is there.
func (n *Nodes) keepUnadopted(ctx context.Context, node *corev1.Node, r record.Record) (reconcile.Result, error) {
	if node.Annotations[published.DesiredAnnotation] == "" {
		n.joiner.Unjoined.NoteRemoval(node.Name, "", configure.Progress{})
		return reconcile.Result{}, n.adopter.withdrawAdoption(ctx, windowsnode.Decode(*node), r)
	}
	p := configure.Progress{
		State: configure.StateFailed, Reason: fleet.ReasonAdopting, Again: configure.AgainLater,
		Message: "its entry was removed while the node is adopted; what the existing operator has left on its host can be removed when it is adopted",
		Fix: "write the entry " + r.Entry + " to " + configure.InstancesName +
			" again, and remove it when wmco status shows the node as Updated; or, if the host no longer exists, oc " +
			"annotate --overwrite node " + node.Name + " " + RemoveAnnotation + "=" + removeForce,
	}
	n.remover.reportRemoval(ctx, node, r, p)
	return reconcile.Result{RequeueAfter: p.Again}, nil
}
