package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// asksBoot is a request of a person, of which the agent knows.
func asksBoot(n *Node) {
	n.Boot.Asked = bundle.Of([]byte("1"))
	n.Report.Features = []published.Feature{published.FeatureBoot}
}

// emptied is a node that was drained for a boot.
func emptied(n *Node) {
	asksBoot(n)
	claim(5, true)(n)
	n.Drained = true
}

// bootPermitted is a node whose agent may boot its host.
func bootPermitted(minutes int) edit {
	return func(n *Node) {
		emptied(n)
		n.Boot.Permitted, n.Permitted = n.Boot.Asked, reboot
		n.State.Turn = Turn{Bundle: n.Published, Impact: reboot, Boot: n.Boot.Asked, Begun: ago(minutes), Permitted: ago(minutes)}
	}
}

// replaced is a node whose annotation is not the one that the operator wrote.
func replaced(n *Node) { n.Published, n.Permitted, n.Boot.Permitted = "", "", "" }

func TestBootRules(t *testing.T) {
	undrained := func(n *Node) { n.Drained = false }
	unconfirmed := func(n *Node) { n.State.Slot.Held = false }
	postponed := func(n *Node) { n.State.Postponed = noon().Add(10 * time.Minute) }
	late := node("b", wants(drain), claim(1, false))
	checkNodeRules(t, bootRules(), []ruleCase{
		{rule: "a host that does not boot in time is given up", nodes: one(bootPermitted(31)), want: "release 1 restart cordon off scale-down off"},
		{rule: "a node agent that may boot its host is waited for", nodes: one(bootPermitted(5)), want: "Applying"},
		{rule: "a node agent that may boot its host is waited for", nodes: one(bootPermitted(5), notReady), want: "Applying"},
		{rule: "a node agent that may boot its host is waited for", nodes: one(bootPermitted(31), notReady), want: "Unreachable"},
		{rule: "an urgent change is published before a boot", nodes: one(asksBoot, wants(restart), paused, urgent(none)), want: "publish 3 none"},
		{rule: "an urgent change is published before a boot", nodes: one(emptied, undrained, wants(restart), paused, urgent(none)), want: "publish 3 none"},
		{rule: "a node that does not respond is not drained for a boot", nodes: one(asksBoot, silent), want: "Unreachable"},
		{rule: "a node that does not respond is not drained for a boot", nodes: one(emptied, silent), want: "release cordon off scale-down off"},
		{rule: "a node whose drain did not end in time boots later", nodes: one(asksBoot, postponed), want: "DrainBlocked"},
		{rule: "a boot begins with a slot among the unavailable nodes", nodes: one(asksBoot), want: "take cordon on scale-down on"},
		{rule: "a boot begins with a slot among the unavailable nodes", nodes: append(one(asksBoot), node("b", notReady)), want: "WaitingForAvailability"},
		{rule: "a reservation is confirmed when all reservations fit", nodes: one(emptied, unconfirmed), want: "hold"},
		{rule: "the latest reservation that does not fit is canceled", nodes: append(one(asksBoot, claim(0, false)), late), want: "withdraw cordon off scale-down off"},
		{rule: "a reservation that is not confirmed waits for a later one to be canceled", nodes: append(one(asksBoot, claim(2, false)), late), want: "WaitingForAvailability"},
		{rule: "a drain that does not end in time is postponed", nodes: one(asksBoot, claim(30, true)), want: "release cordon off scale-down off"},
		{rule: "a node with a confirmed slot is cordoned and drained", nodes: one(emptied, undrained), want: "drain"},
		{rule: "the host of a drained node may boot", nodes: one(emptied), want: "permit 1 reboot"},
	})
}

