package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
)

// reporter writes the agent's report, if it has changed or is old.
type reporter struct {
	// facts are those of the host; endpoints are the HNS endpoints of the bundle, by name, nil while no bundle is
	// known.
	facts     *bundle.Facts
	endpoints map[string]bool
	// unknown are the kinds of settings that the last comparison could not read.
	unknown []bundle.UnknownFact
	// before is the report that the Node has.
	before published.Report
	// watched reports whether the Node has had the last report, missing whether it does not have it any longer: it was
	// removed, or etcd was restored.
	watched, missing bool
	// sent is the last report, state its State and about its bundle, changedAt when the condition last became true or
	// false, or about another bundle.
	sent      string
	state     published.State
	about     bundle.Digest
	changedAt time.Time
	// sentAt is when it was sent, heartbeat when the next one is due although nothing has changed. A report that is
	// missing is sent again, and before againAt not once more: others may write there too.
	sentAt, heartbeat, againAt time.Duration
}

// maxUnknown is how much is reported of why a part of Windows is not known, in bytes.
const maxUnknown = 256

// seenWithin is how long after a report was sent the watch may still show the Node without it.
const seenWithin = 10 * time.Second

// observeFacts asks for the facts of the host, from which its node layer is rendered.
func (r *reporter) observeFacts(ctx context.Context, h applier.Host) {
	if facts, err := h.Facts(ctx); err == nil {
		r.facts = &facts
	}
}

// noteFacts notes the facts of the host and which of its endpoints the bundle names.
func (r *reporter) noteFacts(facts bundle.Facts, b bundle.Bundle) {
	r.facts, r.endpoints = &facts, map[string]bool{}
	for _, l := range b.Layers() {
		for _, e := range l.Endpoints {
			r.endpoints[e.Name] = true
		}
	}
}

// awaitsEndpoint reports whether an endpoint of the bundle is not there yet: hybrid-overlay-node makes its network some
// time after the Node has a subnet, without a sign when.
func (r *reporter) awaitsEndpoint() bool {
	if r.facts == nil {
		return false
	}
	for name := range r.endpoints {
		if r.facts.Endpoint(name).Name == "" {
			return true
		}
	}
	return false
}

// noteReport notes the report that the Node had when it was read. Without the last one it is an older Node, unless that
// came from the watch after the last report was there, or long enough after it was sent.
func (r *reporter) noteReport(n Node, known bool) {
	has := known && n.Report == r.sent
	r.missing = known && !has && r.sent != "" && (r.watched || n.read > r.sentAt+seenWithin)
	r.watched = r.watched || has
	if before, err := published.DecodeReport(n.Report); err == nil {
		r.before = before
	}
}

// canonicalFacts returns the facts in a form that stays the same for as long as the bundle rendered from them does:
// sorted, and without the endpoints of pods, which come and go. Where the host or a part of it cannot answer, its earlier answer
// before holds: a node without networks would be rendered as one that has yet to join.
func (r *reporter) canonicalFacts() *bundle.Facts {
	before := r.before.Facts
	if r.facts == nil || r.endpoints == nil && before != nil {
		return before
	}
	f := r.facts.AddUnknown(r.unknown...).InReportForm(r.endpoints)
	for i, u := range f.Unknown {
		f.Unknown[i].Error = published.ShortenTo(u.Error, maxUnknown)
	}
	if before != nil {
		f = f.KeepKnown(*before)
	}
	if before != nil && before.HostName == f.HostName { // its cloud may not have answered in time
		f.MetadataName, f.ProviderID = cmp.Or(f.MetadataName, before.MetadataName), cmp.Or(f.ProviderID, before.ProviderID)
	}
	return &f
}

// sendReport writes the report. What cannot be sent is sent with the next step.
func (a *Agent) sendReport(ctx context.Context) {
	r, state := &a.reporter, a.buildReport()
	if a.Cluster == nil || state.State == "" {
		return
	}
	text, err := state.Encode()
	if err != nil { // nothing but the facts can be so large
		a.Log.Error("reporting the facts of this host", "error", err)
		state.Facts = r.before.Facts
		if text, err = state.Encode(); err != nil {
			return
		}
	}
	again := r.missing && a.sinceBoot() >= r.againAt
	if text == r.sent && a.sinceBoot() < r.heartbeat && !again {
		return
	}
	now := a.Engine.Clock.Now()
	changed := r.changedAt
	applied := state.State == published.StateApplied
	if changed.IsZero() || applied != (r.state == published.StateApplied) || applied && state.Desired != r.about {
		changed = now
	}
	s := Status{Text: text, State: state.State, Message: conditionText(state), Time: now, Changed: changed}
	if err := a.Cluster.Report(ctx, s); err != nil {
		if ctx.Err() == nil {
			a.Log.Warn("reporting", "error", err)
		}
		return
	}
	r.sent, r.state, r.about, r.changedAt, r.before = text, state.State, state.Desired, changed, state
	r.watched, r.missing, r.sentAt = false, false, a.sinceBoot()
	if again {
		r.againAt = a.sinceBoot() + seenWithin
	}
	r.heartbeat = a.sinceBoot() + a.Options.Jitter(heartbeatInterval)
}

// conditionText is what people read in the condition.
func conditionText(r published.Report) string {
	switch {
	case r.Message != "":
		return r.Message
	case r.State == published.StateUnpublished:
		return "no bundle is published for this node yet"
	case r.State == published.StateApplied:
		return appliedText(r)
	case r.State == published.StateRebootPending:
		return fmt.Sprintf("some entries of bundle %s take effect only after a reboot", r.Desired.Short())
	}
	return fmt.Sprintf("bundle %s is being applied", r.Desired.Short())
}

// appliedText reports that a bundle is applied, and the first remaining problem.
func appliedText(r published.Report) string {
	switch {
	case len(r.RebootPending) > 0:
		return fmt.Sprintf("bundle %s is applied; %s only after a reboot", r.Desired.Short(), takeEffect(len(r.RebootPending)))
	case r.NetworkUnstable:
		return networkText(r)
	case r.SSHStopped != "":
		return fmt.Sprintf("bundle %s is applied; the OpenSSH server does not run: %s", r.Desired.Short(), r.SSHStopped)
	case len(r.Crashed) > 0:
		return fmt.Sprintf("bundle %s is applied; ended by themselves since: %s", r.Desired.Short(), strings.Join(r.Crashed, ", "))
	case r.Facts != nil && len(r.Facts.Unknown) > 0:
		return fmt.Sprintf("bundle %s is applied; not known, and left alone: %s (%s)", r.Desired.Short(),
			r.Facts.Unknown[0].Part, r.Facts.Unknown[0].Error)
	case r.Images.CountMissing() > 0:
		return imagesText(r)
	}
	return fmt.Sprintf("bundle %s is applied", r.Desired.Short())
}

func takeEffect(n int) string {
	if n == 1 {
		return "1 entry takes effect"
	}
	return fmt.Sprintf("%d entries take effect", n)
}
