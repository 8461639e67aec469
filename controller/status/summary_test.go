package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/nodestate"
)

// TestSummary has the cases that other programs must tell apart. Each is a list of conditions that are not true, and hosts.
func TestSummary(t *testing.T) {
	expected := []string{InputsAccepted, Published, RolledOut, hostsJoined}
	failing := func(name string) Host {
		return Host{Name: name, State: nodestate.Degraded, Reason: "LoginRefused", Message: "the host refuses the login", Fix: "add the public key"}
	}
	no := func(of, reason string) metav1.Condition {
		return metav1.Condition{Type: of, Status: metav1.ConditionFalse, Reason: reason, Message: "because"}
	}
	unknown := func(of, reason string) metav1.Condition {
		return metav1.Condition{Type: of, Status: metav1.ConditionUnknown, Reason: reason, Message: "because"}
	}
	updated := &Nodes{Total: 6, Updated: 6}
	for _, c := range []struct {
		name       string
		conditions []metav1.Condition
		nodes      *Nodes
		hosts      []Host
		unlisted   int
		// want are Ready, Progressing and Degraded: status, reason, message.
		want [3]string
	}{
		{"all is done", nil, updated, nil, 0, [3]string{
			"True AllNodesUpdated 6 Windows nodes updated",
			"False NothingChanges no host is joining or being removed, and no node is being updated", "False NothingWrong no problems",
		}},
		{"no Windows node", nil, &Nodes{}, nil, 0, [3]string{"True AllNodesUpdated no Windows nodes, and no hosts to join", idle, healthy}},
		{"warnings, clocks and old kubelets are hints", []metav1.Condition{no(InputsClean, "Warned"), no(ClocksAgree, "ClockSkew"), no("NamespaceMonitored", "NamespaceNotMonitored"), no("NodeSettingsFollowed", "ImagePolicyIgnored"), no(WindowsRebooted, ReasonRebootPending), no(KubeletsUpgradeable, ReasonOldKubelets)}, updated, nil, 0, [3]string{"True AllNodesUpdated 6 Windows nodes updated", idle, healthy}},
		{"keys are exchanged", []metav1.Condition{no(KeysAccepted, ReasonKeysChanging)}, updated, nil, 0, [3]string{"False KeysChanging KeysAccepted: because", "True KeysChanging KeysAccepted: because", healthy}},
		{"a host refuses the key", []metav1.Condition{no(KeysAccepted, ReasonKeyNotAccepted)}, updated, nil, 0, [3]string{"False KeyNotAccepted KeysAccepted: because", idle, "True KeyNotAccepted KeysAccepted: because"}},
		{"another condition has the problem of the Secret", []metav1.Condition{unknown(KeysAccepted, ReasonKeyUnusable)}, updated, nil, 0, [3]string{"True AllNodesUpdated 6 Windows nodes updated", idle, healthy}},
		{"a rollout", []metav1.Condition{no(RolledOut, ReasonRollingOut)}, updated, nil, 0, [3]string{"False RollingOut RolledOut: because", "True RollingOut RolledOut: because", healthy}},
		{"a paused rollout", []metav1.Condition{no(RolledOut, ReasonPaused)}, updated, nil, 0, [3]string{"False RolloutPaused RolledOut: because", idle, healthy}},
		{"a rollout that has stopped", []metav1.Condition{no(RolledOut, ReasonStopped)}, updated, nil, 0, [3]string{"False RolloutStopped RolledOut: because", idle, "True RolloutStopped RolledOut: because"}},
		{"refused inputs are one problem", []metav1.Condition{no(InputsAccepted, "ProxyInvalid"), no(Published, ReasonInputsRefused), unknown(RolledOut, ReasonInputsRefused)}, updated, nil, 0,
			[3]string{"False ProxyInvalid InputsAccepted: because", idle, "True ProxyInvalid InputsAccepted: because"}},
		{"a change that waits for confirmation", []metav1.Condition{no(InputsConfirmed, "NodeImageUnreachable")}, updated, nil, 0,
			[3]string{"False NodeImageUnreachable InputsConfirmed: because", idle, "True NodeImageUnreachable InputsConfirmed: because"}},
		{"CAs that come within seconds", []metav1.Condition{no("TrustedCAReady", reasonTrustedCAPending)}, updated, nil, 0,
			[3]string{"False TrustedCAPending TrustedCAReady: because", "True TrustedCAPending TrustedCAReady: because", healthy}},
		{"four hosts that cannot join", []metav1.Condition{no(hostsJoined, "LoginRefused")}, updated, []Host{failing("a"), failing("b"), failing("c"), failing("d")}, 1, [3]string{
			"False LoginRefused " + three + "; and 2 more", idle, "True LoginRefused " + three + "; and 2 more",
		}},
		{"a host that joins while another one cannot", []metav1.Condition{no(hostsJoined, "LoginRefused")}, updated, []Host{failing("a"), {Name: "b", State: nodestate.Joining, Reason: "Joining", Message: "on the way"}}, 0, [3]string{
			"False LoginRefused a: the host refuses the login; fix: add the public key", "True Joining b: on the way", "True LoginRefused a: the host refuses the login; fix: add the public key",
		}},
		{"a removal", nil, updated, []Host{{Name: "a", State: nodestate.Removing, Reason: "Draining", Message: "draining"}}, 0, [3]string{"False Draining a: draining", "True Draining a: draining", healthy}},
		{"a removal that is stuck is listed once", []metav1.Condition{no(instancesRemoved, "LoginRefused")}, updated, []Host{failing("a")}, 0, [3]string{
			"False LoginRefused a: the host refuses the login; fix: add the public key", idle, "True LoginRefused a: the host refuses the login; fix: add the public key",
		}},
		{"a removal whose host is not listed yet", []metav1.Condition{unknown(instancesRemoved, "Removing")}, updated, nil, 0, [3]string{"False Removing InstancesRemoved: because", "True Removing InstancesRemoved: because", healthy}},
		{"an adoption waits for a person", []metav1.Condition{no(nodesAdopted, "WaitingForAdoption")}, &Nodes{Total: 1}, []Host{{Name: "a", State: nodestate.Waiting, Reason: "WaitingForAdoption", Message: "adopt it"}}, 0,
			[3]string{"False WaitingForAdoption a: adopt it", idle, healthy}},
		{"a node that has not followed", nil, &Nodes{Total: 6, Updated: 5, Stale: 1}, nil, 0, [3]string{"False HostsWait 5 of 6 Windows nodes updated", idle, healthy}},
	} {
		conditions := mergeConditions(c.conditions, given(expected))
		waiting := len(c.hosts) + c.unlisted
		var got [3]string
		for i, x := range summarizeConditions(conditions, Status{Nodes: c.nodes, Hosts: c.hosts, HostsWaiting: &waiting}, expected) {
			got[i] = fmt.Sprintf("%s %s %s", x.Status, x.Reason, x.Message)
			if want := [3]string{Ready, Progressing, Degraded}[i]; x.Type != want {
				t.Errorf("%s: condition %d is %s, want %s", c.name, i, x.Type, want)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

const (
	idle    = "False NothingChanges no host is joining or being removed, and no node is being updated"
	healthy = "False NothingWrong no problems"
	three   = "a: the host refuses the login; fix: add the public key; b: the host refuses the login; fix: add the public key; c: the host refuses the login; fix: add the public key"
)

// given are conditions that are true.
func given(types []string) []metav1.Condition {
	var list []metav1.Condition
	for _, of := range types {
		list = append(list, metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: "AsExpected"})
	}
	return list
}

// TestNothingIsReadyAtTheStart: a condition that was not written yet may be false.
func TestNothingIsReadyAtTheStart(t *testing.T) {
	expected := []string{InputsAccepted, hostsJoined}
	got := summarizeConditions(given(expected[:1]), Status{}, expected)[0]
	if got.Status != metav1.ConditionUnknown || got.Reason != ReasonStarting || !strings.HasSuffix(got.Message, "has not evaluated these conditions yet: HostsJoined") {
		t.Errorf("%+v", got)
	}
	if got := summarizeConditions(given(expected), Status{}, expected)[0]; got.Status != metav1.ConditionTrue {
		t.Errorf("%+v", got)
	}
}

func TestHostsAreListedByHowSevereTheyAre(t *testing.T) {
	var hosts []Host
	for i, s := range slices.Backward(nodestate.All()) {
		place := len(nodestate.All()) - 1 - i
		hosts = append([]Host{{Name: fmt.Sprint(place, "b"), State: s}, {Name: fmt.Sprint(place, "a"), State: s}}, hosts...)
	}
	var names []string
	for _, h := range SortHosts(hosts) {
		names = append(names, h.Name)
	}
	if want := []string{"0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b", "5a", "5b", "6a", "6b", "7a", "7b", "8a", "8b"}; !cmp.Equal(want, names) {
		t.Errorf("%q", names)
	}
	if got := len(SortHosts(make([]Host, MaxHosts+1))); got != MaxHosts {
		t.Errorf("%d hosts are listed", got)
	}
}

// A program that reads the numbers by the names of the release before finds them for one release.
func TestNumbersHaveTheNamesOfTheReleaseBefore(t *testing.T) {
	text, err := json.Marshal(Nodes{Total: 21, Updated: 1, Stale: 2, Updating: 3, Joining: 4, Waiting: 5, Refused: 6, NotReporting: 7, Degraded: 8})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"total": 21, "updated": 1, "stale": 2, "updating": 3, "joining": 4, "waiting": 5, "refused": 6, "notReporting": 7, "degraded": 8,
		"current": 1, "applying": 3, "unpublished": 4, "silent": 7, "failed": 8,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
