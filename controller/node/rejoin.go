package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// A kubelet whose client certificate has expired cannot renew it: the host was off for longer than the certificate is
// valid. The host of an instance joins again:
//
//	Node not Ready, and its kubelet is silent  -->  the host is asked over SSH  -->  its certificate has expired
//	keep what users set on the Node (ConfigMap)  -->  delete the Node  -->  join as at first (Joiner)  -->  set it again
//
// The cluster approves no second first certificate for a Machine: an Event of the Machine reports that.

const actionRejoin = "Rejoin"

const (
	// lostWithin is how long a kubelet is seen to be lost before its host is asked.
	lostWithin = 5 * time.Minute
	// retryLost is how long after that the host is asked again.
	retryLost = 10 * time.Minute
)

// rejoiner lets hosts join again.
type rejoiner struct {
	joiner    *configure.Joiner
	namespace string
	// apiTime asks an API server for its time of day: it is the one that accepts the certificate of a kubelet, or
	// refuses it.
	apiTime func(context.Context) (time.Time, error)
	events  nodeEvents
	log     logr.Logger
	// lost is since when kubelets are seen to be lost.
	lost configure.Sightings
}

// findExpired looks whether a kubelet that was lost is lost because its certificate has expired.
func (re *rejoiner) findExpired(ctx context.Context, node *corev1.Node) (reconcile.Result, error) {
	if left := lostWithin - re.lost.SeenFor(node.Name, string(node.UID), re.joiner.Elapsed()); left > 0 {
		re.log.V(1).Info("a kubelet is lost", "node", node.Name, "askedIn", left.Round(time.Second))
		return reconcile.Result{RequeueAfter: left + time.Second}, nil
	}
	h, about, err := re.hostOf(ctx, node)
	if err != nil {
		return reconcile.Result{}, err
	}
	if about == nil { // the Node does not change when the name of its entry is found again
		return reconcile.Result{RequeueAfter: retryLost}, nil
	}
	expires, err := re.certificateExpiry(ctx, h)
	if hosts.IsHostBusy(err) {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, nil
	}
	if err != nil {
		// A host that is off is reported as not Ready already.
		re.log.V(1).Info("asking the host of a lost node for its certificate", "node", node.Name, "error", err)
		return reconcile.Result{RequeueAfter: retryLost}, nil
	}
	expired, err := re.hasExpired(ctx, expires)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !expired {
		re.joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name),
			configure.Progress{State: configure.StateJoined})
		return reconcile.Result{RequeueAfter: retryLost}, nil
	}
	p := configure.Progress{
		State: configure.StateFailed, Reason: configure.ReasonExpired, Again: retryLost, Node: node.Name,
		Message: fmt.Sprintf("the client certificate of the kubelet of node %s expired on %s, and the cluster "+
			"approves no other one for its Machine", node.Name, expires.UTC().Format(time.RFC3339)),
	}
	if h.Backing == render.BackingInstance {
		p, err = re.deleteToRejoin(ctx, h, expires)
	} else {
		p.Fix, err = re.fixByDeletion(ctx, h)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	re.joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name), p)
	switch p.State { //nolint:exhaustive // a host that has joined is none that joins again
	case configure.StateJoining:
		re.events.Eventf(about, nil, corev1.EventTypeNormal, configure.ReasonRejoining, actionRejoin, "%s",
			p.DisplayText())
		re.log.Info("a host joins again: the certificate of its kubelet has expired", "node", node.Name,
			"expired", expires)
	case configure.StateWaiting, configure.StateFailed:
		re.events.Eventf(about, nil, corev1.EventTypeWarning, p.Reason, actionRejoin, "%s", p.DisplayText())
	}
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// hostOf returns the host of a node, and what events about it are about: nil where the host is not asked, because
// nothing manages it, it is about to go, or an administrator keeps it as it is.
func (re *rejoiner) hostOf(ctx context.Context, node *corev1.Node) (h configure.Host, about runtime.Object, err error) {
	if _, paused := node.Annotations[published.PausedAnnotation]; paused || node.DeletionTimestamp != nil {
		return configure.Host{}, nil, nil
	}
	inputs, err := re.joiner.Inputs(ctx)
	if err != nil {
		return configure.Host{}, nil, fmt.Errorf("reading the inputs: %w", err)
	}
	for _, candidate := range inputs.All {
		if candidate.Name != node.Name {
			continue
		}
		h = configure.Host{Joiner: re.joiner, Wanted: inputs, Node: candidate}
		switch candidate.Backing {
		case render.BackingInstance:
			return h, configure.InstanceReference(ctx, re.joiner.Reader, re.namespace, candidate.Address), nil
		case render.BackingMachine:
			return re.machineOf(ctx, h)
		case render.BackingNode:
		}
	}
	return configure.Host{}, nil, nil
}

