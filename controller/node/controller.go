// Package node has the controller of the Windows Nodes that the operator has recorded: it copies executables, repairs a silent node agent, lets a
// host join again, and removes instances, one step at each call.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/nodestate"
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

// Reasons of events on Nodes.
const (
	EventAgentRepaired = "AgentRepaired"
	EventAgentSilent   = "AgentSilent"
	eventRelabeled     = "NodeRelabeled"

	actionRemove = "Remove"
	actionRepair = "Repair"
)

// retrySilent is how long after an attempt a silent agent is looked at again.
const retrySilent = 10 * time.Minute

// Nodes repairs over SSH what a node agent cannot repair: itself.
type Nodes struct {
	// Reader is a cache of Windows Nodes and of the ConfigMap.
	Reader client.Reader
	// Decoded are the Nodes of the cache; nil decodes each time.
	Decoded   *nodelist.Cache
	Client    client.Client
	Joiner    *configure.Joiner
	Inputs    configure.Inputs
	Hosts     *hosts.Hosts
	Drainer   drain.Drainer
	Namespace string
	// Version is that of the operator.
	Version string
	Payload *configure.Executables
	// Copying are the places of hosts to which executables are copied at the same time.
	Copying *remote.Places
	Events  events.EventRecorder
	Log     logr.Logger
	// Clock is what is waited by, Elapsed how long that has run.
	Clock   clock.Clock
	Elapsed func() time.Duration
	// APITime asks an API server for its time of day: it is the one that accepts the certificate of a kubelet, or refuses it.
	APITime func(context.Context) (time.Time, error)

	// Machines replaces Machines whose hosts refuse the key, where that is asked for.
	Machines MachineReplacer

	// Told returns what this operator has told a Node.
	Told windowsnode.DesiredReader

	// compared is since when adopted hosts have been as they were compared last, permitted since when their turns are permitted.
	compared, permitted configure.Sightings
	// lost is since when kubelets are seen to be lost.
	lost configure.Sightings
	// logins are those that were tried with another key or account, refusing is since when hosts refuse them.
	logins   attempts
	refusing configure.Sightings
	// awaiting is since when the removals of Nodes wait for the first contact with new entries.
	awaiting configure.Sightings
}

// SetupWithManager watches the Windows Nodes, and windows-instances for entries that are removed.
func (n *Nodes) SetupWithManager(m base.Manager) error {
	c, err := m.NewHostController("nodes", n, base.ParallelHosts)
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(m.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}, base.NodeChanges())); err != nil {
		return err
	}
	key := base.NewSignal()
	n.Joiner.Login.OnKeyChange(key.WakeController)
	for _, changed := range []base.Signal{n.Payload.Changed, key} {
		if err := c.Watch(changed.QueueSource(n.enqueueRecorded)); err != nil {
			return err
		}
	}
	return c.Watch(source.Kind(m.GetCache(), base.NewObject(base.ConfigMapKind()), handler.TypedEnqueueRequestsFromMapFunc(n.nodesOfConfig)))
}

// enqueueRecorded requests all Nodes whose hosts are known: other executables are to be copied to them, or they are to accept another key.
func (n *Nodes) enqueueRecorded(q base.Queue) {
	records, _, err := n.Joiner.Login.Records.CachedRecords(context.Background())
	if err != nil {
		n.Log.Info("executables or the private key have changed, and the records of hosts cannot be read: a node is looked at when it changes", "error", err)
		return
	}
	for _, id := range records.IDs() {
		if r, _ := records.RecordByID(id); r.Node != "" {
			q.Add(base.RequestsFor([]string{r.Node})[0])
		}
	}
}

