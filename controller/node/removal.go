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

	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/configure"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/record"
)

// RemoveAnnotation of a Node removes an instance although the ConfigMap is gone, or its host cannot be cleaned up.
const RemoveAnnotation = published.RemoveAnnotation

const removeForce = "force"

// Reasons of events about a removal.
const (
	eventTeardown      = "InstanceTeardown"
	eventRemovalBegins = "InstanceRemovalStarted"
	eventRemovalWaits  = "InstanceRemovalWaiting"
	reasonCordoned     = "Cordoned"
	reasonDraining     = "Draining"
	reasonCleaning     = "CleaningUp"
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
	// agents has node agents clean up their hosts.
	agents agentRemovals
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
	case p.Reason == reasonDraining, p.Reason == reasonCleaning: // pods end, or the host is cleaned up
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
