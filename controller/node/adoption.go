package node

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// A host that is adopted has the agent of another operator, which follows nothing that is published here. Until it has
// its bundle, the operator does over SSH what the node agent does on other nodes, and writes the report of the
// Node: so an adoption is a turn of the rollout like any other.
//
//	compare --> report: facts, plan, impact --rollout: canaries, drain, permission--> apply, confirm --> the node agent reports
//	                                                                                   `-- rolled back: the host is as before

// Reasons of events about adoptions.
const (
	EventAdoptionPlanned = "AdoptionPlanned"
	EventAdopted         = "NodeAdopted"
	EventNotAdopted      = "NodeNotAdopted"

	actionAdopt = "Adopt"
)

// adopter adopts the nodes of another operator.
type adopter struct {
	joiner *configure.Joiner
	// readDesired returns the desired state of a Node that this operator has signed.
	readDesired windowsnode.DesiredReader
	// upgrader copies executables that hosts lack.
	upgrader *upgrader
	clock    clock.Clock
	events   nodeEvents
	log      logr.Logger
	// compared is since when adopted hosts have been as they were compared last, permitted since when their turns are
	// permitted.
	compared, permitted configure.Sightings
}

// continueAdoption does the next step of an adoption.
func (ad *adopter) continueAdoption(ctx context.Context, node windowsnode.Node,
	r record.Record) (reconcile.Result, error) {
	h, err := ad.joiner.HostOfNode(ctx, node.Name)
	if err != nil {
		return ad.delayAdoption(node, err)
	}
	if !h.IsAdoptionWanted(node.Node) && node.Annotations[published.DesiredAnnotation] == "" {
		return reconcile.Result{}, ad.withdrawAdoption(ctx, node, r)
	}
	signed, signedErr := ad.readDesired(node)
	if signedErr == nil && hasRolledBack(node, signed) {
		return reconcile.Result{}, nil // another bundle, or a person who asks for another try, changes the Node
	}
	seenFor := ad.compared.SeenFor(node.Name, comparedBy(node.Annotations), ad.joiner.Elapsed())
	if seenFor > 0 && seenFor < retrySilent {
		return reconcile.Result{RequeueAfter: retrySilent - seenFor}, nil
	}
	ad.compared.ForgetHost(node.Name)
	w, err := h.ApplyRequest()
	if err != nil {
		return ad.delayAdoption(node, err)
	}
	seen, err := ad.joiner.Hosts.CompareHost(ctx, w)
	if err != nil {
		return ad.delayAdoption(node, err)
	}
	if seen.Seen.Applied == seen.Bundle && (seen.Seen.InSync || hasOwnAgent(node)) {
		return ad.finishAdoption(ctx, h, node, r)
	}
	report := published.Report{
		State: published.StateUnpublished, Adopting: true, Facts: &seen.Facts, Features: published.Features(),
		Impact: seen.Seen.Impact, Message: describeAdoption(seen.Seen),
		Retry: node.Annotations[published.RetryAnnotation],
	}
	if signedErr == nil { // what an operator with other executables has published stays until these are there
		if staged, err := ad.upgrader.stageMissing(ctx, node, seen); err != nil || !staged {
			return ad.delayAdoption(node, err)
		}
	}
	if signedErr != nil || signed.Bundle != seen.Bundle {
		// the bundle rendered from these facts is published next
		return reconcile.Result{}, ad.writeReport(ctx, node, report)
	}
	report.Desired = signed.Bundle
	if ad.mayBegin(node, signed, &report) {
		return ad.applyAdoption(ctx, h, node, adoption{w, signed, report, r})
	}
	return reconcile.Result{}, ad.writeReport(ctx, node, report)
}

// comparedBy is what a comparison with the host goes by: while it is the same, the host is not asked again soon.
func comparedBy(annotations map[string]string) string {
	var list []string
	for _, key := range []string{published.DesiredAnnotation, published.ReportAnnotation, published.RetryAnnotation,
		published.PausedAnnotation, published.RolloutAnnotation, published.CordonAnnotation} {
		list = append(list, annotations[key])
	}
	return strings.Join(list, "\n")
}

// hasOwnAgent reports whether the last report is that of a node agent.
func hasOwnAgent(node windowsnode.Node) bool { return node.ReportError == nil && !node.Report.Adopting }