// nodesOfConfig returns the Nodes of instances, one of which may have lost its entry, and those of records that are adopted.
func (n *Nodes) nodesOfConfig(ctx context.Context, config base.Object) []reconcile.Request {
	entries := config.GetName() == configure.InstancesName
	if config.GetLabels()[hosts.RecordsLabel] == "" && !entries {
		return nil
	}
	records, _, err := n.Joiner.Login.Records.CachedRecords(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, id := range records.IDs() {
		if r, _ := records.RecordByID(id); r.Node != "" && (r.Adopting || entries && r.Entry != "") {
			names = append(names, r.Node)
		}
	}
	return base.RequestsFor(names)
}

// Reconcile removes an instance that has no entry any longer, adopts a node of another operator, lets a host join again whose certificate has
// expired, copies executables that a host lacks, confirms another key or account, and repairs a silent node agent.
func (n *Nodes) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	records, _, err := n.Joiner.Login.Records.CachedRecords(ctx)
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
	// What a Node says about itself is not asked: it cannot leave the record, and nothing is done about one that is not in it.
	r, recorded := records.OfNode(node.Name, node.UID)
	if !recorded {
		return reconcile.Result{}, nil
	}
	n.reportAddressConflict(node, r, records)
	removed, why, err := n.isInstanceRemoved(ctx, n.Reader, node, r)
	switch {
	case errors.Is(err, errNotAsked):
		return reconcile.Result{RequeueAfter: configure.AgainDrain}, nil
	case err != nil:
		return reconcile.Result{}, err
	case why != "":
		n.tellUnconfirmed(ctx, node, r, why)
	case removed && r.Adopting && node.Annotations[RemoveAnnotation] != removeForce:
		return n.keepUnadopted(ctx, node, r)
	case removed:
		p, err := n.continueRemoval(ctx, node, r)
		n.tellRemoval(ctx, node, r, p)
		return reconcile.Result{RequeueAfter: p.Again}, err
	default:
		n.Joiner.Unjoined.NoteRemoval(node.Name, "", configure.Progress{})
	}
	n.awaiting.ForgetHost(node.Name)
	if err := n.forgetRemoval(ctx, node, r); err != nil {
		return reconcile.Result{}, err
	}
	decoded := n.Decoded.DecodeCached(*node)
	if r.Adopting {
		return n.continueAdoption(ctx, decoded, r)
	}
	if decoded.IsLost() {
		return n.findExpired(ctx, node)
	}
	n.lost.ForgetHost(node.Name)
	n.Joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name), configure.Progress{State: configure.StateJoined})
	return n.keepNode(ctx, decoded, r)
}

// forgetNode ends what is noted of a Node that no longer exists.
func (n *Nodes) forgetNode(name string) {
	n.Joiner.Unjoined.RecordProgress(configure.LostNodeKey(name), configure.Progress{State: configure.StateGone})
	n.Joiner.Unjoined.NoteRemoval(name, "", configure.Progress{})
	n.awaiting.ForgetHost(name)
	n.lost.ForgetHost(name)
	n.forgetAdoption(name)
	n.forgetLogin(name)
}

// keepNode does for a node that stays what its agent cannot do.
func (n *Nodes) keepNode(ctx context.Context, decoded windowsnode.Node, r record.Record) (reconcile.Result, error) {
	later, done, err := n.continueUpgrade(ctx, decoded)
	if done || err != nil {
		return later, err
	}
	login, err := n.continueLogin(ctx, decoded, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	// An agent is repaired also where executables could not be copied.
	result := n.repairSilent(ctx, decoded)
	for _, again := range []time.Duration{later.RequeueAfter, login} {
		if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	return result, nil
}

// readNode returns the Node that was decoded for all. It is only read: what is written is a patch.
func (n *Nodes) readNode(ctx context.Context, name string) (*corev1.Node, error) {
	decoded, err := n.Decoded.ReadCached(ctx, n.Reader, name)
	if err != nil {
		return nil, err
	}
	return decoded.Node, nil
}

// findRelabeled returns a recorded Node that calls itself one of another operating system, nil if there is none: it would leave the operator's
// caches, and could not be removed. It gets its label back.
func (n *Nodes) findRelabeled(ctx context.Context, name string, records record.Set) (*corev1.Node, error) {
	r, known := records.RecordOfNode(name)
	if !known {
		return nil, nil
	}
	var node corev1.Node
	if err := n.Joiner.Login.Live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil || !r.IsNode(node.Name, node.UID) || node.Labels[corev1.LabelOSStable] == "windows" {
		return nil, client.IgnoreNotFound(err)
	}
	if _, err := (configure.Host{Joiner: n.Joiner}).WriteMarks(ctx, &node, configure.Marks{Labels: map[string]string{corev1.LabelOSStable: "windows"}}); err != nil {
		return nil, err
	}
	n.recordEvent(&node, corev1.EventTypeWarning, eventRelabeled, actionRepair, "the Node had another label "+corev1.LabelOSStable+" than windows, which its kubelet, or whoever has the kubelet's certificate, has written; it was written back; fix: look at the host")
	return configure.ReadNode(ctx, n.Joiner.Login.Live, name)
}

// reportAddressConflict says that a Node reports the address of another host.
func (n *Nodes) reportAddressConflict(node *corev1.Node, r record.Record, records record.Set) {
	for _, a := range configure.InternalAddresses(node) {
		// A Machine that is being deleted keeps its address in its record.
		if other, ok := records.RecordAtAddress(a); ok && other.ID() != r.ID() && a != r.Address {
			n.recordEvent(node, corev1.EventTypeWarning, reason.AddressClaimed, configure.ActionJoin, fmt.Sprintf("the Node reports the address %s, which is that of %s (node %s); it is ignored; fix: look at the host of this Node: its kubelet, or whoever has the kubelet's certificate, has written that", a, other, other.Node))
		}
	}
}

// recordEvent says something on a Node. Events with the same reason and action are one for client-go, which keeps the first message.
func (n *Nodes) recordEvent(node *corev1.Node, kind, reason, action, message string) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	n.Events.Eventf(ref, nil, kind, reason, action, "%s", published.Shorten(message))
}

// repairSilent repairs an agent that has not reported for half an hour while the kubelet lives.
func (n *Nodes) repairSilent(ctx context.Context, node windowsnode.Node) reconcile.Result {
	row := fleet.Of(node, n.Joiner.Silence)
	switch {
	case row.Reported.IsZero() && !node.IsJoined():
		// The join applies the bundle over SSH again.
		return reconcile.Result{}
	case row.Reported.IsZero() && !node.IsReady():
		return reconcile.Result{} // the Node's next change is seen
	case row.State != nodestate.NotReporting, row.Reported.IsZero() && n.Joiner.Silence(node) <= published.SilentAfter:
		left := published.SilentAfter - n.Joiner.Silence(node)
		if left < 0 {
			// The kubelet is not Ready, or nothing is published: the Node's next change is seen.
			return reconcile.Result{}
		}
		return reconcile.Result{RequeueAfter: left + time.Second}
	}
	repairing, end := n.Joiner.Unjoined.BeginWork(ctx, node.Name, configure.RepairAgent())
	message, err := n.repairHost(repairing, node.Name)
	end()
	if hosts.IsHostBusy(err) {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}
	}
	if err != nil {
		text := err.Error()
		if fix := remote.SuggestFix(err); fix != "" {
			text += "; fix: " + fix
		}
		n.Log.Info("repairing a silent node agent", "node", node.Name, "error", err)
		n.recordEvent(node.Node, corev1.EventTypeWarning, EventAgentSilent, actionRepair, "the node agent is silent, and could not be repaired over SSH: "+text)
		return reconcile.Result{RequeueAfter: retrySilent}
	}
	n.Log.Info("repaired a silent node agent", "node", node.Name, "result", message)
	n.recordEvent(node.Node, corev1.EventTypeNormal, EventAgentRepaired, actionRepair, "the node agent was silent; over SSH: "+message)
	return reconcile.Result{RequeueAfter: retrySilent}
}

