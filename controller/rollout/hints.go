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

// hostNetworksStable lists the nodes on which the Host Network Service crashes more often than the node agent restarts
// kube-proxy.
func hostNetworksStable(nodes map[string]windowsnode.Node) metav1.Condition {
	c := metav1.Condition{Type: status.HostNetworksStable, Status: metav1.ConditionTrue, Reason: status.ReasonStable,
		Message: "no Host Network Service is known to crash again and again"}
	unstable := namesOf(nodes, func(r published.Report) bool { return r.NetworkUnstable })
	if len(unstable) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonUnstable
	c.Message = published.Shorten("Services may fail on nodes whose Host Network Service crashes repeatedly: " +
		bundle.JoinFirst(unstable, mostHints, ", ", moreNodes) +
		" (fix: look for its crashes in the event log of Windows, install the updates of Windows, or run " +
		"wmco reboot NAME)")
	return c
}

// namesOf returns the names of the nodes with such a report, sorted.
func namesOf(nodes map[string]windowsnode.Node, has func(published.Report) bool) []string {
	var names []string
	for name, n := range nodes {
		if has(n.Report) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sshServersRun lists the nodes on which the OpenSSH server does not run although the node agent has tried to start it.
func sshServersRun(nodes map[string]windowsnode.Node) metav1.Condition {
	c := metav1.Condition{Type: status.SSHServersRun, Status: metav1.ConditionTrue, Reason: status.ReasonSSHRuns,
		Message: "no OpenSSH server of a node is known to be stopped"}
	stopped := namesOf(nodes, func(r published.Report) bool { return r.SSHStopped != "" })
	if len(stopped) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonSSHStopped
	c.Message = published.Shorten("the operator cannot log in to upgrade, repair or remove nodes whose OpenSSH " +
		"server does not run: " + bundle.JoinFirst(stopped, mostHints, ", ", moreNodes) +
		" (" + stopped[0] + ": " + nodes[stopped[0]].Report.SSHStopped +
		"; fix: see docs/runbooks/WindowsSSHServerStopped.md)")
	return c
}

// imagesReachable lists the nodes whose image gateway gets images of a registry from no place.
func imagesReachable(nodes map[string]windowsnode.Node) metav1.Condition {
	c := metav1.Condition{Type: status.ImagesReachable, Status: metav1.ConditionTrue, Reason: status.ReasonReachable,
		Message: "no image gateway of a node is known to miss all places of a registry"}
	missing := namesOf(nodes, func(r published.Report) bool { return r.ImagesUnreachable != "" })
	if len(missing) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonUnreachable
	c.Message = published.Shorten("no mirror or registry answers the image gateway of nodes: " +
		bundle.JoinFirst(missing, mostHints, ", ", moreNodes) + " (" + missing[0] + ": " +
		nodes[missing[0]].Report.ImagesUnreachable + "; fix: see docs/runbooks/WindowsImagesUnreachable.md)")
	return c
}

// windowsRebooted lists the nodes that Windows waits to boot, unless the settings ask to ignore it.
func windowsRebooted(nodes map[string]windowsnode.Node, mode render.WindowsRebootMode) metav1.Condition {
	c := metav1.Condition{Type: status.WindowsRebooted, Status: metav1.ConditionTrue, Reason: status.ReasonNoReboot,
		Message: "no node has a pending reboot of Windows"}
	if mode == render.WindowsRebootsIgnore {
		c.Message = "boots that Windows waits for are ignored, as the setting windowsReboots asks"
		return c
	}
	var waiting []string
	for name, n := range nodes {
		if why := windowsnode.PendingBoots(n.Report); len(why) > 0 {
			waiting = append(waiting, fmt.Sprintf("%s (%s)", name, windowsnode.DescribeBoots(why)))
		}
	}
	if len(waiting) == 0 {
		return c
	}
	slices.Sort(waiting)
	c.Status, c.Reason = metav1.ConditionFalse, status.ReasonRebootPending
	fix := "wmco reboot NAME"
	if mode == render.WindowsRebootsCoordinate {
		fix = "nothing: the operator drains and reboots them within the limits of rollout, once for each need; wmco status NODE shows when"
	}
	c.Message = published.Shorten("Windows waits for a boot of " +
		bundle.JoinFirst(waiting, mostHints, ", ", moreNodes) + " (fix: " + fix + ")")
	return c
}
