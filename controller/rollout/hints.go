package rollout

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// mostHints is how many nodes the message of a hint names.
const mostHints = 3

// hint is a condition that the reports of nodes decide.
type hint struct {
	// kind is its type, good its reason where no node reports anything, with the message, bad its reason otherwise.
	kind, good, bad string
	message         string
	// begin is what it says before the names of nodes, fix what to do.
	begin, fix string
	// find returns what a node reports. It reports false for nothing.
	find func(published.Report) (string, bool)
}

func textOf(text string) (string, bool) { return text, text != "" }

// hostNetworksStable is about nodes on which the Host Network Service crashes more often than the node agent restarts kube-proxy.
func hostNetworksStable() hint {
	return hint{
		kind: status.HostNetworksStable, good: status.ReasonStable, bad: status.ReasonUnstable,
		message: "the Host Network Service is stable on all nodes, by the reports of their agents",
		begin:   "Services may fail on these nodes, because their Host Network Service crashes repeatedly",
		fix:     "look for the crashes in the Windows event log, install Windows updates, or run wmco reboot NODE",
		find:    func(r published.Report) (string, bool) { return "", r.NetworkUnstable },
	}
}

// sshServersRun is about nodes on which the OpenSSH server does not run although the node agent has tried to start it.
func sshServersRun() hint {
	return hint{
		kind: status.SSHServersRun, good: status.ReasonSSHRuns, bad: status.ReasonSSHStopped,
		message: "the OpenSSH server runs on all nodes, by the reports of their agents",
		begin:   "the operator cannot log in to upgrade, repair or remove these nodes, because their OpenSSH server does not run",
		fix:     "see docs/runbooks/WindowsSSHServerStopped.md",
		find:    func(r published.Report) (string, bool) { return textOf(r.SSHStopped) },
	}
}

// imagesReachable is about nodes whose image gateway gets images of a registry from no place.
func imagesReachable() hint {
	return hint{
		kind: status.ImagesReachable, good: status.ReasonReachable, bad: status.ReasonUnreachable,
		message: "all nodes reach a mirror or the registry for their images, by the reports of their image gateways",
		begin:   "the image gateways of these nodes reach neither a mirror nor the registry",
		fix:     "see docs/runbooks/WindowsImagesUnreachable.md",
		find:    func(r published.Report) (string, bool) { return textOf(r.ImagesUnreachable) },
	}
}

// condition lists the nodes that report something, with what the first of them reports.
func (h hint) condition(nodes map[string]windowsnode.Node) metav1.Condition {
	var names []string
	for name, n := range nodes {
		if _, has := h.find(n.Report); has {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return metav1.Condition{Type: h.kind, Status: metav1.ConditionTrue, Reason: h.good, Message: h.message}
	}
	slices.Sort(names)
	fix := "fix: " + h.fix
	if text, _ := h.find(nodes[names[0]].Report); text != "" {
		fix = "on " + names[0] + ": " + text + "; " + fix
	}
	return metav1.Condition{
		Type: h.kind, Status: metav1.ConditionFalse, Reason: h.bad,
		Message: published.Shorten(fmt.Sprintf("%s: %s; %s", h.begin, bundle.JoinFirst(names, mostHints, ", ", moreNodes), fix)),
	}
}

// windowsRebooted lists the nodes that Windows waits to boot, unless the settings ask to ignore it.
func windowsRebooted(nodes map[string]windowsnode.Node, mode render.WindowsRebootMode) metav1.Condition {
	c := metav1.Condition{Type: status.WindowsRebooted, Status: metav1.ConditionTrue, Reason: status.ReasonNoReboot,
		Message: "no node needs a reboot for Windows itself"}
	if mode == render.WindowsRebootsIgnore {
		c.Message = "reboots that Windows needs are ignored (setting windowsReboots)"
		return c
	}
	var waiting []string
	for name, n := range nodes {
		if why := windowsnode.PendingBoots(n.Report); len(why) > 0 {
			waiting = append(waiting, name+": "+windowsnode.DescribeBoots(why))
		}
	}
	if len(waiting) == 0 {
		return c
	}
	slices.Sort(waiting)
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonRebootPending
	fix := "wmco reboot NODE"
	if mode == render.WindowsRebootsCoordinate {
		fix = "none; the operator drains and reboots these nodes within the limits of the rollout, once for each cause; wmco status NODE shows when"
	}
	c.Message = published.Shorten("Windows needs a reboot on " +
		bundle.JoinFirst(waiting, mostHints, "; ", moreNodes) + "; fix: " + fix)
	return c
}
