package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

// The three conditions that other programs wait for. They sum up all others, whoever wrote those, and mean what they
// mean in a ClusterOperator (github.com/openshift/api, config/v1, ClusterStatusConditionType) and to kstatus
// (sigs.k8s.io/cli-utils, pkg/kstatus):
//
//	              | Ready | Progressing | Degraded
//	all is done   | True  | False       | False
//	under way     | False | True        | False
//	paused, waits | False | False       | False      for what a person has decided: a pause, an adoption
//	needs someone | False | any         | True
//	just started  | Unknown                          until every expected condition was written
const (
	// Ready is true when every host of the inputs is a node with the newest bundle, and nothing waits for anyone.
	Ready = "Ready"
	// Progressing is true while hosts join or are removed, or nodes get another bundle.
	Progressing = "Progressing"
	// Degraded is true while something needs a person, whatever else is under way.
	Degraded = "Degraded"
)

// Reasons of the three, beside those of what they sum up.
const (
	ReasonReady    = "AllNodesUpdated"
	ReasonStarting = "Starting"
	ReasonIdle     = "NothingChanges"
	ReasonHealthy  = "NothingWrong"
	ReasonWaiting  = "HostsWait"
)

// IsSummary reports whether a condition is one of the three that sum up all others.
func IsSummary(conditionType string) bool {
	return conditionType == Ready || conditionType == Progressing || conditionType == Degraded
}

// mostNamed is how many problems a message names; it counts the others.
const mostNamed = 3

// maxNamed is how much a message has of all problems that it names, in bytes: with their number it fits into 1 KiB
// (published.Shorten).
const maxNamed = 990

// class is what a condition that is not true means to the summary.
type class int

const (
	// ignored is a hint, or follows from another condition.
	ignored class = iota
	// moving is under way, and ends without help.
	moving
	// waiting waits for what a person has decided, such as a pause.
	waiting
	// degraded needs a person.
	degraded
)

// Types of conditions of other writers, which are judged by their reason.
const (
	hostsJoined      = "HostsJoined"
	instancesRemoved = "InstancesRemoved"
	nodesAdopted     = "NodesAdopted"
)

// Types of conditions of other writers that are hints.
const (
	namespaceMonitored   = "NamespaceMonitored"
	nodeSettingsFollowed = "NodeSettingsFollowed"
)

// reasonTrustedCAPending is that of CAs that the network operator fills within seconds (checks.TrustedCALimit).
const reasonTrustedCAPending = "TrustedCAPending"

// hints are the types of conditions that nothing is decided by, and that are not summed up.
func hints() []string {
	return []string{ClocksAgree, ImagesReachable, InputsClean, KubeletsUpgradeable, namespaceMonitored, nodeSettingsFollowed,
		SSHServersRun, WindowsRebooted}
}

// IsHint reports whether nothing is decided by a condition, and the three do not sum it up.
func IsHint(conditionType string) bool { return slices.Contains(hints(), conditionType) }

// classOfCondition returns what a condition means that is not true.
func classOfCondition(c metav1.Condition) class {
	switch {
	case IsHint(c.Type):
		return ignored
	case c.Reason == ReasonInputsRefused: // InputsAccepted has the cause
		return ignored
	case c.Reason == ReasonKeyUnusable: // PrivateKeyValid has the cause
		return ignored
	case c.Reason == ReasonRollingOut, c.Reason == ReasonKeysChanging, c.Reason == reasonTrustedCAPending,
		c.Type == hostsJoined, c.Type == instancesRemoved:
		// hosts that cannot join or be removed are listed within seconds
		return moving
	case c.Reason == ReasonPaused, c.Type == nodesAdopted:
		return waiting
	}
	return degraded
}

// facts are summed up: problems in words, by what they mean, each with its reason.
type facts map[class][]problem

type problem struct{ reason, text string }

