package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// RemoveAnnotation of a Node removes an instance although the ConfigMap is gone, or its host cannot be cleaned up.
const RemoveAnnotation = published.RemoveAnnotation

const removeForce = "force"

// giveUpPods is how long after the time at which a pod had to end the removal of its node waits for it: a kubelet that
// does not end its pods does not keep its host from being removed.
const giveUpPods = 10 * time.Minute

// Reasons of events about a removal.
const (
	eventTeardown      = "InstanceTeardown"
	eventRemovalBegins = "InstanceRemovalStarted"
	eventRemovalWaits  = "InstanceRemovalWaiting"
	reasonCordoned     = "Cordoned"
	reasonDraining     = "Draining"
	// eventForgotten is for an annotation that would remove the instance the next time that its entry is gone.
	eventForgotten = "RemovalForgotten"

	actionRemove = "Remove"
)

// remover removes instances whose entry was removed.
type remover struct {
	joiner    *configure.Joiner
	drainer   drain.Drainer
	namespace string
	events    nodeEvents
	log       logr.Logger
	// awaiting is since when the removals of Nodes wait for the first contact with new entries.
	awaiting configure.Sightings
}

// isInstanceRemoved reports whether the instance of a record was removed from windows-instances. A ConfigMap that is
// deleted or empty removes nothing: that is more often a mistake.
func (rm *remover) isInstanceRemoved(ctx context.Context, from client.Reader, node *corev1.Node,
	r record.Record) (removed bool, why string, err error) {
	if r.Entry == "" {
		return false, "", nil
	}
	var instances corev1.ConfigMap
	if err := from.Get(ctx, client.ObjectKey{Namespace: rm.namespace, Name: configure.InstancesName},
		&instances); client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("reading ConfigMap %s: %w", configure.InstancesName, err)
	}
	entries := instances.Data
	for entry := range entries {
		if isEntryOf(r, entry) {
			return false, "", nil
		}
	}
	if len(entries) == 0 && node.Annotations[RemoveAnnotation] == "" {
		return false, "ConfigMap " + configure.InstancesName +
			" does not exist or has no entry; fix: restore it, or remove this node with oc annotate node " + node.Name +
			" " + RemoveAnnotation + "=true", nil
	}
	replaced, unknown, err := rm.isReplaced(ctx, node, r, entries)
	if unknown != "" && node.Annotations[RemoveAnnotation] == "" {
		return false, "the entry " + r.Entry + " was removed from " + configure.InstancesName +
			", and it is not known whether " + unknown +
			" is the same host, because the name cannot be resolved; fix: correct that entry, or remove this node with oc annotate node " +
			node.Name + " " + RemoveAnnotation + "=true", err
	}
	return !replaced, "", err
}

// isEntryOf reports whether an entry, valid or not, is that of a record.
func isEntryOf(r record.Record, entry string) bool {
	entry = strings.TrimSpace(entry)
	return record.OfEntry(entry) == r.ID() || strings.EqualFold(entry, r.Address)
}

// askedWithin is how long a removal waits for the first contact with the hosts of new entries: one of them may be the
// same host at another address, and its kubelet writes a new one within seconds.
const askedWithin = time.Minute

// errNotAsked means that a removal waits for that.
var errNotAsked = errors.New("the host of a new entry was not reached yet, and may be the same one")

// isReplaced reports whether another entry is one for the address of the host: the record follows when the host was
// asked. Unknown is an entry whose name cannot be resolved.
func (rm *remover) isReplaced(ctx context.Context, node *corev1.Node, r record.Record,
	entries map[string]string) (replaced bool, unknown string, err error) {
	inputs, err := rm.joiner.Inputs(ctx)
	if err != nil {
		return false, "", fmt.Errorf("reading the inputs: %w", err)
	}
	own := append(strings.Fields(r.Resolved), r.Address)
	for _, i := range inputs.Instances {
		other, _ := inputs.Records.RecordByID(record.OfEntry(i.Address))
		if other.Node != "" && other.Node != r.Node {
			continue // the entry of another node, whatever its name resolves to
		}
		if slices.ContainsFunc(append(slices.Clone(i.Addresses), i.Address), func(a string) bool {
			return slices.Contains(own, a)
		}) {
			return true, "", nil
		}
		if i.Finding.Reason == reason.InstanceUnresolvable && other.Node == "" {
			unknown = i.Address
		}
	}
	if unknown == "" && node.Annotations[RemoveAnnotation] == "" && rm.awaitsContact(r, entries, inputs.Records) {
		return false, "", errNotAsked
	}
	return false, unknown, nil
}

