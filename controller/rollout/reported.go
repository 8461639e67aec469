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

// mostReporting is how many nodes a message names.
const mostReporting = 3

// reportedCondition is a condition that is computed from the reports of nodes.
type reportedCondition struct {
	// kind is the condition type. If no node reports a problem, good is the reason and message the text. Otherwise bad is
	// the reason, begin the text before the names of nodes, and fix what to do.
	kind, good, bad     string
	message, begin, fix string
	// find returns the problem that a node reports; false if it reports none.
	find func(published.Report) (string, bool)
}

func textOf(text string) (string, bool) { return text, text != "" }

// hostNetworksStable is False for nodes whose Host Network Service crashed again after their agents had used all restarts
// of kube-proxy.
func hostNetworksStable() reportedCondition {
	return reportedCondition{
		kind: status.HostNetworksStable, good: status.ReasonStable, bad: status.ReasonUnstable,
		message: "no node agent reports repeated crashes of the Host Network Service",
		begin:   "Services may fail on these nodes, because their Host Network Service crashes repeatedly",
		fix:     "look for the crashes in the Windows event log, install Windows updates, or run wmco reboot NODE",
		find:    func(r published.Report) (string, bool) { return "", r.NetworkUnstable },
	}
}

// sshServersRun is False for nodes whose agents cannot start the OpenSSH server.
func sshServersRun() reportedCondition {
	return reportedCondition{
		kind: status.SSHServersRun, good: status.ReasonSSHRuns, bad: status.ReasonSSHStopped,
		message: "no node agent reports that the OpenSSH server is stopped",
		begin:   "the operator cannot log in to these nodes where that is needed, because their OpenSSH server does not run",
		fix:     "see docs/runbooks/WindowsSSHServerStopped.md",
		find:    func(r published.Report) (string, bool) { return textOf(r.SSHStopped) },
	}
}

// imagesReachable is False for nodes whose image gateways reach, for images of a registry, neither a mirror nor the registry.
func imagesReachable() reportedCondition {
	return reportedCondition{
		kind: status.ImagesReachable, good: status.ReasonReachable, bad: status.ReasonUnreachable,
		message: "no image gateway reports a registry whose images it cannot get",
		begin:   "the image gateways of these nodes reach neither a mirror nor the registry",
		fix:     "see docs/runbooks/WindowsImagesUnreachable.md",
		find:    func(r published.Report) (string, bool) { return textOf(r.ImagesUnreachable) },
	}
}

// condition lists the nodes that report a problem, with the problem of the first one.
func (r reportedCondition) condition(nodes map[string]windowsnode.Node) metav1.Condition {
	var names []string
	for name, n := range nodes {
		if _, has := r.find(n.Report); has {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return metav1.Condition{Type: r.kind, Status: metav1.ConditionTrue, Reason: r.good, Message: r.message}
	}
	slices.Sort(names)
	fix := "fix: " + r.fix
	if text, _ := r.find(nodes[names[0]].Report); text != "" {
		fix = "on " + names[0] + ": " + text + "; " + fix
	}
	return metav1.Condition{
		Type: r.kind, Status: metav1.ConditionFalse, Reason: r.bad,
		Message: published.Shorten(fmt.Sprintf("%s: %s; %s", r.begin, bundle.JoinFirst(names, mostReporting, ", ", moreNodes), fix)),
	}
}

// windowsRebooted lists nodes on which Windows itself needs a reboot, unless the setting windowsReboots is Ignore.
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
		fix = "none; the operator drains and reboots these nodes within the limits of the rollout. Each cause reboots a node once. wmco status NODE shows when"
	}
	c.Message = published.Shorten("Windows needs a reboot on " +
		bundle.JoinFirst(waiting, mostReporting, "; ", moreNodes) + "; fix: " + fix)
	return c
}
