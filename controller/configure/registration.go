package configure

import (
	"context"
	"fmt"
	"time"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/layout"
)

// registersWithin is how long a kubelet that has its certificate may take to register its Node. It tries that every few
// seconds until it succeeds, and then not again before it is restarted (k8s.io/kubernetes/pkg/kubelet,
// registerWithAPIServer): if the Node is not there, it was deleted, or etcd was restored to before it.
const registersWithin = 2 * time.Minute

// awaitNode is for a host that has the join-stage bundle and no Node: its kubelet waits for its certificate, or registers
// the Node. A kubelet that has its certificate and does not register is restarted. Nothing else runs on the host yet.
func (h Host) awaitNode(ctx context.Context, w hosts.Wish, p Progress) Progress {
	waited := h.unregistered.SeenFor(h.recordID(), h.Address, h.Elapsed())
	if waited < registersWithin {
		return p
	}
	_, key, err := h.Hosts.AskPendingKey(ctx, w.Target)
	if err != nil {
		return h.progressOfError(err)
	}
	h.Log.V(1).Info("a host waits for its Node", "host", h.ID(), "for", waited, "certificateUntil", key.NotAfter)
	if key.NotAfter.IsZero() {
		return h.explainFailure(ctx, w, p)
	}
	w.MaxImpact, w.Restart = bundle.ImpactRestart, []string{layout.Kubelet}
	if _, err := h.Hosts.RepairHost(ctx, w); err != nil {
		return h.progressOfError(err)
	}
	h.unregistered.ForgetHost(h.recordID())
	h.Log.Info("restarted a kubelet that has its certificate and has registered no Node", "host", h.ID())
	p.Message = fmt.Sprintf("the kubelet has its certificate and registered no Node within %s: its service was restarted", registersWithin)
	return p
}

// recordID identifies a host with and without a Node.
func (h Host) recordID() string { return string(gather.HostID(h.Node)) }