// sortFacts sorts conditions and hosts by what they mean.
func sortFacts(conditions []metav1.Condition, hosts []Host) facts {
	all := facts{}
	for _, h := range hosts {
		kind := waiting
		switch {
		case h.State.NeedsAttention():
			kind = degraded
		case h.isMoving():
			kind = moving
		}
		text := h.Name + ": " + h.Message
		if h.Fix != "" {
			text += "; fix: " + h.Fix
		}
		all[kind] = append(all[kind], problem{h.Reason, text})
	}
	for _, c := range conditions {
		if c.Status == metav1.ConditionTrue || IsSummary(c.Type) {
			continue
		}
		if len(hosts) > 0 && (c.Type == hostsJoined || c.Type == instancesRemoved || c.Type == nodesAdopted) {
			continue // the hosts say it
		}
		kind := classOfCondition(c)
		all[kind] = append(all[kind], problem{c.Reason, c.Type + ": " + c.Message})
	}
	return all
}

// summarizeConditions returns the three conditions for all other ones. Unlisted is the number of hosts that are not
// among the hosts. Expected are the types that the operator writes always: until they are there, nothing is known to be
// ready.
func summarizeConditions(conditions []metav1.Condition, s Status, expected []string) []metav1.Condition {
	all := sortFacts(conditions, s.Hosts)
	unlisted := 0
	if s.HostsWaiting != nil {
		unlisted = *s.HostsWaiting - len(s.Hosts)
	}
	bad := problemCondition(Degraded, all[degraded], unlisted,
		metav1.Condition{Reason: ReasonHealthy, Message: "no problems"})
	on := problemCondition(Progressing, all[moving], unlisted,
		metav1.Condition{Reason: ReasonIdle, Message: "no host is joining or being removed, and no node is being updated"})
	return []metav1.Condition{readyCondition(missingTypes(conditions, expected), s.Nodes, all, bad, on), on, bad}
}

// WithSummary returns the status with the three conditions, as a Writer writes it for all writers together.
func (s Status) WithSummary(expected []string) Status {
	s.Conditions = append(slices.Clone(s.Conditions),
		summarizeConditions(mergeConditions(s.Conditions, nil), s, expected)...)
	return s
}

// problemCondition is true if there are problems, which its message names.
func problemCondition(of string, problems []problem, unlisted int, none metav1.Condition) metav1.Condition {
	none.Type, none.Status = of, metav1.ConditionFalse
	if len(problems) == 0 {
		return none
	}
	var texts []string
	for _, p := range problems {
		texts = append(texts, published.ShortenTo(p.text, maxNamed/min(len(problems), mostNamed)))
	}
	rest := func(left int) string { return fmt.Sprintf("; and %d more", left+max(unlisted, 0)) }
	return metav1.Condition{
		Type: of, Status: metav1.ConditionTrue, Reason: problems[0].reason,
		Message: published.Shorten(bundle.JoinFirst(texts, mostNamed, "; ", rest)),
	}
}

// readyCondition reports whether everything is done, and otherwise the most important problem. Missing are the conditions that
// were not written yet.
func readyCondition(missing []string, nodes *Nodes, all facts, bad, on metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: Ready, Status: metav1.ConditionFalse}
	waits := problemCondition(Ready, all[waiting], 0, metav1.Condition{})
	switch {
	case bad.Status == metav1.ConditionTrue:
		c.Reason, c.Message = bad.Reason, bad.Message
	case len(missing) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonStarting,
			"the operator has just started and has not evaluated these conditions yet: "+strings.Join(missing, ", ")
	case on.Status == metav1.ConditionTrue:
		c.Reason, c.Message = on.Reason, on.Message
	case len(all[waiting]) > 0:
		c.Reason, c.Message = waits.Reason, waits.Message
	case nodes != nil && nodes.Updated < nodes.Total:
		c.Reason, c.Message = ReasonWaiting,
			fmt.Sprintf("%d of %s updated", nodes.Updated, bundle.Count(nodes.Total, "Windows node"))
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonReady, everythingDone(nodes)
	}
	return c
}

// everythingDone is the message when everything is as it should be.
func everythingDone(n *Nodes) string {
	if n == nil || n.Total == 0 {
		return "no Windows nodes, and no hosts to join"
	}
	return bundle.Count(n.Total, "Windows node") + " updated"
}

// missingTypes returns the expected types that were not written yet.
func missingTypes(conditions []metav1.Condition, expected []string) []string {
	var missing []string
	for _, of := range expected {
		if meta.FindStatusCondition(conditions, of) == nil {
			missing = append(missing, of)
		}
	}
	return missing
}
