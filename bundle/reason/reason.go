// Package reason is the closed list of reasons: of findings (bundle.Finding.Reason), of hosts, nodes and conditions in
// a status, and of Events, each with its meaning and what to do. docs/reasons.md and `wmco explain` are made from it.
// It decides nothing: whoever makes a finding chooses the reason.
package reason

import (
	"slices"
	"strings"
)

// Entry explains one reason.
type Entry struct {
	Reason string
	// Severity is that of the findings, or both where it depends on the case; empty elsewhere.
	Severity string
	// Meaning is one sentence or two, Fix what the user does about it.
	Meaning, Fix string
}

// fixInFinding is for findings that name the object, the command or the values of their fix.
const fixInFinding = "Apply the fix of the finding."

// Severities, as the documentation prints them.
const (
	isError        = "error"
	isWarning      = "warning"
	isInfo         = "info"
	errorOrWarning = "error or warning"
	warningOrInfo  = "warning or info"
)

// IsAcceptable reports whether some of the findings can be accepted. What would stop all pods cannot, although the
// operator, which holds it, has it as a warning.
func (e Entry) IsAcceptable() bool { return e.Severity != isError && e.Reason != NodeImageUnreachable }

// HasFix reports whether Fix is more than that nothing is to be done, or that the finding has the fix.
func (e Entry) HasFix() bool {
	return e.Fix != "" && e.Fix != fixNothing && e.Fix != "None." && e.Fix != fixInFinding
}

// Area is a group of reasons.
type Area struct {
	Title   string
	Entries []Entry
	// FixIsInFindings is true where each finding has its whole fix: the page does not repeat it.
	FixIsInFindings bool
}

// Areas returns every reason once, in the order of the documentation.
func Areas() []Area {
	return []Area{
		{Title: "Reading the inputs", Entries: inputReasons(), FixIsInFindings: true},
		{Title: "The cluster", Entries: clusterReasons()},
		{Title: "Certificates and secrets", Entries: secretReasons()},
		{Title: "Nodes", Entries: nodeReasons()},
		{Title: "What Windows nodes ignore", Entries: ignoredReasons()},
		{Title: "Hosts before they join", Entries: hostReasons(), FixIsInFindings: true},
		{Title: "Images and mirrors", Entries: imageReasons()},
		{Title: "The payload", Entries: executableReasons()},
		{Title: "MachineSets", Entries: machineSets(), FixIsInFindings: true},
	}
}

// OfInputs returns the entries of findings about the inputs of nodes. Those of a host before it joins and of a
// MachineSet are of commands that read no settings.
func OfInputs() []Entry {
	return slices.Concat(
		inputReasons(), clusterReasons(), secretReasons(), nodeReasons(), ignoredReasons(), imageReasons(),
		executableReasons(),
	)
}

// What is after the meaning of a reason that not all programs report. IsReportedByAll and docs/reasons.md go by it.
const (
	byOperator    = " Only the operator reports this."
	byCommandLine = " Only the command line reports this."
	byValidate    = " Only `wmco validate` checks this."
)

// SplitOperatorOnly returns the meaning without the sentence that only the operator reports it, and whether it has that sentence.
func (e Entry) SplitOperatorOnly() (meaning string, is bool) {
	return strings.CutSuffix(e.Meaning, byOperator)
}

// IsReportedByAll reports whether all programs that read the inputs give the findings of a reason.
func IsReportedByAll(reason string) bool {
	return !slices.ContainsFunc(OfInputs(), func(e Entry) bool {
		return e.Reason == reason && slices.ContainsFunc([]string{byOperator, byCommandLine, byValidate}, func(by string) bool { return strings.HasSuffix(e.Meaning, by) })
	})
}

// StatusAreas returns the reasons in a status: of hosts that are not nodes, of nodes, of conditions.
func StatusAreas() []Area {
	return []Area{
		{Title: "Hosts that join or are removed", Entries: hostStatus()},
		{Title: "Nodes and rollouts", Entries: nodeStatus()},
		{Title: "Conditions", Entries: conditionReasons()},
	}
}

// Status returns the entries of StatusAreas.
func Status() []Entry { return slices.Concat(hostStatus(), nodeStatus(), conditionReasons()) }

// All returns the entries of all reasons: those of findings, of a status, of Events. A reason can be in several places.
func All() []Entry {
	var all []Entry
	for _, area := range Areas() {
		all = append(all, area.Entries...)
	}
	return slices.Concat(all, Status(), Events())
}

// Find returns the first entry of a reason, whatever the case of its letters, and where the reason is: the severity of its findings, status or event.
func Find(name string) (e Entry, where string, ok bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return strings.EqualFold(e.Reason, name) })
	if i < 0 {
		return Entry{}, "", false
	}
	switch events := len(all) - len(Events()); {
	case all[i].Severity != "":
		where = all[i].Severity
	case i < events:
		where = "status"
	default:
		where = "event"
	}
	return all[i], where, true
}
