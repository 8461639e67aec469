package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func ago(minutes int) time.Time { return noon().Add(-time.Duration(minutes) * time.Minute) }

func policy() Policy {
	return Policy{MaxUnavailable: intstr.FromInt32(1), MaxParallel: 2, Canaries: 1, FailureLimit: 2, Settle: 2 * time.Minute, Timeout: 30 * time.Minute}
}

func digest(version int, node string) bundle.Digest {
	return bundle.Of(fmt.Appendf(nil, "%d %s", version, node))
}

// stamped decides about nodes on which all has lasted since the times that stand on them, which was noted.
func stamped(f Fleet) Plan {
	f = ElapsedByStamps(f)
	for i, n := range f.Nodes {
		f.Nodes[i].State.Elapsed = n.Seen.followState(n.State, n.State).toElapsed()
	}
	return NextSteps(f)
}

type edit func(*Node)

// node has bundle 1 since yesterday, and wants it.
func node(name string, edits ...edit) Node {
	one := digest(1, name)
	n := Node{
		Name: name, Group: Group{bundle.PlatformAWS, "10.0.20348"}, Target: digest(1, ""), Wanted: one, Cost: bundle.ImpactNone,
		Published: one, Permitted: bundle.ImpactRestart, Since: ago(1000), Ready: true, ReadySince: ago(1000),
		Report: published.Report{State: published.StateApplied, Desired: one, Applied: one},
		State:  State{Turn: Turn{Bundle: one, Impact: bundle.ImpactRestart, Begun: ago(1001), Permitted: ago(1001)}},
	}
	for _, e := range edits {
		e(&n)
	}
	return n
}

// wants makes bundle 2 the wanted one, at a cost.
func wants(cost bundle.Impact) edit {
	return func(n *Node) { n.Wanted, n.Target, n.Cost = digest(2, n.Name), digest(2, ""), cost }
}

// given publishes bundle 2 some minutes ago.
func given(permit bundle.Impact, minutes int) edit {
	return func(n *Node) {
		n.Published, n.Permitted = digest(2, n.Name), permit
		n.State.Turn = Turn{Bundle: n.Published, Impact: permit, Begun: ago(minutes), Permitted: ago(minutes)}
	}
}

// reporting is a report about the published bundle.
func reporting(s published.State, impact bundle.Impact) edit {
	return func(n *Node) {
		n.Report = published.Report{State: s, Desired: n.Published, Impact: impact, Message: "no luck"}
		n.Since = ago(1)
	}
}

func claim(minutes int, held bool) edit {
	return func(n *Node) {
		n.State.Slot = Slot{Taken: ago(minutes), Held: held, ScaleDown: true}
		n.Unschedulable, n.CordonedFor, n.ScaleDownDisabled = true, published.CordonedForRollout, true
	}
}

func canary(n *Node) { n.State.Turn.Canary = true }

func done(n *Node) {
	wants(bundle.ImpactNone)(n)
	given(bundle.ImpactRestart, 10)(n)
	reporting(published.StateApplied, "")(n)
}

func with(change func(*Node)) edit { return change }

func (s Step) text() string {
	parts := []string{s.Node, string(s.Action)}
	if s.Bundle != "" {
		parts = append(parts, map[bundle.Digest]string{digest(1, s.Node): "1", digest(2, s.Node): "2", digest(3, s.Node): "3"}[s.Bundle], string(s.Permit))
	}
	if s.Cordon != SwitchKeep {
		parts = append(parts, "cordon "+string(s.Cordon))
	}
	if s.ScaleDown != SwitchKeep {
		parts = append(parts, "scale-down "+string(s.ScaleDown))
	}
	if s.State.Turn.Canary && (s.Action == ActionPublish || s.Action == ActionPermit) {
		parts = append(parts, "canary")
	}
	return strings.Join(parts, " ")
}

const (
	none, restart, drain, reboot = bundle.ImpactNone, bundle.ImpactRestart, bundle.ImpactDrain, bundle.ImpactReboot
	applied, applying            = published.StateApplied, published.StateApplying
	asks, rolledBack, failing    = published.StateNeedsPermission, published.StateRolledBack, published.StateFailed
)

