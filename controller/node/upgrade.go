package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/fleet"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
)

// Reasons of events about executables.
const (
	EventPayloadCopied    = "PayloadCopied"
	EventPayloadNotCopied = "PayloadNotCopied"
)

// retryInterrupted is how long after a connection was lost the copying goes on: what has arrived stays on the host.
const retryInterrupted = time.Minute

// copyAgainAfter returns how long after an error executables are copied again.
func copyAgainAfter(err error) time.Duration {
	var interrupted *remote.InterruptedError
	if errors.As(err, &interrupted) {
		return retryInterrupted
	}
	return retrySilent
}

// continueUpgrade does the next step that brings a node from the executables of another operator to those of this one. It reports whether there
// is nothing else to do now.
//
//	desired-version --> executables on the host, payload --> the bundle with them is published and applied --> version
func (n *Nodes) continueUpgrade(ctx context.Context, node windowsnode.Node) (reconcile.Result, bool, error) {
	if !node.IsJoined() {
		return reconcile.Result{}, false, nil
	}
	payload, known := n.Payload.ChosenDigest()
	if !known {
		return reconcile.Result{}, false, nil // the first rendering wakes this controller
	}
	written, err := configure.Host{Joiner: n.Joiner}.WriteMarks(ctx, node.Node, n.versionMarks(node, payload))
	if err != nil || written {
		return reconcile.Result{}, true, err
	}
	pending := node.IsPayloadPending(payload)
	if !pending && !node.LacksPayload() {
		return reconcile.Result{}, false, nil
	}
	if n.Copying.IsBusy() {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, true, nil
	}
	copying, turn := n.Copying.WithTurn(ctx, "", nil)
	copying, end := n.Joiner.Unjoined.BeginWork(copying, node.Name, configure.CopyExecutables())
	event, err := n.stageExecutables(copying, node.Name)
	end()
	turn.End()
	switch {
	case hosts.IsHostBusy(err):
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, true, nil
	case err != nil:
		text := err.Error()
		if fix := remote.SuggestFix(err); fix != "" {
			text += "; fix: " + fix
		}
		n.Log.Info("copying executables", "node", node.Name, "error", err)
		n.recordEvent(node.Node, corev1.EventTypeWarning, EventPayloadNotCopied, actionUpgrade, "the executables of operator "+n.Version+" could not be copied, the node runs on with those that it has: "+text)
		return reconcile.Result{RequeueAfter: copyAgainAfter(err)}, false, nil
	}
	n.Log.Info("copied executables", "node", node.Name, "result", event.Result)
	if event.Result == applier.ResultApplied {
		n.recordEvent(node.Node, corev1.EventTypeNormal, EventPayloadCopied, actionUpgrade, "the executables of operator "+n.Version+" are on the host")
	}
	// Copying takes minutes: the Node has changed meanwhile.
	now, err := configure.ReadNode(ctx, n.Reader, node.Name)
	if err != nil {
		return reconcile.Result{}, true, client.IgnoreNotFound(err)
	}
	_, err = configure.Host{Joiner: n.Joiner}.WriteMarks(ctx, now, configure.Marks{Annotations: map[string]string{published.PayloadAnnotation: string(payload)}})
	return reconcile.Result{RequeueAfter: retrySilent}, true, err
}

const actionUpgrade = "Upgrade"

// versionMarks are the marks of a node on its way to this operator's version. The version is written when the node has a bundle with the
// executables of this operator.
func (n *Nodes) versionMarks(node windowsnode.Node, payload bundle.Digest) configure.Marks {
	m := configure.Marks{Labels: map[string]string{published.UpgradingLabel: ""}, Annotations: map[string]string{configure.DesiredVersionAnnotation: n.Version}}
	switch mine := node.DesiredError == nil && node.Desired.Payload == payload; {
	case node.Annotations[configure.VersionAnnotation] == n.Version || !mine:
	case fleet.Of(node, n.Joiner.Silence).State == nodestate.Updated:
		m.Annotations[configure.VersionAnnotation] = n.Version
	default:
		m.Labels[published.UpgradingLabel] = configure.ValueTrue
	}
	return m
}

// stageExecutables copies what the host lacks. Nothing that runs there is changed.
func (n *Nodes) stageExecutables(ctx context.Context, name string) (applier.Event, error) {
	w, err := n.applyRequest(ctx, name)
	if err != nil {
		return applier.Event{}, err
	}
	event, err := n.Hosts.StageExecutables(ctx, w)
	if err != nil {
		return applier.Event{}, err
	}
	if event.Result != applier.ResultApplied && event.Result != applier.ResultSame {
		return applier.Event{}, fmt.Errorf("%s: %s", event.Result, event.Message)
	}
	return event, nil
}

// parallelCopies is to how many hosts executables are copied at the same time: each gets up to 150 MB.
const parallelCopies = 4

// CopyPlaces are the places of hosts that get executables. None of them waits for an open one: whether there is a place is asked before.
func CopyPlaces() *remote.Places {
	limits := remote.DefaultLimits().PlacesFor(parallelCopies)
	limits.Asking, limits.Open = math.MaxInt, math.MaxInt
	return remote.NewPlaces(limits)
}