// machineOf returns the Machine of a host. One that is being deleted is machine-api's.
func (re *rejoiner) machineOf(ctx context.Context, h configure.Host) (configure.Host, runtime.Object, error) {
	var m machinev1beta1.Machine
	err := re.joiner.Reader.Get(ctx, client.ObjectKey{Namespace: base.MachinesNamespace, Name: h.MachineName}, &m)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil &&
		(m.DeletionTimestamp != nil || m.Labels[configure.LabelIgnore] == configure.ValueTrue) {
		return configure.Host{}, nil, nil
	}
	if err != nil {
		return configure.Host{}, nil, fmt.Errorf("reading Machine %s: %w", h.MachineName, err)
	}
	return h, &corev1.ObjectReference{APIVersion: machinev1beta1.GroupVersion.String(), Kind: base.MachineKind().Kind,
		Namespace: m.Namespace, Name: m.Name, UID: m.UID}, nil
}

// fixByDeletion asks to delete the Machine of a host.
func (re *rejoiner) fixByDeletion(ctx context.Context, h configure.Host) (string, error) {
	var m machinev1beta1.Machine
	err := re.joiner.Reader.Get(ctx, client.ObjectKey{Namespace: base.MachinesNamespace, Name: h.MachineName}, &m)
	return configure.FixByDeletion(&m), client.IgnoreNotFound(err)
}

// certificateExpiry asks a host over SSH, with its pinned host key, when the certificate of its kubelet expires; zero
// if it has none.
func (re *rejoiner) certificateExpiry(ctx context.Context, h configure.Host) (time.Time, error) {
	w, err := h.ApplyRequest()
	if err != nil {
		return time.Time{}, err
	}
	facts, key, err := re.joiner.Hosts.AskPendingKey(ctx, w.Target)
	if err != nil {
		return time.Time{}, err
	}
	return key.NotAfter, h.CheckFacts(facts)
}

// hasExpired reports whether a certificate has expired by the clock of an API server, which refuses it then. The clock
// of a host that was off for long may be wrong, and with a wrong clock of the operator each node that is lost would
// have to join again.
func (re *rejoiner) hasExpired(ctx context.Context, expires time.Time) (bool, error) {
	if expires.IsZero() {
		return false, nil
	}
	now, err := re.apiTime(ctx)
	return err == nil && !now.Before(expires), err
}

// deleteToRejoin deletes the Node of an instance, after what users have set there is kept.
func (re *rejoiner) deleteToRejoin(ctx context.Context, h configure.Host,
	expired time.Time) (configure.Progress, error) {
	result, _, err := re.joiner.Checks.JudgeCluster(ctx, h.Wanted)
	if err != nil {
		return configure.Progress{}, err
	}
	if p, ok := configure.WaitingFor(result); ok {
		return p, nil
	}
	// The kept state is the deleted one, and not an older one.
	var node corev1.Node
	if err := re.joiner.Login.Live.Get(ctx, client.ObjectKey{Name: h.Name}, &node); err != nil {
		return configure.Progress{}, client.IgnoreNotFound(err)
	}
	if !windowsnode.Decode(node).IsLost() {
		return configure.Progress{State: configure.StateJoined}, nil
	}
	// Only the host knows that its certificate has expired, and no kubelet may remove a taint: without its Node, it
	// would be rid of them.
	if keys := configure.TaintsOfUsers(&node); len(keys) > 0 {
		return configure.Progress{
			State: configure.StateFailed, Reason: configure.ReasonExpired, Again: retryLost, Node: node.Name,
			Message: fmt.Sprintf("the client certificate of the kubelet of node %s expired on %s; it has a taint "+
				"(%s), so whether it joins again is for a person to decide", node.Name,
				expired.UTC().Format(time.RFC3339), strings.Join(keys, ", ")),
			Fix: "if it may join, remove the taint (oc adm taint node " + node.Name + " " + keys[0] +
				"-), and set it again on the new Node",
		}, nil
	}
	tooLarge, err := re.joiner.RejoiningNodes().KeepNode(ctx, configure.SetByUsers(&node, h.Address))
	if err != nil {
		return configure.Progress{}, fmt.Errorf("saving labels and annotations of Node %s: %w", node.Name, err)
	}
	err = re.joiner.Client.Delete(ctx, &node,
		client.Preconditions{UID: &node.UID, ResourceVersion: &node.ResourceVersion})
	if apierrors.IsConflict(err) {
		// it has changed since
		return configure.Progress{State: configure.StateJoined, Again: configure.AgainSoon},
			re.joiner.RejoiningNodes().ForgetNode(ctx, node.Name)
	}
	if client.IgnoreNotFound(err) != nil {
		return configure.Progress{}, fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	message := fmt.Sprintf("the client certificate of the kubelet of node %s expired on %s: its Node was deleted, "+
		"and the host joins again; labels, annotations and a cordon of users are set again", node.Name,
		expired.UTC().Format(time.RFC3339))
	if len(tooLarge) > 0 {
		message += ", but not its " + strings.Join(tooLarge, " and ") + ", which are too large"
	}
	return configure.Progress{State: configure.StateJoining, Reason: configure.ReasonRejoining, Message: message}, nil
}