// drained is a node in the middle of a turn that needs it.
func drained(n *Node) {
	wants(reboot)(n)
	claim(5, true)(n)
	n.Drained = true
}

func TestNext(t *testing.T) {
	notReady := with(func(n *Node) { n.Ready, n.ReadySince = false, ago(500) })
	byAdmin := with(func(n *Node) { n.Unschedulable = true })
	pausedNode := with(func(n *Node) { n.Paused = true })
	leaving := with(func(n *Node) { n.Leaving = "its Machine is being deleted" })
	open := node("z-done", done) // a node that proves bundle 2: the gate is open
	for _, tt := range []struct {
		name   string
		policy func(*Policy)
		nodes  []Node
		want   []string
		// line is in the line of the fleet or of a node.
		line string
	}{
		{"nothing to do", nil, []Node{node("a"), node("b")}, nil, "2 of 2 nodes done"},
		{"a change without impact: the canary first", nil, []Node{node("a", wants(none)), node("b", wants(none))}, []string{"a publish 2 none canary"}, "waiting for canary a"},
		{"the report of a canary without impact confirms it", nil, []Node{node("a", wants(none), given(none, 1), reporting(applied, ""), canary), node("b", wants(none))}, []string{"a confirm"}, ""},
		{"a canary that is off is not replaced by another node that is off", nil, []Node{node("a", wants(none), given(none, 1), notReady, canary), node("b", wants(reboot), notReady)}, nil, "b waiting for canary a"},
		{"then all at once", func(p *Policy) { p.MaxParallel = 1 }, []Node{node("a", wants(none)), node("b", wants(none)), node("c", wants(none)), open},
			[]string{"a publish 2 none", "b publish 2 none", "c publish 2 none"}, ""},
		{"restarts up to the limit", nil, []Node{node("a", wants(restart)), node("b", wants(restart)), node("c", wants(restart)), open},
			[]string{"a publish 2 restart", "b publish 2 restart"}, "waiting: services are restarting on 2 nodes, the limit of rollout.maxParallel"},
		{"a node that is unavailable already restarts before one that works", func(p *Policy) { p.MaxParallel = 1 }, []Node{node("a", wants(restart)), node("b", byAdmin, wants(restart)), open},
			[]string{"b publish 2 restart"}, ""},
		{"one that restarts holds its place", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(applying, "")), node("b", wants(restart)), node("c", wants(restart)), open},
			[]string{"b publish 2 restart"}, "a the node agent is applying the bundle"},
		{"one that has restarted and is not Ready holds its place", nil, []Node{node("a", wants(none), given(restart, 1), reporting(applied, ""), with(func(n *Node) { n.Ready = false })), node("b", wants(restart)), node("c", wants(restart)), open},
			[]string{"b publish 2 restart"}, ""},
		{"an unknown cost is asked for", nil, []Node{node("a", wants("")), open}, []string{"a publish 2 none"}, ""},
		{"an unknown cost that is a drain, by the report of the agent, takes a slot", nil, []Node{node("a", wants(""), given(none, 1), reporting(asks, drain)), node("b", wants(""), given(none, 1), reporting(asks, reboot)), open},
			[]string{"a take cordon on scale-down on"}, "b waiting for a slot (rollout.maxUnavailable: 1 node); another node is taking the last one"},
		{"a node that was off since its layers were collected", nil, []Node{node("a", wants(""), given(none, 100), notReady), node("b", wants("")), open}, []string{"b publish 2 none"}, ""},
		{"the agent reports more than the bundles say", nil, []Node{node("a", wants(none), given(none, 1), reporting(asks, restart)), open}, []string{"a permit 2 restart"}, ""},
		{"the bundles say more than the agent reports", nil, []Node{node("a", wants(drain), given(none, 1), reporting(asks, restart)), open}, []string{"a take cordon on scale-down on"}, ""},
		{"an impact that this operator does not know", nil, []Node{node("a", wants(none), given(none, 1), reporting(asks, "more")), open}, []string{"a take cordon on scale-down on"}, ""},
		{"a boot is pending without permission", nil, []Node{node("a", wants(none), given(restart, 1), reporting(published.StateRebootPending, "")), open}, []string{"a take cordon on scale-down on"}, ""},
		{"drift that needs a drain", nil, []Node{node("a", reporting(asks, drain)), node("b")}, []string{"a take cordon on scale-down on"}, ""},
		{"a drain takes a place, others wait", nil, []Node{node("a", wants(drain)), node("b", wants(reboot)), open}, []string{"a take cordon on scale-down on"}, "b waiting for a slot (rollout.maxUnavailable: 1 node); another node is taking the last one"},
		{"a percentage of the nodes", func(p *Policy) { p.MaxUnavailable = intstr.FromString("67%") }, []Node{node("a", wants(drain)), node("b", wants(reboot)), open},
			[]string{"a take cordon on scale-down on", "b take cordon on scale-down on"}, ""},
		{"another owner's annotation for the autoscaler stays", nil, []Node{node("a", wants(drain), with(func(n *Node) { n.ScaleDownDisabled = true })), open}, []string{"a take cordon on"}, ""},
		{"a node that is not Ready uses the place", nil, []Node{node("a", wants(drain)), node("b", notReady), open}, nil, "b (not Ready)"},
		{"a node that is about to go uses the place", nil, []Node{node("a", wants(drain)), node("b", leaving), open}, nil, "b (its Machine is being deleted)"},
		{"a node that an administrator cordoned uses the place", nil, []Node{node("a", wants(drain)), node("b", byAdmin), open}, nil, "b (cordoned by another user)"},
		{"and may use it itself", nil, []Node{node("a", wants(drain)), node("b", byAdmin, wants(drain)), open}, []string{"b take scale-down on"}, ""},
		{"a node that is not Ready and answers is cured although too many are away", nil, []Node{node("a", wants(drain), given(none, 1), reporting(asks, drain), notReady), node("b", notReady), open}, []string{"a take cordon on scale-down on"}, ""},
		{"a claim that fits is held", nil, []Node{node("a", wants(drain), claim(1, false)), open}, []string{"a hold"}, ""},
		{"of two claims the later one is withdrawn", nil, []Node{node("a", wants(drain), claim(1, false)), node("b", wants(drain), claim(2, false)), open}, []string{"a withdraw cordon off scale-down off"}, "b waiting until another node gives its slot back: too many have taken one"},
		{"a claim beside one that is held is withdrawn", nil, []Node{node("a", wants(drain), claim(9, false)), node("b", wants(drain), claim(2, true)), open}, []string{"a withdraw cordon off scale-down off", "b drain"}, ""},
		{"a held claim is drained", nil, []Node{node("a", wants(drain), claim(1, true)), open}, []string{"a drain"}, ""},
		{"a node that a user uncordoned is cordoned again", nil, []Node{node("a", wants(drain), claim(1, true), with(func(n *Node) { n.Unschedulable = false })), open}, []string{"a drain cordon on"}, ""},
		{"a drain that does not end gives its place back", nil, []Node{node("a", wants(drain), claim(31, true), with(func(n *Node) { n.DrainBlocked = "PodDisruptionBudget shop/db of pod shop/db-0" })), open},
			[]string{"a release cordon off scale-down off"}, "PodDisruptionBudget shop/db of pod shop/db-0"},
		{"what blocks a drain is named where others wait for the place", nil, []Node{node("a", wants(drain), claim(1, true), with(func(n *Node) { n.DrainBlocked = "PodDisruptionBudget shop/db of pod shop/db-0" })), node("b", wants(drain)), open},
			[]string{"a drain"}, "unavailable now: a (being updated: PodDisruptionBudget shop/db of pod shop/db-0)"},
		{"another change comes while drift is drained for", nil, []Node{node("a", reporting(asks, reboot), with(func(n *Node) { n.Report.Applied = n.Published }), wants(none), claim(1, true)), open}, []string{"a drain"}, ""},
		{"and is permitted together", nil, []Node{node("a", reporting(asks, reboot), with(func(n *Node) { n.Report.Applied = n.Published }), wants(none), claim(1, true), with(func(n *Node) { n.Drained = true })), open}, []string{"a publish 2 reboot"}, ""},
		{"and lets others go first", nil, []Node{node("a", wants(drain), with(func(n *Node) { n.State.Postponed = ago(-5) })), node("b", wants(drain)), open}, []string{"b take cordon on scale-down on"}, ""},
		{"a drained node is permitted what it needs", nil, []Node{node("a", drained), open}, []string{"a publish 2 reboot"}, ""},
		{"a permission in use is waited for", nil, []Node{node("a", drained, given(reboot, 1), reporting(applying, "")), open}, nil, "a the node agent is applying the bundle; times out at"},
		{"a boot is waited for", nil, []Node{node("a", drained, given(reboot, 1), reporting(published.StateRebootPending, ""), notReady), open}, nil, "a the host is rebooting; times out at"},
		{"a finished node is released, and the permission ends", nil, []Node{node("a", drained, given(reboot, 5), reporting(applied, "")), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"not before it is Ready", nil, []Node{node("a", drained, given(reboot, 5), reporting(applied, ""), notReady), open}, nil, "not Ready yet"},
		{"a node that an administrator cordoned stays cordoned", nil, []Node{node("a", drained, given(reboot, 5), reporting(applied, ""), with(func(n *Node) { n.CordonedFor = "" })), open}, []string{"a release 2 restart scale-down off"}, ""},
		{"a node that was rolled back is released", nil, []Node{node("a", drained, given(reboot, 5), reporting(rolledBack, "")), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"a cordon without a claim is taken back", nil, []Node{node("a", with(func(n *Node) { n.Unschedulable, n.CordonedFor = true, published.CordonedForRollout }))}, []string{"a release cordon off"}, ""},
		{"a permission without a claim is taken back", nil, []Node{node("a", with(func(n *Node) { n.Permitted = reboot }))}, []string{"a release 1 restart"}, ""},
		{"the wanted bundle changes while a node is drained", nil, []Node{node("a", drained, given(reboot, 1), reporting(applying, ""), with(func(n *Node) { n.Wanted, n.Target, n.Cost = digest(3, "a"), digest(2, ""), restart })), open}, []string{"a publish 3 drain"}, ""},
		{"a claim that is not needed any more", nil, []Node{node("a", wants(restart), claim(1, true)), open}, []string{"a release cordon off scale-down off"}, ""},
		{"a canary settles", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended = ago(1) })), node("b", wants(restart))}, nil, "canary, settling until 2026-01-01T12:01:00Z"},
		{"a canary with restarts is first seen to have the bundle", nil, []Node{node("a", done, canary), node("b", wants(restart))}, []string{"a release"}, ""},
		{"a canary that has settled is confirmed", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended = ago(2) })), node("b", wants(restart))}, []string{"a confirm"}, ""},
		{"not if its pods are not back", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended, n.Unsettled = ago(2), "3 pods are not Ready" })), node("b", wants(restart))}, nil, "3 pods are not Ready"},
		{"a service that crashes on the canary stops the rollout", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended, n.Report.Crashed = ago(1), []string{"kube-proxy"} })), node("b", wants(restart))}, nil, "stopped: canary a failed (crashed after the change: kube-proxy)"},
		{"also one that had settled", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended, n.Report.Crashed = ago(5), []string{"kube-proxy"} })), node("b", wants(restart))}, nil, "stopped: canary a failed (crashed after the change: kube-proxy)"},
		{"one that crashes after the canary was confirmed does not", nil, []Node{node("a", done, canary, with(func(n *Node) {
			n.State.Turn.Ended, n.State.Turn.Confirmed, n.Report.Crashed = ago(5), ago(3), []string{"kube-proxy"}
		})), node("b", wants(restart))}, []string{"b publish 2 restart"}, ""},
		{"not if it was away a moment ago", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended, n.ReadySince = ago(5), ago(1) })), node("b", wants(restart))}, nil, "settling until"},
		{"a canary that never settles stops the rollout", nil, []Node{node("a", done, canary, with(func(n *Node) { n.State.Turn.Ended, n.Unsettled = ago(40), "kubelet crashes" })), node("b", wants(restart))}, nil, "stopped: canary a failed (not settled after the update: kubelet crashes)"},
		{"a canary that is rolled back stops the rollout", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(rolledBack, ""), canary), node("b", wants(restart))}, nil, "stopped: canary a failed (rolled back: no luck)"},
		{"a canary that fails stops the rollout", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(failing, ""), canary), node("b", wants(restart))}, nil, "stopped: canary a failed (no luck)"},
		{"a failed node below the limit stops no other", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(rolledBack, "")), node("b", wants(restart)), open}, []string{"b publish 2 restart"}, ""},
		{"failures up to the limit stop the rollout", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(rolledBack, "")), node("b", wants(restart), given(restart, 1), reporting(rolledBack, "")), node("c", wants(restart)), open}, nil, "stopped: 2 nodes failed: a (rolled back: no luck), b (rolled back: no luck)"},
		{"a paused node does not count as failed", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(rolledBack, ""), pausedNode), node("b", wants(restart))}, []string{"b publish 2 restart canary"}, ""},
		{"a node that is about to go does not count as failed", nil, []Node{node("a", wants(restart), given(restart, 1), reporting(rolledBack, ""), leaving), node("b", wants(restart))}, []string{"b publish 2 restart canary"}, ""},
		{"another cause resumes, with the same node as the canary", nil, []Node{node("a", wants(restart)), node("b", wants(restart), reporting(rolledBack, ""))}, []string{"b publish 2 restart canary"}, ""},
		{"a turn that takes too long counts as failed", func(p *Policy) { p.FailureLimit = 1 }, []Node{node("a", drained, given(reboot, 31), reporting(published.StateRebootPending, ""), notReady), node("b", wants(none)), open}, nil, "a (not finished within 30m, the limit rollout.nodeTimeout)"},
		{"a restart that takes too long keeps no place", func(p *Policy) { p.MaxParallel = 1 }, []Node{node("a", wants(restart), given(restart, 31), reporting(applying, "")), node("b", wants(restart)), open}, []string{"b publish 2 restart"}, "a not finished within 30m, the limit rollout.nodeTimeout"},
		{"a node that has the bundle and does not come back counts as failed", func(p *Policy) { p.FailureLimit = 1 }, []Node{node("a", drained, given(reboot, 31), reporting(applied, ""), notReady), node("b", wants(none)), open}, nil, "a (not Ready within 30m, the limit rollout.nodeTimeout)"},
		{"a canary does not stand for another kind of bundle", nil, []Node{node("a", wants(none)), node("b", wants(none), with(func(n *Node) { n.Target = digest(3, "") })), open}, []string{"a publish 2 none", "b publish 2 none canary"}, ""},
		{"a node that boots is left alone although another bundle is wanted", nil, []Node{node("a", drained, given(reboot, 1), reporting(published.StateRebootPending, ""), notReady, with(func(n *Node) { n.Wanted, n.Cost = digest(3, "a"), reboot })), open}, nil, "a the host is rebooting; times out at"},
		{"a taken node whose agent falls silent is released", nil, []Node{node("a", wants(drain), claim(1, true), with(func(n *Node) { n.Silent = true })), open}, []string{"a release cordon off scale-down off"}, ""},
		{"the rollout is paused", func(p *Policy) { p.Paused = true }, []Node{node("a", wants(none)), node("b", wants(restart), given(none, 1), reporting(asks, restart)), open}, nil, "paused; fix: set rollout.paused to false"},
		{"a node in its turn goes on while the rollout is paused", func(p *Policy) { p.Paused = true }, []Node{node("a", drained, given(reboot, 5), reporting(applied, "")), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"a node that was paused before its agent began gives its place back", nil, []Node{node("a", drained, given(reboot, 40), pausedNode), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"a node that was paused in a turn that failed gives its place back", nil, []Node{node("a", drained, given(reboot, 40), reporting(failing, ""), pausedNode), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"an urgent input reaches a node that was paused in a turn that failed", nil, []Node{node("a", wants(reboot), given(restart, 40), reporting(failing, ""), pausedNode, with(urgent(none))), open}, []string{"a publish 3 none"}, ""},
		{"a node that was paused in its turn may have begun", nil, []Node{node("a", drained, given(reboot, 5), pausedNode), open}, nil, ""},
		{"a drained node that has not begun is released when the rollout is paused", func(p *Policy) { p.Paused = true }, []Node{node("a", drained), open}, []string{"a release cordon off scale-down off"}, ""},
		{"a paused node", nil, []Node{node("a", wants(none), pausedNode), open}, nil, "the node is paused"},
		{"a node that is about to go", nil, []Node{node("a", wants(none), leaving), open}, nil, "its Machine is being deleted"},
		{"an urgent input reaches a paused node", nil, []Node{node("a", wants(drain), pausedNode, with(urgent(none)))}, []string{"a publish 3 none"}, ""},
		{"an urgent input reaches a node that waits for a place", nil, []Node{node("a", wants(drain), with(urgent(none))), node("b", notReady), open}, []string{"a publish 3 none"}, ""},
		{"an urgent input was published as not urgent before the node was paused", nil, []Node{node("a", wants(drain), pausedNode, with(urgent(none)), with(func(n *Node) { n.Published, n.Permitted = n.Urgent.Bundle, none }))}, []string{"a publish 3 none"}, ""},
		{"an urgent input was published as urgent", nil, []Node{node("a", wants(drain), pausedNode, with(urgent(none)), with(func(n *Node) { n.Published, n.Permitted, n.PublishedUrgent = n.Urgent.Bundle, none, true }))}, nil, ""},
		{"an urgent input that costs something is told", nil, []Node{node("a", wants(drain), pausedNode, with(urgent(restart)))}, nil, ""},
		{"an urgent input reaches a node that failed, which is remembered", nil, []Node{node("a", wants(drain), given(drain, 9), with(func(n *Node) { n.Permitted = restart }), reporting(rolledBack, ""), with(urgent(none)))}, []string{"a publish 3 none"}, ""},
		{"a node that failed before is not retried", nil, []Node{node("a", wants(restart), with(func(n *Node) { n.State.Failed = n.Wanted })), open}, nil, "rolled back"},
		{"a node that is off is asked", nil, []Node{node("a", wants(restart), notReady), open}, []string{"a publish 2 none"}, ""},
		{"an agent that is silent is asked", nil, []Node{node("a", wants(reboot), with(func(n *Node) { n.Silent = true })), open}, []string{"a publish 2 none"}, ""},
		{"a permission that is not answered is taken back", nil, []Node{node("a", wants(restart), given(restart, 31)), open}, []string{"a permit 2 none"}, ""},
		{"the canary is not a node that is off", nil, []Node{node("a", wants(restart), notReady), node("b", byAdmin, wants(restart)), node("c", wants(restart))}, []string{"c publish 2 restart canary"}, ""},
		{"each platform and build has its canary", nil, []Node{node("a", wants(none)), node("b", wants(none), with(func(n *Node) { n.Group.OSBuild = "10.0.17763" }))}, []string{"a publish 2 none canary", "b publish 2 none canary"}, ""},
		{"no canaries", func(p *Policy) { p.Canaries = 0 }, []Node{node("a", wants(none)), node("b", wants(none))}, []string{"a publish 2 none", "b publish 2 none"}, ""},
		{"executables are on their way", nil, []Node{node("a", wants(restart), with(func(n *Node) { n.PayloadPending = true })), open}, nil, "executables are being copied"},
		{"a joining node is permitted everything and is no canary", nil, []Node{node("a", wants(""), with(func(n *Node) { n.Unschedulable, n.Joining, n.Ready = true, true, false }))}, []string{"a publish 2 reboot"}, ""},
		{"no bundle is rendered", nil, []Node{node("a", with(func(n *Node) { n.Wanted = "" }))}, nil, "no new bundle is rendered"},
		{"annotations of a newer operator", nil, []Node{node("a", wants(none), with(func(n *Node) { n.Foreign = "its rollout annotation has schema 2" })), open}, nil, "schema 2"},
	} {
		p := policy()
		if tt.policy != nil {
			tt.policy(&p)
		}
		got := stamped(Fleet{Nodes: tt.nodes, Policy: p, Now: noon()})
		var steps []string
		for _, s := range got.Steps {
			steps = append(steps, s.text())
		}
		if diff := cmp.Diff(tt.want, steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", tt.name, diff, got.Fleet.Message)
		}
		all := got.Fleet.Message
		for _, n := range got.Nodes {
			all += "\n" + n.Node + " " + n.Message
		}
		if !strings.Contains(all, tt.line) {
			t.Errorf("%s: %q is not in %s", tt.name, tt.line, all)
		}
	}
}

func urgent(cost bundle.Impact) func(*Node) {
	return func(n *Node) {
		n.Urgent = Urgent{Bundle: digest(3, n.Name), Cost: cost, Inputs: []UrgentInput{clientCA()}}
	}
}

func clientCA() UrgentInput {
	return UrgentInput{Name: "kubelet client CA", Text: "the kubelet client CA (signer expires on 2026-03-01)", Expires: time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)}
}