// awaitsContact reports whether there is an entry whose host was not reached yet, or has the key of this one and is not
// known to be a Node, and there was not enough time for that. Hosts that were copied have one key.
func (rm *remover) awaitsContact(r record.Record, entries map[string]string, records record.Set) bool {
	for entry := range entries {
		other, _ := records.RecordByID(record.OfEntry(entry))
		if other.HostKey == "" || other.HostKey == r.HostKey && other.Node == "" {
			return rm.awaiting.SeenFor(r.Node, string(r.NodeUID), rm.joiner.Elapsed()) < askedWithin
		}
	}
	return false
}

// forgetRemoval takes RemoveAnnotation from the Node of an instance that has an entry: it was for another time, and
// must not confirm the next mistake.
func (rm *remover) forgetRemoval(ctx context.Context, node *corev1.Node, r record.Record) error {
	value := node.Annotations[RemoveAnnotation]
	if value == "" || r.Entry == "" {
		return nil
	}
	if _, err := rm.joiner.WriteMarks(ctx, node,
		configure.Marks{Annotations: map[string]string{RemoveAnnotation: ""}}); err != nil {
		return err
	}
	rm.recordRemoval(ctx, node, r, removalEvent{corev1.EventTypeWarning, eventForgotten, actionRemove,
		"the annotation " + RemoveAnnotation + "=" + value +
			" is taken back, because the instance has an entry in " + configure.InstancesName +
			"; fix: to remove the instance, remove its entry first"})
	return nil
}

// reportUnconfirmed reports that a removal waits for a person.
func (rm *remover) reportUnconfirmed(ctx context.Context, node *corev1.Node, r record.Record, why string) {
	rm.recordRemoval(ctx, node, r, removalEvent{corev1.EventTypeWarning, configure.ReasonNotConfirmed,
		actionRemove, why})
	message, fix, _ := strings.Cut(why, "; fix: ")
	rm.joiner.Unjoined.NoteRemoval(node.Name, r.Address,
		configure.Progress{State: configure.StateWaiting, Reason: configure.ReasonNotConfirmed,
			Message: message, Fix: fix})
}

// reportRemoval reports how far a removal is.
func (rm *remover) reportRemoval(ctx context.Context, node *corev1.Node, r record.Record, p configure.Progress) {
	e := removalEvent{corev1.EventTypeNormal, eventTeardown, actionRemove, p.DisplayText()}
	switch {
	case p.Finished && p.Err != nil:
		e.kind = corev1.EventTypeWarning
	case p.Finished:
	case p.Reason == reasonCordoned: // it has just begun: nothing is needed
		e.reason = eventRemovalBegins
	case p.Reason == reasonDraining: // pods end, and nothing blocks them
		e.reason, e.action = eventRemovalBegins, p.Reason
	case p.Message != "":
		e.kind, e.reason, e.action = corev1.EventTypeWarning, eventRemovalWaits, p.Reason
	default:
		return
	}
	rm.recordRemoval(ctx, node, r, e)
	rm.joiner.Unjoined.NoteRemoval(node.Name, r.Address, p)
}

// removalEvent is an Event about a removal.
type removalEvent struct{ kind, reason, action, message string }

// recordRemoval sends an Event about the Node, and about the entry of windows-instances: the Node does not outlive a removal,
// and the ConfigMap has the Events about how the instance has joined.
func (rm *remover) recordRemoval(ctx context.Context, node *corev1.Node, r record.Record, e removalEvent) {
	rm.events.recordOnNode(node, e.kind, e.reason, e.action, e.message)
	if r.Entry != "" {
		ref := configure.InstanceReference(ctx, rm.joiner.Reader, rm.namespace, r.Entry)
		rm.events.Eventf(ref, nil, e.kind, e.reason, e.action, "%s",
			published.Shorten(r.Entry+" (node "+node.Name+"): "+e.message))
	}
}

// drainProgress is how far the node of a removed entry is drained.
func drainProgress(left drain.Left) configure.Progress {
	p := configure.Progress{State: configure.StateWaiting, Reason: reasonDraining,
		Message: "draining the node, its entry was removed: " + left.String(), Again: configure.AgainDrain}
	if len(left.Blocked) > 0 {
		p.Reason = configure.ReasonDrainBlocked
	}
	return p
}