// hasRolledBack reports whether the host has rolled back its published bundle, and no retry is asked for.
func hasRolledBack(node windowsnode.Node, signed published.Desired) bool {
	has := node.Report
	return has.State == published.StateRolledBack && has.Adopting && has.Desired == signed.Bundle &&
		has.Retry == published.Shorten(node.Annotations[published.RetryAnnotation])
}

// describeAdoption lists what an adoption changes.
func describeAdoption(o protocol.Observation) string {
	text := fmt.Sprintf("its adoption has impact %s: %s", o.Impact, bundle.Count(len(o.Actions), "action"))
	if len(o.Restarts) > 0 {
		text += ", restarts " + strings.Join(o.Restarts, ", ")
	}
	if len(o.Adopt) > 0 {
		text += fmt.Sprintf("; right already: %d", len(o.Adopt))
	}
	return text
}

// mayBegin reports whether the rollout permits what the plan needs, as the node agent does. The report has the cause.
func (ad *adopter) mayBegin(node windowsnode.Node, signed published.Desired, report *published.Report) bool {
	report.State = published.StateNeedsPermission
	switch {
	case report.Impact.Rank() > signed.MaxImpact.Rank(), node.IsPaused():
		return false
	case signed.MaxImpact.Rank() < bundle.ImpactDrain.Rank():
		return true
	}
	// A permission to drain is for the turn in which the node has its place, and is still cordoned.
	limit := time.Duration(signed.PermitFor) * time.Second
	report.Expired = limit > 0 && ad.permitted.SeenFor(node.Name, node.Annotations[published.DesiredAnnotation],
		ad.joiner.Elapsed()) > limit
	return !report.Expired && node.Rollout.Slot.Held && node.Spec.Unschedulable
}

// adoption is one that is applied.
type adoption struct {
	hosts.Wish
	signed published.Desired
	report published.Report
	record record.Record
}

// applyAdoption applies the published bundle to the host, within the permitted impact.
func (ad *adopter) applyAdoption(ctx context.Context, h configure.Host, node windowsnode.Node,
	a adoption) (reconcile.Result, error) {
	a.report.State, a.report.Impact = published.StateApplying, ""
	if err := ad.writeReport(ctx, node, a.report); err != nil {
		return reconcile.Result{}, err
	}
	ad.compared.ForgetHost(node.Name)
	a.MaxImpact, a.Reboot = a.signed.MaxImpact, a.signed.MaxImpact == bundle.ImpactReboot
	a.Confirmation = newAdoptedKubelet(ad.joiner.Login.Live, node.Name, ad.clock)
	outcome, err := ad.joiner.Hosts.ApplyBundle(ctx, a.Wish)
	if err != nil {
		return ad.delayAdoption(node, err)
	}
	ad.log.Info("adopting a node", "node", node.Name, "result", outcome.Result, "message", outcome.Message)
	switch {
	case outcome.DiskFull:
		a.report.State, a.report.Fault, a.report.Message = published.StateFailed, published.FaultDisk, outcome.Message
	case outcome.Result == protocol.ResultSame, outcome.Result == protocol.ResultApplied:
		return ad.finishAdoption(ctx, h, node, a.record)
	case outcome.Result == protocol.ResultRolledBack:
		a.report.State, a.report.Fault, a.report.Message = published.StateRolledBack, published.FaultHost,
			"the host is again as the existing operator left it: "+outcome.Message
		a.report.Cause, a.report.Log = published.CauseStep, outcome.Log
		switch {
		case outcome.Unconfirmed != "":
			a.report.Cause, a.report.Message = published.CauseConfirmation, a.report.Message+": "+outcome.Unconfirmed
		case !outcome.Log.IsZero(): // that of the service which is to blame
			a.report.Cause = published.CauseService
		}
		ad.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventNotAdopted,
			actionAdopt+" "+a.signed.Bundle.Short(), a.report.Message)
	default: // it boots, another run has it, or the plan has changed: it is compared again
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, nil
	}
	return reconcile.Result{RequeueAfter: configure.AgainLater}, ad.writeReport(ctx, node, a.report)
}