// TestWhenAHostIsBooted: a change that can begin comes first, and what keeps a rollout keeps no boot.
func TestWhenAHostIsBooted(t *testing.T) {
	given1 := with(func(n *Node) { n.Boot.Permitted = n.Boot.Asked })
	for name, tt := range map[string]struct {
		nodes  []Node
		policy func(*Policy)
		want   string
	}{
		"a node that is up to date":                              {nodes: one(asksBoot), want: "take cordon on scale-down on"},
		"a rollout that is paused":                               {nodes: proven(wants(restart), asksBoot), policy: func(p *Policy) { p.Paused = true }, want: "take cordon on scale-down on"},
		"a node that has failed":                                 {nodes: one(wants(restart), given(restart, 1), reporting(rolledBack, ""), asksBoot), want: "take cordon on scale-down on"},
		"an urgent input comes first, and waits for no place":    {nodes: append(proven(wants(restart), urgent(none), asksBoot), node("c", notReady)), policy: func(p *Policy) { p.Paused = true }, want: "publish 3 none"},
		"an urgent input that restarts something waits":          {nodes: proven(wants(restart), urgent(restart), asksBoot), policy: func(p *Policy) { p.Paused = true }, want: "take cordon on scale-down on"},
		"an urgent input is published already":                   {nodes: proven(wants(restart), urgent(none), asksBoot, with(func(n *Node) { n.Published, n.Permitted, n.PublishedUrgent = n.Urgent.Bundle, none, true })), policy: func(p *Policy) { p.Paused = true }, want: "take cordon on scale-down on"},
		"a paused node":                                          {nodes: one(asksBoot, paused), want: "Updated"},
		"a node that leaves":                                     {nodes: one(asksBoot, leavingSoon), want: "Updated"},
		"a node that joins":                                      {nodes: one(joining, asksBoot), want: "Joining"},
		"an agent that does not know of boots":                   {nodes: one(asksBoot, with(func(n *Node) { n.Report.Features = nil })), want: "Updated"},
		"the same value again":                                   {nodes: one(asksBoot, with(func(n *Node) { n.Report.Rebooted = n.Boot.Asked })), want: "Updated"},
		"a value that was given up":                              {nodes: one(asksBoot, with(func(n *Node) { n.State.Booted = n.Boot.Asked })), want: "Updated"},
		"a change that can begin":                                {nodes: proven(wants(restart), asksBoot), want: "publish 2 restart"},
		"a change that is under way":                             {nodes: proven(drained, given(reboot, 1), reporting(applying, ""), asksBoot), want: "Applying"},
		"a change that is under way while the rollout is paused": {nodes: proven(drained, given(reboot, 1), reporting(applying, ""), asksBoot), policy: func(p *Policy) { p.Paused = true }, want: "Applying"},
		"a canary that is observed":                              {nodes: one(done, canary, ended(1), asksBoot), want: "Settling"},
		"the host has booted":                                    {nodes: one(bootPermitted(5), with(func(n *Node) { n.Report.Rebooted = n.Boot.Asked })), want: "release 1 restart cordon off scale-down off"},
		"the annotation is removed in the turn":                  {nodes: one(bootPermitted(5), with(func(n *Node) { n.Boot.Asked = "" })), want: "Applying"},
		"the annotation is removed before":                       {nodes: one(emptied, with(func(n *Node) { n.Boot.Asked = "" })), want: "release cordon off scale-down off"},
		"a request without a disruptive permission":              {nodes: one(done, asksBoot, given1, with(func(n *Node) { n.State.Booted = n.Boot.Asked })), want: "Updated"},
	} {
		d := decide(ruleCase{nodes: tt.nodes, policy: tt.policy})
		d.applyFirst(nodeRules())
		got := ""
		if steps := d.fleet.plan.Steps; len(steps) > 0 {
			got = steps[0].text()[len("a "):]
		} else if nodes := d.fleet.plan.Nodes; len(nodes) > 0 {
			got = string(nodes[0].Reason)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestSlotsOfBootsKeepNoCanaryWaiting: a node with a slot for a boot, whose change needs no drain, is not chosen as the canary because of the slot. It would
// give the slot back, for a change that begins no sooner, while the next node takes one, and so on.
func TestSlotsOfBootsKeepNoCanaryWaiting(t *testing.T) {
	p := policy()
	p.MaxUnavailable, p.Canaries = intstr.FromInt32(2), 1
	nodes := []Node{node("a", wants(none)), node("b", wants(none), asksBoot, claim(0, false)), node("c", wants(none), asksBoot)}
	var got []string
	for _, s := range NextSteps(Fleet{Nodes: nodes, Policy: p, Now: noon()}).Steps {
		got = append(got, s.text())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a publish 2 none canary", "b hold", "c take cordon on scale-down on"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTheTurnOfABoot: a permission names the request, a release remembers it, and a canary stays one.
func TestTheTurnOfABoot(t *testing.T) {
	proved := func(n *Node) {
		n.State.Turn.Canary, n.State.Turn.Ended, n.State.Turn.Confirmed = true, ago(900), ago(890)
	}
	asked := bundle.Of([]byte("1"))
	permit := stamped(Fleet{Nodes: one(emptied, proved), Policy: policy(), Now: noon()}).Steps
	if len(permit) != 1 || permit[0].Boot != asked || permit[0].Permit != reboot {
		t.Fatalf("%+v", permit)
	}
	want := Turn{Bundle: digest(1, "a"), Impact: reboot, Boot: asked, Canary: true, Begun: ago(5), Permitted: noon(), Confirmed: ago(890)}
	if diff := cmp.Diff(want, permit[0].State.Turn); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, nodes := range map[string][]Node{
		"done":     one(bootPermitted(5), with(func(n *Node) { n.Report.Rebooted = asked })),
		"given up": one(bootPermitted(31)),
	} {
		plan := stamped(Fleet{Nodes: nodes, Policy: policy(), Now: noon()})
		if s := plan.Steps; len(s) != 1 || s[0].Boot != "" || s[0].State.Booted != asked || !s[0].State.Slot.IsZero() || s[0].Permit != restart {
			t.Errorf("%s: %+v", name, s)
		}
		if plan.Fleet.Degraded != 0 || plan.Fleet.Stopped != "" {
			t.Errorf("%s: a boot stops the rollout: %+v", name, plan.Fleet)
		}
	}
	prediction := PredictRollout(Fleet{Nodes: []Node{node("a", asksBoot), node("b", asksBoot)}, Policy: policy(), Now: noon()}, LearnDurations(Fleet{}))
	if prediction.Boots != 2 || len(prediction.Left) != 0 {
		t.Errorf("%+v", prediction)
	}
}

// TestABootThatWasErasedIsAskedForAsAnyOther: a kubelet may write the annotations of its Node, so it can erase which boots were done. That gives its node
// no more than another value of the annotation would, which it may write as well: the same place among the unavailable nodes, or the same wait.
func TestABootThatWasErasedIsAskedForAsAnyOther(t *testing.T) {
	done := with(func(n *Node) { n.Report.Rebooted, n.State.Booted = n.Boot.Asked, n.Boot.Asked })
	erase := with(func(n *Node) { n.Report.Rebooted, n.State = "", State{} })
	another := with(func(n *Node) { n.Boot.Asked = bundle.Of([]byte("2")) })
	steps := func(nodes []Node) string {
		plan := stamped(Fleet{Nodes: nodes, Policy: policy(), Now: noon()})
		var list []string
		for _, s := range plan.Steps {
			list = append(list, s.text())
		}
		return strings.Join(append(list, string(plan.Nodes[0].Reason)), ", ")
	}
	for name, c := range map[string]struct {
		edit   edit
		others []Node
	}{
		"there is a place": {edit: func(*Node) {}}, "there is none": {func(*Node) {}, []Node{node("b", notReady)}}, "another node has it": {func(*Node) {}, []Node{node("b", wants(drain), claim(1, true))}},
		"the node is paused": {edit: paused}, "it leaves": {edit: leavingSoon}, "it joins": {edit: joining}, "it does not answer": {edit: silent}, "it is not Ready": {edit: notReady},
	} {
		if got := steps(append(one(asksBoot, done, c.edit), c.others...)); strings.Contains(got, "take") && !strings.Contains(got, "b take") {
			t.Errorf("%s: a boot that is done is asked for again: %s", name, got)
		}
		erased, other := steps(append(one(asksBoot, done, c.edit, erase), c.others...)), steps(append(one(asksBoot, done, c.edit, another), c.others...))
		if erased != other {
			t.Errorf("%s: %q after it was erased, %q for another value", name, erased, other)
		}
	}
}

// TestAPermissionThatOthersReplace counts as long as its turn may take, since the host may be booting: the node is not released, and the same is signed again.
func TestAPermissionThatOthersReplace(t *testing.T) {
	refused := func(n *Node) { n.Report.State, n.Report.Desired = failing, "" } // as ObserveNode reads it
	another := func(n *Node) { n.Wanted, n.Cost = digest(3, "a"), reboot }
	early := func(n *Node) { n.State.Turn.Begun = ago(6) }
	for name, tt := range map[string]struct {
		nodes  []Node
		policy func(*Policy)
		want   string
	}{
		"a boot":                               {nodes: one(bootPermitted(5), replaced), want: "permit 1 reboot"},
		"its host is booting":                  {nodes: one(bootPermitted(5), replaced, refused, notReady), want: "permit 1 reboot"},
		"the node is paused":                   {nodes: one(bootPermitted(5), replaced, paused), want: "permit 1 reboot"},
		"pods have come":                       {nodes: one(bootPermitted(5), replaced, with(func(n *Node) { n.Drained = false })), want: "drain"},
		"a person has uncordoned it":           {nodes: one(bootPermitted(5), replaced, with(func(n *Node) { n.Unschedulable = false })), want: "drain cordon on"},
		"a change":                             {nodes: proven(drained, given(reboot, 5), replaced, refused), want: "permit 2 reboot"},
		"a change whose host is booting":       {nodes: proven(drained, given(reboot, 5), replaced, refused, notReady), want: "permit 2 reboot"},
		"the change is applied":                {nodes: proven(drained, given(drain, 5), reporting(applied, ""), replaced), want: "release 2 restart cordon off scale-down off"},
		"another change is wanted":             {nodes: proven(drained, given(reboot, 5), replaced, refused, another), want: "publish 3 reboot"},
		"another change is wanted, and paused": {nodes: proven(drained, given(reboot, 5), replaced, refused, another), policy: func(p *Policy) { p.Paused = true }, want: "Applying"},
		"a boot before a change that waits":    {nodes: proven(bootPermitted(5), wants(reboot), replaced), policy: func(p *Policy) { p.Paused = true }, want: "Applying"},
		"the turn takes too long":              {nodes: one(bootPermitted(5), replaced), policy: func(p *Policy) { p.Timeout = 5 * time.Minute }, want: "release cordon off scale-down off"},
		"it was permitted in an earlier turn":  {nodes: one(bootPermitted(5), replaced, early), want: "release cordon off scale-down off"},
		"the slot is not confirmed":            {nodes: one(bootPermitted(5), replaced, with(func(n *Node) { n.State.Slot.Held = false })), want: "withdraw cordon off scale-down off"},
		"it joins again":                       {nodes: one(bootPermitted(5), replaced, joining), want: "publish 1 reboot"},
	} {
		d := decide(ruleCase{nodes: tt.nodes, policy: tt.policy})
		d.applyFirst(nodeRules())
		got, before := "", tt.nodes[0].State
		if steps := d.fleet.plan.Steps; len(steps) > 0 {
			s := steps[0]
			got = s.text()[len("a "):]
			if s.Action == ActionPermit && (s.Boot != before.Turn.Boot || !cmp.Equal(s.State.Turn, before.Turn) || s.State.Slot != before.Slot) {
				t.Errorf("%s: something else is permitted: %+v", name, s)
			}
		} else if nodes := d.fleet.plan.Nodes; len(nodes) > 0 {
			got = string(nodes[0].Reason)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestARequestOnANode is read as a digest, and the permission only from a signed annotation.
func TestARequestOnANode(t *testing.T) {
	n := windowsnode.Decode(corev1.Node{})
	n.Annotations = map[string]string{published.RebootAnnotation: "1"}
	n.Desired = published.Desired{Bundle: digest(1, "a"), Boot: bundle.Of([]byte("1"))}
	if got := ObserveNode(n, published.Desired{}, published.ErrUnsigned).Boot; got != (Boot{Asked: bundle.Of([]byte("1"))}) {
		t.Errorf("unsigned: %+v", got)
	}
	if got := ObserveNode(n, n.Desired, nil).Boot; got != (Boot{Asked: bundle.Of([]byte("1")), Permitted: bundle.Of([]byte("1"))}) {
		t.Errorf("signed: %+v", got)
	}
}