// continueRemoval does the next step of a removal: cordon, drain, clean up, delete the Node, forget the host. Each can
// be repeated. Whom to reach is in the record alone: the Node may say anything.
func (rm *remover) continueRemoval(ctx context.Context, node *corev1.Node,
	r record.Record) (configure.Progress, error) {
	if !windowsnode.HasTaint(node, windowsnode.RemovingTaint) {
		m := configure.Marks{Removing: new(true)}
		if !node.Spec.Unschedulable { // a cordon of others is theirs
			m.Annotations, m.Cordon = map[string]string{configure.JoiningAnnotation: configure.ValueTrue}, new(true)
		}
		_, err := rm.joiner.WriteMarks(ctx, node, m)
		return configure.Progress{State: configure.StateWaiting, Reason: reasonCordoned,
			Message: "the node is cordoned: its entry was removed", Again: configure.AgainSoon}, err
	}
	if windowsnode.Decode(*node).IsReady() {
		left, err := drain.Drainer{Client: rm.drainer.Client, GiveUp: giveUpPods}.EvictOnce(ctx, node.Name)
		if err != nil || !left.IsEmpty() {
			return drainProgress(left), err
		}
	}
	// What cannot be undone is not decided by a cache.
	still, known, err := rm.joiner.Login.Records.GetRecord(ctx, r.ID())
	if err != nil || !known || !still.IsNode(node.Name, node.UID) {
		return configure.Progress{State: configure.StateWaiting, Again: configure.AgainSoon}, err
	}
	removed, _, err := rm.isInstanceRemoved(ctx, rm.joiner.Login.Live, node, still)
	if errors.Is(err, errNotAsked) {
		err = nil
	}
	if err != nil || !removed {
		return configure.Progress{State: configure.StateWaiting, Again: configure.AgainSoon}, err
	}
	// From here on the host is no node any longer: if its entry comes back before the Node is deleted, it joins again.
	written, err := rm.joiner.WriteMarks(ctx, node,
		configure.Marks{Annotations: map[string]string{configure.VersionAnnotation: ""}})
	if written || err != nil {
		return configure.Progress{State: configure.StateWaiting, Again: configure.AgainSoon}, err
	}
	cleaning, end := rm.joiner.Unjoined.BeginWork(ctx, node.Name, configure.CleanUpHost())
	err = rm.cleanUpHost(cleaning, node, still)
	end()
	done := configure.Progress{State: configure.StateGone, Finished: true,
		Message: "the instance was cleaned up, and its Node deleted"}
	if err != nil {
		// A host that only waits for its turn is cleaned up, also where the removal is forced.
		if hosts.IsHostBusy(err) {
			return configure.Progress{State: configure.StateWaiting, Again: configure.AgainSoon}, nil
		}
		if node.Annotations[RemoveAnnotation] != removeForce {
			p := configure.ProgressOfError(err)
			p.Message = "removing the instance: " + p.Message
			p.Fix = strings.TrimPrefix(p.Fix+"; or, if the host no longer exists, oc annotate --overwrite node "+node.Name+" "+RemoveAnnotation+"="+removeForce, "; ")
			return p, nil
		}
		rm.log.Info("removing an instance that cannot be cleaned up", "node", node.Name, "address", still.Address,
			"error", err)
		done = configure.RemovedByForce(still.Address, err)
	}
	uid := node.UID
	if err := rm.joiner.Client.Delete(ctx, node, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return configure.Progress{}, fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	rm.joiner.Hosts.ForgetAddress(still.Address)
	return done, rm.joiner.Login.Records.ForgetRecord(ctx, still.ID())
}

// cleanUpHost removes from a host everything that is managed there, if it confirms that it is the Node of its record.
func (rm *remover) cleanUpHost(ctx context.Context, node *corev1.Node, r record.Record) error {
	inputs, err := rm.joiner.Inputs(ctx)
	if err != nil {
		return fmt.Errorf("reading the inputs: %w", err)
	}
	target, err := rm.joiner.Hosts.TargetOf(r.ID(), r.Account, r.Address)
	if err != nil {
		return err
	}
	instance := render.Node{Backing: render.BackingInstance, Address: r.Entry}
	event, err := rm.joiner.Hosts.CleanupHost(ctx, target, func(facts bundle.Facts) error {
		return configure.CheckSameNode(instance, node.Name, facts, inputs.Cluster)
	})
	if err != nil {
		return err
	}
	if event.Result != protocol.ResultApplied && event.Result != protocol.ResultSame {
		return fmt.Errorf("cleaning up %s: %s: %s", r.Address, event.Result, event.Message)
	}
	return nil
}