// finishAdoption is for a host that has its bundle: its node agent follows published bundles from now on.
func (ad *adopter) finishAdoption(ctx context.Context, h configure.Host, node windowsnode.Node,
	r record.Record) (reconcile.Result, error) {
	finished := false
	now, err := configure.ReadNode(ctx, ad.joiner.Login.Live, node.Name)
	if err == nil {
		err = h.MarkAdopted(ctx, now)
	}
	if err == nil {
		err = ad.updateAdoption(ctx, r, func(r *record.Record) { finished, r.Adopting = r.Adopting, false })
	}
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !finished { // the cache is behind: the record changes there without a request for this Node
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, nil
	}
	ad.forgetAdoption(node.Name)
	ad.log.Info("adopted a node", "node", node.Name, "host", r.String())
	ad.events.recordOnNode(node.Node, corev1.EventTypeNormal, EventAdopted, actionAdopt,
		"the node has the bundle and the node agent of this operator")
	return reconcile.Result{RequeueAfter: configure.AgainSoon}, nil
}

// withdrawAdoption is for a Node whose adoption is not wanted any longer, before anything was published for it: it
// waits again.
func (ad *adopter) withdrawAdoption(ctx context.Context, node windowsnode.Node, r record.Record) error {
	if _, err := ad.joiner.WriteMarks(ctx, node.Node,
		configure.Marks{Annotations: map[string]string{published.ReportAnnotation: ""}}); err != nil {
		return err
	}
	ad.forgetAdoption(node.Name)
	return ad.updateAdoption(ctx, r, func(r *record.Record) {
		r.Node, r.NodeUID, r.Origin, r.Adopting = "", "", "", false
	})
}

// updateAdoption changes the record of a host that is adopted, if that is still of this Node.
func (ad *adopter) updateAdoption(ctx context.Context, of record.Record, change func(*record.Record)) error {
	return ad.joiner.Login.Records.UpdateRecord(ctx, of.ID(), func(r record.Record) (record.Record, error) {
		if r.IsNode(of.Node, of.NodeUID) {
			change(&r)
		}
		return r, nil
	})
}

func (ad *adopter) forgetAdoption(node string) {
	ad.compared.ForgetHost(node)
	ad.permitted.ForgetHost(node)
}

// writeReport writes the operator's report in place of a node agent, and sends a new plan as an event.
func (ad *adopter) writeReport(ctx context.Context, node windowsnode.Node, report published.Report) error {
	text, err := report.Encode()
	if err != nil {
		return fmt.Errorf("reporting about node %s: %w", node.Name, err)
	}
	now, err := configure.ReadNode(ctx, ad.joiner.Login.Live, node.Name)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	before, _ := windowsnode.ReadReport(now.Annotations) // what cannot be read is replaced
	if _, err := ad.joiner.WriteMarks(ctx, now,
		configure.Marks{Annotations: map[string]string{published.ReportAnnotation: text}}); err != nil {
		return err
	}
	ad.joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name),
		configure.Progress{State: configure.StateJoined})
	planned := report.State == published.StateUnpublished || report.State == published.StateNeedsPermission
	if planned && before.Message != report.Message {
		ad.events.recordOnNode(now, corev1.EventTypeNormal, EventAdoptionPlanned,
			actionAdopt+" "+bundle.Of([]byte(report.Message)).Short(), report.Message+"; nothing was changed yet")
	}
	// What the report is about counts: what was published since is compared next.
	judged := maps.Clone(node.Annotations)
	judged[published.ReportAnnotation] = text
	ad.compared.SeenFor(node.Name, comparedBy(judged), ad.joiner.Elapsed())
	return nil
}

// delayAdoption is for a host that cannot be asked or changed now. Without an error, it waits for others.
func (ad *adopter) delayAdoption(node windowsnode.Node, err error) (reconcile.Result, error) {
	ad.compared.ForgetHost(node.Name)
	if err == nil || hosts.IsHostBusy(err) {
		return reconcile.Result{RequeueAfter: configure.AgainSoon}, nil
	}
	p := configure.ProgressOfError(err)
	if p.State == configure.StateJoining {
		return reconcile.Result{RequeueAfter: p.Again}, nil
	}
	p.Node, p.Message = node.Name, "adopting the node: "+p.Message
	ad.log.Info("adopting a node", "node", node.Name, "error", err, "fix", remote.SuggestFix(err))
	ad.joiner.Unjoined.RecordProgress(configure.LostNodeKey(node.Name), p)
	ad.events.recordOnNode(node.Node, corev1.EventTypeWarning, EventNotAdopted, p.Reason,
		p.DisplayText()+"; it is retried")
	return reconcile.Result{RequeueAfter: p.Again}, nil
}
