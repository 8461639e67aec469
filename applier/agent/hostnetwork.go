package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// Services of the host network. The names are those of layout, which agents do not link.
const (
	// hostNetworkService is the Host Network Service of Windows (learn.microsoft.com, Host Network Service).
	hostNetworkService = "hns"
	kubeProxyService   = "kube-proxy"
	overlayService     = "hybrid-overlay-node"
	overlayNetwork     = "OVNKubernetesHybridOverlayNetwork"
)

const (
	// networkRestartLimit is how often kube-proxy is restarted within networkRestartTime because of the Host Network
	// Service.
	networkRestartLimit = 3
	networkRestartTime  = time.Hour
)

// hostNetwork notices that the Host Network Service has crashed: the service control manager starts it again, with
// another process id. Load balancers that kube-proxy has made may be lost then, or be others than it remembers:
// Services fail on the node until kube-proxy is restarted, which makes them all again (kubernetes/kubernetes#110849,
// #139519; version 1.36.5 still takes a service that does not answer for a network that is gone).
type hostNetwork struct {
	// process is the process for which kube-proxy works; 0 until one was seen.
	process int
	// restarted are when kube-proxy was restarted within the last networkRestartTime, since the boot of the host; count
	// is how often in all.
	restarted []time.Duration
	count     int
	// unstable is true while the Host Network Service has crashed more often than the limit allows restarts.
	unstable bool
	// failed is why the last restart did not work.
	failed string
}

// mayRestart reports whether the limit allows another restart, and forgets those that count no longer.
func (h *hostNetwork) mayRestart(now time.Duration) bool {
	h.restarted = slices.DeleteFunc(h.restarted, func(at time.Duration) bool { return now-at >= networkRestartTime })
	return len(h.restarted) < networkRestartLimit
}

// lookAtHostNetwork restarts kube-proxy after a crash of the Host Network Service, unless the node is kept as it is.
func (a *Agent) lookAtHostNetwork(ctx context.Context, n Node) {
	h := &a.network
	process, err := a.Engine.Host.ServiceProcess(ctx, hostNetworkService)
	if err != nil || process == 0 {
		return // it is compared when it runs again
	}
	if h.process == 0 || h.process == process || !slices.Contains(a.crashes.names, kubeProxyService) {
		h.process, h.unstable = process, false
		return
	}
	if n.Paused || a.Options.ReportOnly {
		return
	}
	if !h.mayRestart(a.sinceBoot()) {
		if !h.unstable {
			h.unstable = true
			a.Log.Warn("the Host Network Service crashes again and again: kube-proxy is not restarted",
				"restarts", networkRestartLimit, "within", networkRestartTime)
			a.sendEventToNode(ctx, Event{Warning: true, Reason: EventNetworkUnstable, Message: fmt.Sprintf(
				"the Host Network Service has crashed again after kube-proxy was restarted %d times within an hour: Services may fail on this node until the next restart is allowed", networkRestartLimit)})
		}
		return
	}
	a.restartHostNetwork(ctx, process)
}

// restartHostNetwork restarts what uses the Host Network Service. What does not work is retried with the next step,
// within the limit.
func (a *Agent) restartHostNetwork(ctx context.Context, process int) {
	h, names := &a.network, []string{kubeProxyService}
	if facts, err := a.Engine.Host.Facts(ctx); err == nil && !facts.IsUnknown(bundle.PartNetworks) && facts.Network(overlayNetwork).Name == "" && slices.Contains(a.crashes.names, overlayService) {
		names = append(names, overlayService) // which makes the network
	}
	a.Log.Warn("the Host Network Service has crashed: restarting services", "services", strings.Join(names, ", "))
	err := a.Engine.RestartServices(ctx, names, lockWait)
	var locked *applier.LockedError
	if ctx.Err() != nil || errors.As(err, &locked) || errors.Is(err, applier.ErrInterrupted) {
		return
	}
	h.restarted = append(h.restarted, a.sinceBoot())
	a.lookAtServices(ctx) // what was stopped has not crashed
	if err != nil {
		if err.Error() != h.failed {
			a.Log.Error("restarting services", "error", err)
			a.sendEventToNode(ctx, Event{Warning: true, Reason: EventNetworkRestarted, Message: published.Shorten("the Host Network Service has crashed, and restarting " + strings.Join(names, ", ") + " has failed: " + err.Error())})
		}
		h.failed = err.Error()
		return
	}
	h.process, h.count, h.unstable, h.failed = process, h.count+1, false, ""
	a.sendEventToNode(ctx, Event{Warning: true, Reason: EventNetworkRestarted,
		Message: "the Host Network Service has crashed, so " + strings.Join(names, " and ") + restartedText(len(names))})
}

func restartedText(n int) string {
	if n == 1 {
		return " was restarted"
	}
	return " were restarted"
}

// networkText is what people read of the host network in the condition.
func networkText(r published.Report) string {
	return fmt.Sprintf("bundle %s is applied; the Host Network Service crashes again and again (kube-proxy was restarted %s): Services may fail on this node", r.Desired.Short(), bundle.Count(r.NetworkRestarts, "time"))
}
