package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/protocol"
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

// upgrader copies executables to hosts that lack them.
type upgrader struct {
	joiner  *configure.Joiner
	payload *configure.Executables
	// copying are the places of hosts to which executables are copied at the same time.
	copying  *remote.Places
	fetching fetches
	events   nodeEvents
	log      logr.Logger
}

// continueUpgrade does the next step that brings a node from the executables of another operator to those of this one.
// It reports whether there is nothing else to do now.
//
//	desired-version --> executables on the host (fetched or copied), payload --> the bundle with them is published and
//	applied --> version
func (up *upgrader) continueUpgrade(ctx context.Context, node windowsnode.Node) (reconcile.Result, bool, error) {
	if !node.IsJoined() {
		return reconcile.Result{}, false, nil
	}
	chosen, known := up.payload.ChosenExecutables()
	if !known {
		return reconcile.Result{}, false, nil // the first rendering wakes this controller
	}
	payload := chosen.Digest
	written, err := up.joiner.WriteMarks(ctx, node.Node, up.versionMarks(node, payload))
	if err != nil || written {
		return reconcile.Result{}, true, err
	}
	pending := node.IsPayloadPending(payload)
	if !pending && !node.LacksPayload() {
		up.fetching.forgetNode(node.Name)
		_, err := up.joiner.WriteMarks(ctx, node.Node, withdrawFetch(node))
		return reconcile.Result{}, false, err
	}
	how, err := up.fetching.chooseWay(ctx, node, chosen)
	if err != nil {
		return reconcile.Result{}, false, err
	}
	switch how {
	case wayWait:
		return reconcile.Result{RequeueAfter: configure.AgainLater}, false, nil
	case wayFetch:
		_, err := up.joiner.WriteMarks(ctx, node.Node, configure.Marks{Annotations: map[string]string{published.FetchAnnotation: string(payload)}})
		return reconcile.Result{RequeueAfter: configure.AgainLater}, false, err
	case wayDone:
		return up.noteThere(ctx, node.Name, payload, "fetched")
	case wayNone:
		up.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventPayloadNotCopied, actionUpgrade,
			"the executables of operator "+up.joiner.Version+" cannot be fetched, and executables.from forbids to copy them; the node runs on with those that it has: "+whyNotFetched(node, chosen))
		return reconcile.Result{RequeueAfter: retrySilent}, false, nil
	case wayCopy:
	}
	if up.copying.IsBusy() {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, true, nil
	}
	copying, turn := up.copying.WithTurn(ctx, "", nil)
	copying, end := up.joiner.Unjoined.BeginWork(copying, node.Name, configure.CopyExecutables())
	event, err := up.copyExecutables(copying, node.Name)
	end()
	turn.End()
	switch {
	case hosts.IsHostBusy(err):
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, true, nil
	case err != nil:
		up.log.Info("copying executables", "node", node.Name, "error", err)
		up.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventPayloadNotCopied, actionUpgrade,
			"the executables of operator "+up.joiner.Version+" could not be copied, the node runs on with those that it has: "+describeError(err))
		return reconcile.Result{RequeueAfter: copyAgainAfter(err)}, false, nil
	}
	up.log.Info("copied executables", "node", node.Name, "result", event.Result)
	return up.noteThere(ctx, node.Name, payload, "copied")
}

// noteThere notes that a host has executables: the bundle with them is published next.
func (up *upgrader) noteThere(ctx context.Context, name string, payload bundle.Digest, how string) (reconcile.Result, bool, error) {
	// Copying takes minutes: the Node has changed since.
	now, err := configure.ReadNode(ctx, up.joiner.Reader, name)
	if err != nil {
		return reconcile.Result{}, true, client.IgnoreNotFound(err)
	}
	up.fetching.forgetNode(name)
	written, err := up.joiner.WriteMarks(ctx, now,
		configure.Marks{Annotations: map[string]string{published.PayloadAnnotation: string(payload), published.FetchAnnotation: ""}})
	if written && now.Annotations[published.PayloadAnnotation] != string(payload) {
		up.events.recordOnNode(now, corev1.EventTypeNormal, EventPayloadCopied, actionUpgrade,
			"the executables of operator "+up.joiner.Version+" are on the host ("+how+")")
	}
	return reconcile.Result{RequeueAfter: retrySilent}, true, err
}

// withdrawFetch are the marks of a node that lacks no executables.
func withdrawFetch(node windowsnode.Node) configure.Marks {
	if node.Annotations[published.FetchAnnotation] == "" {
		return configure.Marks{}
	}
	return configure.Marks{Annotations: map[string]string{published.FetchAnnotation: ""}}
}

