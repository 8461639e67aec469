package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
)

// Refuse adds that the newest bundle is refused. What is wrong with the published one is more urgent.
func (r *Row) Refuse(by status.Refused) {
	switch r.State {
	case nodestate.Waiting:
		if r.Reason != ReasonWaitingForAdoption { // nothing is published for that one
			return
		}
	case nodestate.Degraded, nodestate.NotReporting, nodestate.Refused, nodestate.Removing:
		return
	case nodestate.Updated, nodestate.Stale, nodestate.Updating, nodestate.Joining:
	}
	r.State, r.Reason, r.Message, r.Fix = nodestate.Refused, by.Reason, by.Message, by.Fix
}

// Of returns the row of one node without its stage, which takes longer than all else: the operator does this for all
// nodes again and again. Silence is what the operator has observed, or windowsnode.SilenceByKubelet for who has
// observed nothing.
func Of(node windowsnode.Node, silence windowsnode.Silence) Row {
	r := Row{Node: node.Name}
	reported := r.readReport(node)
	switch {
	case node.WaitsForAdoption() && !node.Report.Adopting:
		r.State, r.Reason, r.Fix = nodestate.Waiting, ReasonWaitingForAdoption, AdoptFix(node.Name)
		r.Message = "configured by the existing operator (version " + node.Annotations[published.VersionAnnotation] +
			"); until you adopt the node, it gets no changes, not even a rotated CA or pull secret"
		return r
	case node.Annotations[published.DesiredAnnotation] == "" && node.Report.Adopting:
		r.State, r.Reason = nodestate.Waiting, ReasonAdopting
		return r
	case node.Annotations[published.DesiredAnnotation] == "":
		r.State, r.Fix = nodestate.Joining, "wait while the host joins (wmco status lists it). If the host has neither a "+
			"Machine nor an entry in windows-instances, add the entry again, or delete the Node"
		r.Message = "no bundle is published for this node yet"
		return r
	case node.DesiredError != nil:
		r.State, r.Message, r.Fix = nodestate.Degraded,
			fmt.Sprintf("the annotation %s cannot be read: %v", published.DesiredAnnotation, node.DesiredError),
			"remove this annotation; the operator writes it again"
		if newer := (*bundle.SchemaError)(nil); errors.As(node.DesiredError, &newer) {
			r.Reason, r.Fix = ReasonNewerOperator,
				"use the wmco of the operator's version "+node.Annotations[published.DesiredVersionAnnotation]+"; do not edit the annotation"
		}
		return r
	}
	r.Desired, r.MaxImpact = node.Desired.Bundle, node.Desired.MaxImpact
	switch {
	case !reported:
		r.State, r.Message, r.Fix = nodestate.NotReporting, "the node agent has not reported yet", agentFix
	case silence.IsSilent(node):
		r.State, r.Message, r.Fix = nodestate.NotReporting,
			"the node agent has not reported for "+silence(node).Round(time.Minute).String(), agentFix
	case node.Report.Desired != node.Desired.Bundle:
		r.State, r.Reason, r.Message = nodestate.Stale, "", "the node agent has not picked up the published bundle yet"
	default:
		r.judge(node.Report)
	}
	return r
}

// stageOf returns the stage of a node's published bundle; empty where that is not known.
func stageOf(node windowsnode.Node) bundle.Stage {
	if node.DesiredError != nil {
		return ""
	}
	l, err := node.Desired.Node.Open(nil)
	if err != nil {
		return ""
	}
	return l.Stage
}

const agentFix = `check the service windows-instance-config-daemon on the host, and its log under C:\var\log\wicd`

// readReport copies the agent's report. It reports whether there is one.
func (r *Row) readReport(node windowsnode.Node) bool {
	r.Since, r.Reported = node.AgentCondition.LastTransitionTime.UTC(), node.AgentCondition.LastHeartbeatTime.UTC()
	if node.ReportError != nil {
		return false
	}
	report := node.Report
	r.Reason, r.Message, r.Agent, r.Applied, r.Repaired = string(report.State), report.Message, report.Program,
		report.Applied, report.Repaired
	r.Impact, r.Missing, r.RebootPending = report.Impact, report.Missing, report.RebootPending
	r.Cause, r.Pulled, r.Fault = report.Cause, max(report.Pulled, 0), report.Fault.Known()
	if text := report.Fetch.DisplayText(); r.Message == "" || report.State == published.StatePayloadMissing && text != "" {
		r.Message = text
	}
	return true
}

// judge is for a report about the published bundle.
func (r *Row) judge(report published.Report) {
	switch report.State {
	case published.StateUnpublished:
		r.State = nodestate.Stale
	case published.StateApplied:
		r.State = nodestate.Updated
		if images := report.Images; images.CountMissing() > 0 && r.Message == "" {
			r.Message = strings.TrimSuffix(fmt.Sprintf("%d of %s on the node: %s", images.Present,
				bundle.Count(images.Wanted, "pinned image"), images.Message), ": ")
		}
	case published.StateApplying:
		r.State = nodestate.Updating
	case published.StateNeedsPermission:
		r.State, r.Fix = nodestate.Waiting, "none; the operator permits the change when it is the node's turn, after a drain if one is needed"
	case published.StatePayloadMissing:
		r.State, r.Fix = nodestate.Waiting, "none; the node fetches the executables, or the operator copies them. To copy them yourself: wmco apply --host with --payload"
	case published.StateRebootPending:
		r.State, r.Fix = nodestate.Waiting, "wmco reboot "+r.Node+" (drains the node first)"
	case published.StateRolledBack, published.StateFailed:
		r.State, r.Fix, r.Log = nodestate.Degraded, report.Fix(r.Node), report.Log
		if report.WaitsForRoom() {
			r.State, r.Reason = nodestate.Waiting, ReasonDiskFull
		}
	}
}