// errNotListed says that no Machine and no entry of windows-instances has the host, so that its account is not known.
var errNotListed = errors.New("no Machine and no entry of windows-instances is for this node, so its account is not known; start the service " + bundle.AgentService + " on the host")

// applyRequest returns where the host of a node is, and what renders its bundle.
func (n *Nodes) applyRequest(ctx context.Context, name string) (hosts.Wish, error) {
	h, err := n.findHost(ctx, name)
	if err != nil {
		return hosts.Wish{}, err
	}
	return h.ApplyRequest()
}

// findHost returns the host of a node.
func (n *Nodes) findHost(ctx context.Context, name string) (configure.Host, error) {
	inputs, err := n.Inputs(ctx)
	if err != nil {
		return configure.Host{}, err
	}
	i := slices.IndexFunc(inputs.All, func(h render.Node) bool { return h.Name == name })
	if i < 0 {
		return configure.Host{}, errNotListed
	}
	h := configure.Host{Joiner: n.Joiner, Node: inputs.All[i], Wanted: inputs}
	if configure.LoginAccount(h.Node, inputs.Cluster.Platform) == "" {
		return configure.Host{}, errNotListed
	}
	return h, nil
}

// repairHost restores what was applied last, from what the host keeps: what is published may need a permission that it does not have. It
// returns what was done.
func (n *Nodes) repairHost(ctx context.Context, name string) (string, error) {
	w, err := n.applyRequest(ctx, name)
	if err != nil {
		return "", err
	}
	w.MaxImpact = bundle.ImpactRestart
	event, err := n.Hosts.RepairHost(ctx, w)
	if err != nil {
		return "", err
	}
	switch event.Result {
	case applier.ResultSame:
		return "", fmt.Errorf("nothing differs on the host, and the service %s runs; read its log under C:\\var\\log\\wicd", bundle.AgentService)
	case applier.ResultApplied:
		return fmt.Sprintf("%s written, %s started", bundle.Count(event.Written, "file"), bundle.Count(event.Restarted, "service")), nil
	case applier.ResultPlanned, applier.ResultPartial, applier.ResultRolledBack, applier.ResultRefused, applier.ResultReboot, applier.ResultHandedOver:
	}
	return "", fmt.Errorf("%s: %s", event.Result, event.Message)
}
