package plan

// rule is one decision: its name is a sentence, applies reports whether it is used, and result is the decision. A
// table of rules is read from the top, and the first rule that applies decides. So a rule may rely on what the rules
// above it have ruled out.
//
//	nodeRules         what happens to a node                               plan.go
//	  upToDateRules   a node that has the wanted bundle                    plan.go
//	  startRules      a node without a slot that lacks the wanted bundle   start.go
//	    urgentRules   what a node that has to wait gets at once            urgent.go
//	  bootRules       a node whose host boots as a person or Windows asks  boot.go
//	  slotRules       a node that has a slot, or something left of one     slot.go
//	    drainRules    a node that needs its slot                           slot.go
//	blockerRules      why a node may not start                             start.go
//	alertRules        why something urgent does not reach a node           urgent.go
//	failureRules      why a node counts as failed                          nodestate.go
//	canaryRules       which nodes are chosen as canaries first             gate.go
type rule[S, R any] struct {
	name    string
	applies func(S) bool
	result  R
}

// firstRule returns the first rule of a table that applies. One without a condition always does, and the last one of
// each table has none.
func firstRule[S, R any](rules []rule[S, R], subject S) rule[S, R] {
	for _, r := range rules {
		if r.applies == nil || r.applies(subject) {
			return r
		}
	}
	return rules[len(rules)-1]
}
