package rollout

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// reportingNode is a Node that has nothing but a report.
func reportingNode(r published.Report) windowsnode.Node {
	return windowsnode.Node{Node: &corev1.Node{}, Decoded: &windowsnode.Decoded{Report: r}}
}

// TestNodesThatWaitForABootOfWindowsAreNamed, with why, unless the settings ask to ignore it.
func TestNodesThatWaitForABootOfWindowsAreNamed(t *testing.T) {
	waits := func(reasons ...bundle.BootReason) windowsnode.Node {
		return reportingNode(published.Report{Facts: &bundle.Facts{PendingBoots: reasons}})
	}
	nodes := map[string]windowsnode.Node{"win-a": waits(), "win-b": waits(bundle.BootForUpdates, bundle.BootForFiles), "win-c": reportingNode(published.Report{}), "win-d": waits("anything that a host says")}
	c := windowsRebooted(nodes, render.WindowsRebootsReport)
	const want = "Windows needs a reboot on win-b: files in use must be replaced, a Windows update was installed; fix: "
	if c.Type != status.WindowsRebooted || c.Status != metav1.ConditionFalse || c.Reason != status.ReasonRebootPending || !strings.HasPrefix(c.Message, want) {
		t.Errorf("%+v", c)
	}
	if c := windowsRebooted(nodes, render.WindowsRebootsIgnore); c.Status != metav1.ConditionTrue {
		t.Errorf("ignored: %+v", c)
	}
	if c := windowsRebooted(nodes, render.WindowsRebootsCoordinate); c.Status != metav1.ConditionFalse || !strings.HasPrefix(c.Message, want) || !strings.Contains(c.Message, "fix: none") {
		t.Errorf("coordinated: %+v", c)
	}
	delete(nodes, "win-b")
	if c := windowsRebooted(nodes, render.WindowsRebootsReport); c.Status != metav1.ConditionTrue {
		t.Errorf("none: %+v", c)
	}
}

func TestNodesWhoseSSHServerIsStoppedAreNamed(t *testing.T) {
	nodes := map[string]windowsnode.Node{"win-a": reportingNode(published.Report{}), "win-b": reportingNode(published.Report{})}
	if c := sshServersRun().condition(nodes); c.Type != status.SSHServersRun || c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	nodes["win-b"] = reportingNode(published.Report{SSHStopped: "it is stopped"})
	if c := sshServersRun().condition(nodes); c.Status != metav1.ConditionFalse || c.Reason != status.ReasonSSHStopped || !strings.Contains(c.Message, "does not run: win-b; on win-b: it is stopped; fix: ") {
		t.Errorf("%+v", c)
	}
}

func TestNodesThatCannotPullAreNamed(t *testing.T) {
	nodes := map[string]windowsnode.Node{"win-a": reportingNode(published.Report{}), "win-b": reportingNode(published.Report{})}
	if c := imagesReachable().condition(nodes); c.Type != status.ImagesReachable || c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	nodes["win-b"] = reportingNode(published.Report{ImagesUnreachable: "quay.io since 2026-01-02T03:04:05Z (a.io: 503)"})
	if c := imagesReachable().condition(nodes); c.Status != metav1.ConditionFalse || c.Reason != status.ReasonUnreachable || !strings.Contains(c.Message, ": win-b; on win-b: quay.io since 2026-01-02T03:04:05Z (a.io: 503); fix: ") {
		t.Errorf("%+v", c)
	}
}

func TestNodesWhoseHostNetworkCrashesAreNamed(t *testing.T) {
	nodes := map[string]windowsnode.Node{"win-a": reportingNode(published.Report{NetworkRestarts: 3}), "win-b": reportingNode(published.Report{})}
	if c := hostNetworksStable().condition(nodes); c.Type != status.HostNetworksStable || c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	nodes["win-b"] = reportingNode(published.Report{NetworkRestarts: 3, NetworkUnstable: true})
	if c := hostNetworksStable().condition(nodes); c.Status != metav1.ConditionFalse || c.Reason != status.ReasonUnstable || !strings.Contains(c.Message, "crashes repeatedly: win-b; fix: ") {
		t.Errorf("%+v", c)
	}
}