func TestUrgentThatDoesNotReachANode(t *testing.T) {
	paused := func(change ...func(*Node)) Node {
		n := node("a", wants(drain), urgent(none), func(n *Node) { n.Paused = true })
		for _, c := range change {
			c(&n)
		}
		return n
	}
	given := func(minutes int) func(*Node) {
		return func(n *Node) {
			n.Published, n.Permitted = n.Urgent.Bundle, none
			n.State.Turn = Turn{Bundle: n.Urgent.Bundle, Impact: none, Begun: ago(minutes), Permitted: ago(minutes)}
		}
	}
	answers := func(s published.State, message string) func(*Node) {
		return func(n *Node) { n.Report = published.Report{State: s, Desired: n.Published, Message: message} }
	}
	for _, tt := range []struct {
		name string
		node Node
		want string
	}{
		{"it is published", paused(), ""},
		{"it was published a moment ago", paused(given(1)), ""},
		{"its agent does nothing", paused(given(99)), "not applied by the node agent"},
		{"its agent rolled it back", paused(given(1), answers(rolledBack, "no disk")), "no disk"},
		{"the node is off", paused(given(99), func(n *Node) { n.Ready = false }), ""},
		{"it is mixed with other changes", paused(func(n *Node) { n.Urgent = Urgent{Mixed: "the pull secret of quay.io"} }), "the pull secret of quay.io, which can be published only with other changes"},
	} {
		var all []string
		for _, h := range stamped(Fleet{Nodes: []Node{tt.node}, Policy: policy(), Now: noon()}).Fleet.Urgent {
			all = append(all, h.Message)
		}
		if got := strings.Join(all, "\n"); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestAPausedNodeThatHasNotBegun: a bundle that was published before the pause is not applied, and does not hide an urgent one.
func TestAPausedNodeThatHasNotBegun(t *testing.T) {
	n := node("a", wants(restart), given(restart, 1), urgent(none), func(n *Node) { n.Paused = true })
	got := stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()})
	if len(got.Steps) != 1 || got.Steps[0].Bundle != n.Urgent.Bundle || !got.Steps[0].Urgent || got.Steps[0].Permit != none {
		t.Errorf("%+v, %+v", got.Steps, got.Nodes)
	}
}