// whyNotFetched returns why a node does not fetch executables.
func whyNotFetched(node windowsnode.Node, chosen configure.Chosen) string {
	switch {
	case !chosen.Listed:
		return "the operator does not know its own image, or no place may be asked for it; fix: set executables.image"
	case !node.Report.Has(published.FeatureFetch):
		return "the node agent is one of an older operator, which cannot fetch; fix: set executables.from: Any until it is upgraded"
	}
	return cmp.Or(node.Report.Fetch.Message, "the node agent has not made progress")
}

const actionUpgrade = "Upgrade"

// versionMarks are the marks of a node on its way to this operator's version. The version is written when the node has
// a bundle with the executables of this operator.
func (up *upgrader) versionMarks(node windowsnode.Node, payload bundle.Digest) configure.Marks {
	m := configure.Marks{Labels: map[string]string{published.UpgradingLabel: ""},
		Annotations: map[string]string{configure.DesiredVersionAnnotation: up.joiner.Version}}
	switch mine := node.DesiredError == nil && node.Desired.Payload == payload; {
	case node.Annotations[configure.VersionAnnotation] == up.joiner.Version || !mine:
	case fleet.Of(node, up.joiner.Silence).State == nodestate.Updated:
		m.Annotations[configure.VersionAnnotation] = up.joiner.Version
	default:
		m.Labels[published.UpgradingLabel] = configure.ValueTrue
	}
	return m
}

// copyExecutables copies what the host lacks, after it could not fetch it.
func (up *upgrader) copyExecutables(ctx context.Context, name string) (protocol.Event, error) {
	w, err := up.wishFor(ctx, name)
	if err != nil {
		return protocol.Event{}, err
	}
	w.Fetch = nil
	return up.stage(ctx, w)
}

// stageExecutables has the host fetch what it lacks, and copies the rest.
func (up *upgrader) stageExecutables(ctx context.Context, name string) (protocol.Event, error) {
	w, err := up.wishFor(ctx, name)
	if err != nil {
		return protocol.Event{}, err
	}
	return up.stage(ctx, w)
}

func (up *upgrader) wishFor(ctx context.Context, name string) (hosts.Wish, error) {
	h, err := up.joiner.HostOfNode(ctx, name)
	if err != nil {
		return hosts.Wish{}, err
	}
	return h.ApplyRequest()
}

// stage brings executables to a host. Nothing that runs there is changed.
func (up *upgrader) stage(ctx context.Context, w hosts.Wish) (protocol.Event, error) {
	event, err := up.joiner.Hosts.StageExecutables(ctx, w)
	if err != nil {
		return protocol.Event{}, err
	}
	if event.Result != protocol.ResultApplied && event.Result != protocol.ResultSame {
		return protocol.Event{}, fmt.Errorf("%s: %s", event.Result, event.Message)
	}
	return event, nil
}

// stageMissing brings executables that the host lacks before it is drained for them. It reports whether they are there.
func (up *upgrader) stageMissing(ctx context.Context, node windowsnode.Node, seen hosts.Comparison) (bool, error) {
	chosen, known := up.payload.ChosenExecutables()
	payload := chosen.Digest
	pending := known && node.IsPayloadPending(payload)
	if !seen.LacksPayload && !pending {
		return true, nil
	}
	if up.copying.IsBusy() {
		return false, nil
	}
	copying, turn := up.copying.WithTurn(ctx, "", nil)
	event, err := up.stageExecutables(copying, node.Name)
	turn.End()
	if err != nil {
		return false, fmt.Errorf("copying executables: %w", err)
	}
	up.log.Info("copied executables before an adoption", "node", node.Name, "result", event.Result)
	if !pending {
		return true, nil
	}
	now, err := configure.ReadNode(ctx, up.joiner.Reader, node.Name)
	if err == nil {
		_, err = up.joiner.WriteMarks(ctx, now,
			configure.Marks{Annotations: map[string]string{published.PayloadAnnotation: string(payload)}})
	}
	return false, err // the bundle with them is rendered next
}

// parallelCopies is to how many hosts executables are copied at the same time: each gets up to 150 MB.
const parallelCopies = 4

// CopyPlaces are the places of hosts that get executables. None of them waits for an open one: whether there is a place
// is asked before.
func CopyPlaces() *remote.Places {
	limits := remote.DefaultLimits().PlacesFor(parallelCopies)
	limits.Asking, limits.Open = math.MaxInt, math.MaxInt
	return remote.NewPlaces(limits)
}
