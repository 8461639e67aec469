package rollout

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/fleet"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// EventLayerReplaced is the reason of an Event: another user or program changed the Secret of a layer, and the operator
// has replaced it.
const EventLayerReplaced = "LayerReplaced"

// EventChangeHeld is the reason of an Event about a change that would stop all pods.
const EventChangeHeld = "ChangeHeld"

// maxNodeEvents is how many refused nodes get an Event from one rendering: a mistake may refuse every node.
const maxNodeEvents = 20

// StatusPause is the minimum time between two status writes that change only counts and messages. While many nodes
// report, these change with every call.
const StatusPause = 3 * time.Second

// statusReporter reports how publication and rollout go: in the WindowsNodesStatus, and in Events on the operator's Deployment and
// on Nodes.
type statusReporter struct {
	writer     *status.Writer
	deployment *corev1.ObjectReference
	// nodes returns the Windows Nodes by name.
	nodes  func(context.Context) (map[string]windowsnode.Node, error)
	events events.EventRecorder
	log    logr.Logger
	now    func() time.Time
	// try is Pauses.Try: a status that cannot be written does not delay anything else.
	try tryFunc
	// silence tells how long a node agent has been silent. heartbeats has the nodes whose clocks differ, hostClocks the
	// hosts; hostClocks may be nil.
	silence    windowsnode.Silence
	heartbeats *heartbeat.Watch
	hostClocks func() []heartbeat.Skew
	// upgrade receives what prevents OLM from upgrading the operator.
	upgrade *status.Upgrade
	// counters are the metrics.
	counters Counters

	// lastStatus is the last status that was written, at wrote. An equal status is not written again before the next
	// rendering.
	lastStatus *status.Status
	wrote      time.Time
	// stepped is when changed hosts were last written.
	stepped time.Time
	// warned are the warnings of the last rendering: only new ones are Events.
	warned map[string]bool
	// unserved is true after the operator reported that the cluster does not serve the kind.
	unserved bool
}

// findingSentence is a finding in one sentence, with what to do.
func findingSentence(f bundle.Finding) string {
	text := f.Message
	if where := f.Object.String(); where != "" {
		if f.Field != "" {
			where += " " + f.Field
		}
		text = where + ": " + text
	}
	if f.Fix != "" {
		text += "; fix: " + f.Fix
	}
	return text
}

// reportOutcome reports an outcome. It returns when to call it again for the rest, 0 if all is reported.
func (t *statusReporter) reportOutcome(ctx context.Context, o outcome) (time.Duration, error) {
	if o.fresh {
		t.sendEvents(o.rendering)
	}
	t.reportDamaged(o.damaged)
	nodes, err := t.nodes(ctx)
	if err != nil {
		return 0, fmt.Errorf("counting Windows nodes: %w", err)
	}
	kubelets := kubeletsUpgradeable(o.version, nodes)
	t.upgrade.NoteKubelets(kubelets)
	if o.rollErr == nil {
		t.upgrade.NoteChanging(o.rollout.ChangingNodes())
	}
	counts, hosts := t.countNodes(nodes, o.rendering)
	s := status.Status{
		Conditions: append(outcomeConditions(o), inputsPresent(o.rendering), inputsConfirmed(o.rendering),
			inputsClean(o.rendering), urgentReached(o), kubelets, clocksAgree(t.clockSkews(nodes, o.rendering)),
			hostNetworksStable().condition(nodes), sshServersRun().condition(nodes), imagesReachable().condition(nodes), windowsRebooted(nodes, o.windowsReboots)),
		Nodes: counts, Hosts: status.SortHosts(hosts), HostsWaiting: new(len(hosts)),
	}
	if o.keys != nil {
		s.Conditions = append(s.Conditions, o.keys.keysAccepted(o.loginProblem, func(node string) bool {
			n, ok := nodes[node]
			return ok && t.silence.IsSilent(n)
		}))
		t.counters.SetLoginKeys(o.keys.countByState())
	}
	for _, r := range o.refused {
		s.Refused = append(s.Refused, refusedStatus(r))
	}
	t.counters.SetUrgentHeld(urgentHeld(o))
	t.counters.SetWarnings(warningReasons(o.warnings))
	if t.unserved && t.now().Sub(t.wrote) < base.KindsPeriod {
		return t.wrote.Add(base.KindsPeriod).Sub(t.now()), nil
	}
	if !o.fresh && t.lastStatus != nil && !t.unserved {
		if reflect.DeepEqual(s, *t.lastStatus) {
			return 0, nil
		}
		if wait := t.wrote.Add(StatusPause).Sub(t.now()); wait > 0 &&
			slices.EqualFunc(s.Conditions, t.lastStatus.Conditions, sameReason) {
			return wait, nil
		}
	}
	before, rest := t.lastStatus, time.Duration(0)
	if wait := t.stepsDelay(); wait > 0 && before != nil && !t.unserved && sameButMessages(s, *before) {
		if !o.fresh {
			return wait, nil
		}
		s, rest = *before, wait // which is compared with the cluster
	}
	t.lastStatus = nil // an answer may be lost
	_ = t.try(ctx, "status", func(ctx context.Context) error { return t.writeStatus(ctx, s) })
	if t.lastStatus == nil {
		return 0, nil // it is retried
	}
	if before == nil || !slices.EqualFunc(s.Hosts, before.Hosts, sameHost) {
		t.stepped = t.now()
	}
	if t.unserved {
		return base.KindsPeriod, nil
	}
	return rest, nil
}