func TestUrgentIsRememberedAndTold(t *testing.T) {
	failed := node("a", wants(drain), given(restart, 9), reporting(rolledBack, ""), urgent(none))
	got := stamped(Fleet{Nodes: []Node{failed}, Policy: policy(), Now: noon()})
	if len(got.Steps) != 1 || got.Steps[0].State.Failed != failed.Wanted || got.Steps[0].State.Past[0].Result != rolledBack {
		t.Errorf("the failure is forgotten: %+v", got.Steps)
	}
	failed.State, failed.Published, failed.Permitted = got.Steps[0].State, got.Steps[0].Bundle, none
	reporting(applied, "")(&failed)
	if again := stamped(Fleet{Nodes: []Node{failed, node("b", wants(drain))}, Policy: policy(), Now: noon()}); len(again.Steps) > 0 || !strings.Contains(again.Fleet.Stopped, "canary a failed (rolled back)") {
		t.Errorf("the rollout goes on: %+v", again.Steps)
	}
	failed.Retry = "2026-01-01"
	if again := stamped(Fleet{Nodes: []Node{failed}, Policy: policy(), Now: noon()}); len(again.Steps) != 1 || again.Steps[0].Action != ActionReserve {
		t.Errorf("a person asks for another try: %+v", again.Steps)
	}
	costly := node("a", wants(drain), urgent(restart))
	costly.Paused = true
	want := []Held{{Node: "a", Message: "the kubelet client CA (signer expires on 2026-03-01) (impact restart): the node is paused", Inputs: []UrgentInput{clientCA()}}}
	if diff := cmp.Diff(want, stamped(Fleet{Nodes: []Node{costly}, Policy: policy(), Now: noon()}).Fleet.Urgent); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	same := node("a", wants(none), given(none, 1), reporting(rolledBack, ""))
	next := node("b", wants(none))
	next.Urgent = Urgent{Bundle: next.Wanted, Cost: none, Inputs: []UrgentInput{{Name: "pull secret", Text: "the pull secret"}}}
	if got := stamped(Fleet{Nodes: []Node{same, next}, Policy: policy(), Now: noon()}); len(got.Steps) > 0 {
		t.Errorf("what failed on the canary is published as urgent: %+v", got.Steps)
	}
}

