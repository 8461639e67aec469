package node

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/fleet"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
)

// Reasons of events about silent agents.
const (
	EventAgentRepaired = "AgentRepaired"
	EventAgentSilent   = "AgentSilent"

	actionRepair = "Repair"
)

// retrySilent is how long after an attempt a silent agent is looked at again.
const retrySilent = 10 * time.Minute

// agentRepairer repairs over SSH what a node agent cannot repair: itself.
type agentRepairer struct {
	joiner *configure.Joiner
	events nodeEvents
	log    logr.Logger
}

// repairSilent repairs an agent that has not reported for half an hour while the kubelet lives.
func (ar *agentRepairer) repairSilent(ctx context.Context, node windowsnode.Node) reconcile.Result {
	row := fleet.Of(node, ar.joiner.Silence)
	switch {
	case row.Reported.IsZero() && !node.IsJoined():
		// The join applies the bundle over SSH again.
		return reconcile.Result{}
	case row.Reported.IsZero() && !node.IsReady():
		return reconcile.Result{} // the Node's next change is seen
	case row.State != nodestate.NotReporting, row.Reported.IsZero() && ar.joiner.Silence(node) <= published.SilentAfter:
		left := published.SilentAfter - ar.joiner.Silence(node)
		if left < 0 {
			// The kubelet is not Ready, or nothing is published: the Node's next change is seen.
			return reconcile.Result{}
		}
		return reconcile.Result{RequeueAfter: left + time.Second}
	}
	repairing, end := ar.joiner.Unjoined.BeginWork(ctx, node.Name, configure.RepairAgent())
	message, err := ar.repairHost(repairing, node.Name)
	end()
	if hosts.IsHostBusy(err) {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}
	}
	if err != nil {
		ar.log.Info("repairing a silent node agent", "node", node.Name, "error", err)
		ar.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventAgentSilent, actionRepair,
			"the node agent is silent, and could not be repaired over SSH: "+describeError(err))
		return reconcile.Result{RequeueAfter: retrySilent}
	}
	ar.log.Info("repaired a silent node agent", "node", node.Name, "result", message)
	ar.events.recordOnNode(node.Node, corev1.EventTypeNormal, EventAgentRepaired, actionRepair,
		"the node agent was silent; over SSH: "+message)
	return reconcile.Result{RequeueAfter: retrySilent}
}

// repairHost restores the last applied bundle, from the contents on the host: the published one may need a permission that it
// does not have. It returns what was done.
func (ar *agentRepairer) repairHost(ctx context.Context, name string) (string, error) {
	h, err := ar.joiner.HostOfNode(ctx, name)
	if err != nil {
		return "", err
	}
	w, err := h.ApplyRequest()
	if err != nil {
		return "", err
	}
	w.MaxImpact = bundle.ImpactRestart
	event, err := ar.joiner.Hosts.RepairHost(ctx, w)
	if err != nil {
		return "", err
	}
	switch event.Result {
	case protocol.ResultSame:
		return "", fmt.Errorf("nothing differs on the host, and the service %s runs; read its log under C:\\var\\log\\wicd", bundle.AgentService)
	case protocol.ResultApplied:
		return fmt.Sprintf("%s written, %s started", bundle.Count(event.Written, "file"),
			bundle.Count(event.Restarted, "service")), nil
	case protocol.ResultPlanned, protocol.ResultPartial, protocol.ResultRolledBack, protocol.ResultRefused,
		protocol.ResultReboot, protocol.ResultHandedOver:
	}
	return "", fmt.Errorf("%s: %s", event.Result, event.Message)
}