// writeStatus writes the status, if the cluster serves the kind.
func (t *statusReporter) writeStatus(ctx context.Context, s status.Status) error {
	switch err := t.writer.WriteStatus(ctx, s); {
	case meta.IsNoMatchError(err):
		t.reportUnserved()
	case err != nil:
		return err
	default:
		t.unserved = false
	}
	t.lastStatus, t.wrote = &s, t.now()
	return nil
}

// sameReason reports whether two conditions differ at most in their message.
func sameReason(a, b metav1.Condition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
}

// reportUnserved reports once that there is no status.
func (t *statusReporter) reportUnserved() {
	if t.unserved {
		return
	}
	t.unserved = true
	const message = "the cluster does not serve " + status.Kind + " of " + status.Group + "/" + status.Version +
		", so conditions are reported only in the log and in Events; fix: apply deploy/crd"
	t.log.Info(message)
	t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, "StatusNotServed", "Publish", message)
}

// reportDamaged names Secrets that did not match the published layer. Nodes also report a layer that they cannot use.
func (t *statusReporter) reportDamaged(secrets []string) {
	for _, name := range secrets {
		t.log.Info("a Secret was not what was published, and was replaced", "secret", name)
		t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, EventLayerReplaced, "Replace "+name,
			"the content of Secret %s had changed; the operator has replaced it, and nodes fetch it again automatically; fix: "+
				"find out in the audit log who writes Secrets of namespace %s", name, t.writer.Namespace)
	}
}

// sendEvents sends the Events of a rendering.
func (t *statusReporter) sendEvents(r rendering) {
	if len(r.blocking) > 0 {
		t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, r.blocking[0].Reason, "Publish", "%s",
			published.Shorten(refusalReason(r.blocking)))
	}
	if list := r.deleted.WaitingInputs(); len(list) > 0 {
		t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, status.ReasonDeleted, "Publish", "%s",
			inputsPresent(r).Message)
	}
	if text := r.deleted.ExplainHeld(); text != "" {
		t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, EventChangeHeld, "Publish", "%s",
			published.Shorten(text))
	}
	t.sendWarnings(r.warnings)
	for _, n := range r.refused[:min(len(r.refused), maxNodeEvents)] {
		// Kubelets and kubectl use the name of a Node as its UID in events.
		node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.name, UID: types.UID(n.name)}
		t.events.Eventf(node, nil, corev1.EventTypeWarning, n.Reason, "Publish", "%s",
			published.Shorten("the new bundle of this node is refused; the node keeps its published bundle. "+findingSentence(n.Finding)))
	}
}

// sendWarnings sends an Event for each warning that the last rendering did not have. client-go merges Events with the same
// reason and action, and keeps the first message.
func (t *statusReporter) sendWarnings(findings bundle.Findings) {
	now := map[string]bool{}
	for _, f := range findings {
		text := findingSentence(f)
		if now[text] = true; !t.warned[text] && len(now) <= maxNodeEvents {
			t.events.Eventf(t.deployment, nil, corev1.EventTypeWarning, f.Reason,
				"Warn "+bundle.Of([]byte(text)).Short(), "%s", published.Shorten(text))
		}
	}
	t.warned = now
}

// inputsRefused is the message of all conditions while nothing is published because of the inputs.
const inputsRefused = "the inputs are refused; all nodes keep their published bundles"

// refusalReason is why nothing is published.
func refusalReason(findings bundle.Findings) string {
	return inputsRefused + "; " + findingSentence(findings[0]) +
		countMoreText(len(findings)-1, "finding")
}

func countMoreText(n int, what string) string {
	if n == 0 {
		return ""
	}
	return "; and " + bundle.Count(n, "more "+what)
}

// moreNodes is the rest of a list of nodes.
func moreNodes(left int) string { return countMoreText(left, "node") }