func TestWake(t *testing.T) {
	settling := node("a", done, canary, func(n *Node) { n.State.Turn.Ended = ago(1) })
	late := node("b", wants(restart), given(restart, 10), reporting(applying, ""), func(n *Node) { n.State.Elapsed.Permitted = 450 })
	for name, tt := range map[string]struct {
		nodes []Node
		want  time.Duration
	}{
		"nothing to wait for":           {[]Node{node("c")}, 0},
		"a canary settles":              {[]Node{settling, late}, time.Minute},
		"the time of a turn is written": {[]Node{late}, 5 * time.Minute},
	} {
		if got := NextSteps(ElapsedByStamps(Fleet{Nodes: tt.nodes, Policy: policy(), Now: noon()})).Wake; got != tt.want {
			t.Errorf("%s: %s, not %s", name, got, tt.want)
		}
	}
}

// TestTheLogOfTheNodeThatStoppedTheRollout goes with the reason, and not that of what the node had before.
func TestTheLogOfTheNodeThatStoppedTheRollout(t *testing.T) {
	log := bundle.LogTail{Service: "kubelet", Lines: []string{"exit 1"}}
	reports := func(n *Node) { n.Report.Log = log }
	for name, tt := range map[string]struct {
		nodes []Node
		want  bundle.LogTail
	}{
		"the canary was rolled back":         {[]Node{node("a", wants(restart), given(restart, 1), reporting(published.StateRolledBack, ""), with(reports), canary), node("b", wants(restart))}, log},
		"what it reports is about another":   {[]Node{node("a", wants(restart), given(restart, 31), reporting(published.StateRolledBack, ""), with(reports), canary, with(func(n *Node) { n.Report.Desired = digest(1, "a") })), node("b", wants(restart))}, bundle.LogTail{}},
		"another node has a log and is well": {[]Node{node("a", wants(restart), given(restart, 1), reporting(published.StateRolledBack, ""), canary), node("b", wants(restart), with(reports))}, bundle.LogTail{}},
	} {
		if diff := cmp.Diff(tt.want, stamped(Fleet{Nodes: tt.nodes, Policy: policy(), Now: noon()}).Fleet.Log); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// BenchmarkPlan is the plan for 5,000 nodes, all but one of which wait for a canary.
func BenchmarkPlan(b *testing.B) {
	f := Fleet{Policy: policy(), Now: noon()}
	f.Policy.Canaries = 1
	f.Nodes = append(f.Nodes, node("win-0000", wants(restart), given(restart, 1), reporting(applying, ""), func(n *Node) { n.State.Turn.Canary = true }))
	for i := range 4999 {
		f.Nodes = append(f.Nodes, node(fmt.Sprintf("win-%04d", i+1), wants(restart)))
	}
	f = ElapsedByStamps(f)
	b.ReportAllocs()
	for b.Loop() {
		NextSteps(f)
	}
}
