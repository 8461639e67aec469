package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// The steps of a removal. Each can be repeated, also by another process. Whom to reach is in the record alone: the Node
// may say anything.
//
//	cordon, taint --> drain --> checks, live --> agent is told, signed --> it reports --.
//	                                    |                  | silent, or late            v
//	                                    `------------------`--> over SSH --> delete the Node --> forget the record
//
// Until the host is told, an entry that is added again takes the removal back (configure.Joiner). From then on the host
// is cleaned up, and joins again afterwards.

// giveUpPods is how long after the time at which a pod had to end the removal of its node waits for it: a kubelet that
// does not end its pods does not keep its host from being removed.
const giveUpPods = 10 * time.Minute

// soon is a removal whose next step is due when a cache has what was written.
func soon() configure.Progress {
	return configure.Progress{State: configure.StateWaiting, Again: configure.AgainSoon}
}

// continueRemoval does the next step of a removal.
func (rm *remover) continueRemoval(ctx context.Context, node windowsnode.Node,
	r record.Record) (configure.Progress, error) {
	ending := rm.joiner.IsEnding(node)
	if !ending {
		if p, empty, err := rm.emptyNode(ctx, node); !empty || err != nil {
			return p, err
		}
	}
	// What cannot be undone is not decided by a cache.
	still, known, err := rm.joiner.Login.Records.GetRecord(ctx, r.ID())
	if err != nil || !known || !still.IsNode(node.Name, node.UID) {
		return soon(), err
	}
	if ending {
		return rm.awaitAgent(ctx, node, still)
	}
	removed, err := rm.isStillRemoved(ctx, node, still)
	if err != nil || !removed {
		return soon(), err
	}
	if told, err := rm.agents.tellAgent(ctx, node); told || err != nil {
		return soon(), err
	}
	// From here on the host is no node any longer: if its entry comes back before the Node is deleted, it joins again.
	written, err := rm.joiner.WriteMarks(ctx, node.Node,
		configure.Marks{Annotations: map[string]string{configure.VersionAnnotation: ""}})
	if written || err != nil {
		return soon(), err
	}
	return rm.cleanUp(ctx, node, still)
}

// emptyNode cordons and drains the node, and reports whether it is empty.
func (rm *remover) emptyNode(ctx context.Context, node windowsnode.Node) (configure.Progress, bool, error) {
	if !windowsnode.HasTaint(node.Node, windowsnode.RemovingTaint) {
		m := configure.Marks{Removing: new(true)}
		if !node.Spec.Unschedulable { // a cordon of others is theirs
			m.Annotations, m.Cordon = map[string]string{configure.JoiningAnnotation: configure.ValueTrue}, new(true)
		}
		_, err := rm.joiner.WriteMarks(ctx, node.Node, m)
		return configure.Progress{State: configure.StateWaiting, Reason: reasonCordoned,
			Message: "the node is cordoned: its entry was removed", Again: configure.AgainSoon}, false, err
	}
	if !node.IsReady() {
		return configure.Progress{}, true, nil
	}
	left, err := drain.Drainer{Client: rm.drainer.Client, GiveUp: giveUpPods}.EvictOnce(ctx, node.Name)
	if err != nil || !left.IsEmpty() {
		return drainProgress(left), false, err
	}
	return configure.Progress{}, true, nil
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

// isStillRemoved is isInstanceRemoved as the API server has the entries now.
func (rm *remover) isStillRemoved(ctx context.Context, node windowsnode.Node, r record.Record) (bool, error) {
	removed, _, err := rm.isInstanceRemoved(ctx, rm.joiner.Login.Live, node.Node, r)
	if errors.Is(err, errNotAsked) {
		return false, nil
	}
	return removed, err
}

// awaitAgent waits until the node agent reports that the host is cleaned up. If that takes too long, SSH is tried; the
// agent may still do it.
func (rm *remover) awaitAgent(ctx context.Context, node windowsnode.Node,
	r record.Record) (configure.Progress, error) {
	failed := node.Report.Removal.Message
	switch {
	case node.ReportError == nil && node.Report.Removal.IsDoneFor(node.ID()):
		return rm.deleteNode(ctx, node, r, configure.Progress{})
	case !rm.agents.isAwaited(node):
		return rm.cleanUp(ctx, node, r)
	case failed != "":
		return rm.noteFailure(ctx, node, r, fmt.Errorf("cleaning up %s: %s", r.Address, failed))
	}
	return configure.Progress{State: configure.StateWaiting, Reason: reasonCleaning, Again: configure.AgainSoon,
		Message: "the node agent removes everything from the host, its entry was removed"}, nil
}

// cleanUp cleans up the host over SSH, and deletes the Node.
func (rm *remover) cleanUp(ctx context.Context, node windowsnode.Node, r record.Record) (configure.Progress, error) {
	cleaning, end := rm.joiner.Unjoined.BeginWork(ctx, node.Name, configure.CleanUpHost())
	err := rm.cleanUpHost(cleaning, node.Node, r)
	end()
	switch {
	case hosts.IsHostBusy(err): // it is cleaned up, also where the removal is forced
		return soon(), nil
	case err != nil:
		return rm.noteFailure(ctx, node, r, err)
	}
	return rm.deleteNode(ctx, node, r, configure.Progress{})
}

// noteFailure reports why a host could not be cleaned up. Where the removal is forced, the Node is deleted nevertheless.
func (rm *remover) noteFailure(ctx context.Context, node windowsnode.Node, r record.Record,
	err error) (configure.Progress, error) {
	if node.Annotations[RemoveAnnotation] != removeForce {
		p := configure.ProgressOfError(err)
		p.Message = "removing the instance: " + p.Message
		p.Fix = strings.TrimPrefix(p.Fix+"; or, if the host no longer exists, oc annotate --overwrite node "+node.Name+" "+RemoveAnnotation+"="+removeForce, "; ")
		return p, nil
	}
	rm.log.Info("removing an instance that cannot be cleaned up", "node", node.Name, "address", r.Address,
		"error", err)
	return rm.deleteNode(ctx, node, r, configure.RemovedByForce(r.Address, err))
}

// deleteNode deletes the Node and forgets the host. Forced is zero where that was cleaned up. A host whose entry was added again
// keeps its record, with its pinned key.
func (rm *remover) deleteNode(ctx context.Context, node windowsnode.Node, r record.Record,
	forced configure.Progress) (configure.Progress, error) {
	removed, err := rm.isStillRemoved(ctx, node, r)
	if err != nil {
		return soon(), err
	}
	uid := node.UID
	object := &corev1.Node{}
	object.Name = node.Name
	if err := rm.joiner.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return configure.Progress{}, fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	done := forced
	if !done.Finished {
		done = configure.Progress{State: configure.StateGone, Finished: true,
			Message: "the instance was cleaned up, and its Node deleted"}
	}
	if !removed {
		return done, nil
	}
	rm.joiner.Hosts.ForgetAddress(r.Address)
	return done, rm.joiner.Login.Records.ForgetRecord(ctx, r.ID())
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