// outcomeConditions are the conditions about the publication and the rollout.
func outcomeConditions(o outcome) []metav1.Condition {
	accepted := metav1.Condition{Type: status.InputsAccepted, Status: metav1.ConditionTrue,
		Reason: status.ReasonAccepted, Message: "the inputs are accepted"}
	done := metav1.Condition{Type: status.Published, Status: metav1.ConditionTrue, Reason: status.ReasonPublished,
		Message: "the newest bundles are published"}
	switch {
	case len(o.blocking) > 0:
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, o.blocking[0].Reason,
			published.Shorten(refusalReason(o.blocking))
		done.Status, done.Reason, done.Message = metav1.ConditionFalse, status.ReasonInputsRefused, inputsRefused
	case len(o.refused) > 0:
		first := o.refused[0]
		accepted.Status, accepted.Reason = metav1.ConditionFalse, status.ReasonNodesRefused
		accepted.Message = published.Shorten(fmt.Sprintf("the new bundle of %s is refused; the node keeps its published bundle. "+
			"%s%s", first.name, findingSentence(first.Finding), countMoreText(len(o.refused)-1, "node")))
		done.Message = "the newest bundles of all other nodes are published"
	}
	if o.err != nil {
		done.Status, done.Reason = metav1.ConditionFalse, status.ReasonPublishFailed
		done.Message = published.Shorten("cannot publish, retrying: " + o.err.Error())
	}
	return []metav1.Condition{accepted, done, rolloutCondition(o)}
}

// urgentReached lists the CAs and credentials that cannot reach their nodes.
func urgentReached(o outcome) metav1.Condition {
	c := metav1.Condition{Type: status.UrgentInputsReached, Status: metav1.ConditionTrue, Reason: status.ReasonReached,
		Message: "all nodes have the urgent CAs and credentials, or are receiving them"}
	held := o.rollout.Fleet.Urgent
	switch {
	case len(o.blocking) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, status.ReasonInputsRefused, inputsRefused
	case len(held) > 0:
		var texts []string
		for _, h := range held {
			texts = append(texts, h.Node+": "+h.Message)
		}
		c.Status, c.Reason = metav1.ConditionFalse, status.ReasonUrgentHeld
		c.Message = published.Shorten(bundle.JoinFirst(texts, 3, "; ", moreNodes) +
			"; fix: remove these causes before a CA expires, for example with wmco resume NODE")
	}
	return c
}

// warningReasons counts the warnings by reason.
func warningReasons(findings bundle.Findings) map[string]int {
	all := map[string]int{}
	for _, f := range findings {
		all[f.Reason]++
	}
	return all
}

// urgentHeld counts the nodes that each urgent input cannot reach.
func urgentHeld(o outcome) map[string]status.UrgentHeld {
	all := map[string]status.UrgentHeld{}
	for _, h := range o.rollout.Fleet.Urgent {
		for _, i := range h.Inputs {
			u := all[i.Name]
			u.Nodes++
			if !i.Expires.IsZero() && (u.Expires.IsZero() || i.Expires.Before(u.Expires)) {
				u.Expires = i.Expires
			}
			all[i.Name] = u
		}
	}
	return all
}

// rolloutCondition is the condition about the rollout.
func rolloutCondition(o outcome) metav1.Condition {
	c := metav1.Condition{Type: status.RolledOut, Status: metav1.ConditionFalse,
		Message: published.Shorten(o.rollout.FleetMessage())}
	switch o.rollout.FleetPhase() {
	case steps.PhaseUpdated:
		c.Status, c.Reason = metav1.ConditionTrue, status.ReasonRolledOut
	case steps.PhaseUpdating:
		c.Reason = status.ReasonRollingOut
	case steps.PhasePaused:
		c.Reason = status.ReasonPaused
	case steps.PhaseStopped:
		c.Reason = status.ReasonStopped
	}
	if len(o.blocking) > 0 {
		c.Status, c.Reason = metav1.ConditionUnknown, status.ReasonInputsRefused
		c.Message = inputsRefused
	}
	if err := errors.Join(o.rollErr, o.rollout.Failed); err != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, status.ReasonRolloutFailed,
			published.Shorten("cannot continue the rollout, retrying: "+err.Error())
	}
	return c
}

// countNodes counts the Windows nodes by their state. It also returns the hosts for status.hosts: hosts that have not
// joined, are removed, or are nodes that are not up to date.
func (t *statusReporter) countNodes(nodes map[string]windowsnode.Node, r rendering) (*status.Nodes, []status.Host) {
	t.heartbeats.RetainNodes(nodes)
	var hosts []status.Host
	listed := map[string]bool{}
	if r.unjoined != nil {
		hosts = r.unjoined()
	}
	for _, h := range hosts {
		listed[h.Node] = true
	}
	n := &status.Nodes{Total: len(nodes), Refused: len(r.refused)}
	for _, node := range nodes {
		row := fleet.Of(node, t.silence)
		*counterOfState(n, row.State)++
		if i := slices.IndexFunc(r.refused, func(f refusedNode) bool { return f.name == node.Name }); i >= 0 {
			row.Refuse(refusedStatus(r.refused[i]))
		}
		if h, ok := r.listedHost(row); ok && !listed[node.Name] {
			h.Address = r.addresses[node.Name]
			hosts = append(hosts, h)
		}
	}
	return n, hosts
}
