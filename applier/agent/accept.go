package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
)

// refusal is why an annotation is not accepted. Trying it again changes nothing.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func newRefusal(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// newOnRefusal is what helps against an annotation that the operator did not write: it writes it again where that is
// refused.
const newOnRefusal = "fix: find out who writes to Nodes, and see that the operator runs; it writes the annotation again"

// acceptAnnotation decodes an annotation, if the host may act on it: it is signed for this Node by a key that
// the host has, and nothing newer was accepted before. A host whose bundle has no keys, which an older operator has
// joined, accepts everything until a bundle brings keys. The error is a *refusal, or a fault that may pass.
func (a *Agent) acceptAnnotation(ctx context.Context, n Node) (published.Desired, error) {
	keys, err := a.trustedKeys(ctx)
	if err != nil {
		return published.Desired{}, err
	}
	if keys == nil {
		d, err := published.DecodeDesired(n.Desired)
		if err != nil {
			return published.Desired{}, newRefusal("reading the annotation %s: %v", published.DesiredAnnotation, err)
		}
		d.Boot, d.Remove = "", false // whoever may write to the Node boots no host, and removes none
		return d, a.checkName(d.NodeName)
	}
	d, err := keys.Open(n.Desired)
	switch {
	case errors.Is(err, published.ErrUnsigned), errors.Is(err, published.ErrUntrusted):
		return d, newRefusal("the annotation %s is refused: %v (%s)", published.DesiredAnnotation, err, newOnRefusal)
	case err != nil:
		return d, newRefusal("reading the annotation %s: %v", published.DesiredAnnotation, err)
	case d.NodeName == "":
		return d, newRefusal("the annotation %s is refused: it is not signed for any node (%s)", published.DesiredAnnotation, newOnRefusal)
	}
	if err := a.checkName(d.NodeName); err != nil {
		return d, err
	}
	if !d.IsSignedFor(published.NodeID{Name: d.NodeName, UID: n.UID}) {
		return d, newRefusal("the annotation %s is refused: it was signed for an earlier Node of this name (%s)",
			published.DesiredAnnotation, newOnRefusal)
	}
	if d.Remove && !d.IsSignedToRemove(published.NodeID{Name: d.NodeName, UID: n.UID}) {
		return d, newRefusal("the annotation %s is refused: it ends a node without its UID (%s)", published.DesiredAnnotation, newOnRefusal)
	}
	return d, a.checkNewest(ctx, keys, n.Desired, d)
}

// trustedKeys returns the keys of this host; nil where the bundle that it has brings none.
func (a *Agent) trustedKeys(ctx context.Context) (published.Keys, error) {
	infos, err := a.Engine.Host.Stat(ctx, []string{bundle.SigningKeysFile})
	if err != nil {
		return nil, fmt.Errorf("observing %s: %w", bundle.SigningKeysFile, err)
	}
	switch {
	case infos[0].Kind == plan.FileAbsent:
		return nil, a.neverHadKeys(ctx)
	case infos[0].Kind != plan.FileRegular || !infos[0].IsTrusted():
		return nil, newRefusal("others than SYSTEM and Administrators can change %s, so nothing that is published is accepted (fix: look at the file, then remove it; it is restored from the bundle)", bundle.SigningKeysFile)
	}
	data, err := a.readKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", bundle.SigningKeysFile, err)
	}
	keys, err := published.DecodeKeys(data)
	if err != nil {
		return nil, newRefusal("reading %s: %v (fix: remove it; it is restored from the bundle)", bundle.SigningKeysFile, err)
	}
	return keys, nil
}

// neverHadKeys refuses everything on a host that has lost its keys: a person who removed a damaged file has not allowed
// everyone who may write to the Node to run programs until the repair has restored it.
func (a *Agent) neverHadKeys(ctx context.Context) error {
	had, err := a.Engine.BroughtFile(ctx, bundle.SigningKeysFile)
	switch {
	case err != nil:
		return fmt.Errorf("reading whether this host had keys: %w", err)
	case had:
		return newRefusal("%s is missing, so nothing that is published is accepted (fix: nothing where drift is repaired: the next comparison restores it from the bundle; otherwise run wmco-node repair on the host)", bundle.SigningKeysFile)
	}
	return nil
}

// maxKeyFile is the size of the largest file of keys that is read, in bytes.
const maxKeyFile = 64 << 10

func (a *Agent) readKeys(ctx context.Context) ([]byte, error) {
	f, err := a.Engine.Host.Open(ctx, bundle.SigningKeysFile)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	return data, errors.Join(err, f.Close())
}

// checkName refuses state for another Node. No name is for a Node of any name.
func (a *Agent) checkName(name string) error {
	if name == "" {
		return nil
	}
	own, err := a.Cluster.NodeName()
	switch {
	case err != nil:
		return fmt.Errorf("finding out which Node this is: %w", err)
	case name != own:
		return newRefusal("the published bundle is for node %s, and this is node %s (%s)", name, own, newOnRefusal)
	}
	return nil
}

// checkNewest refuses state that is older than the accepted one, and notes it otherwise, before anything is done. A
// counter is one of the keys that signed it. Where none of them is trusted any longer, it has ended: an operator that
// has lost its keys brings others over SSH, does not know what it signed before, and its clock may be behind that of
// the operator before.
func (a *Agent) checkNewest(ctx context.Context, keys published.Keys, text string, d published.Desired) error {
	before, err := a.Engine.LastAccepted(ctx)
	if err != nil {
		return err
	}
	if len(before.Signers) > 0 && !keys.Has(before.Signers) {
		before = applier.Accepted{}
	}
	facts, err := a.Engine.Host.Facts(ctx)
	if err != nil {
		return fmt.Errorf("gathering facts: %w", err)
	}
	now, since := a.Engine.Clock.Now(), a.sinceBoot()
	had := published.Counter{Term: before.Term, Sequence: before.Sequence}
	// Of the signed text alone: blanks in the signatures, or their order, are not.
	signed, _, err := published.Signatures(text)
	if err != nil {
		return fmt.Errorf("reading the signatures of the annotation: %w", err)
	}
	digest, signers := bundle.Of([]byte(signed)), keys.Signers(text)
	switch order := d.Counter().Compare(had); {
	case before.Schema != 0 && order < 0:
		return newRefusal("the published bundle (%s) is older than what this host has accepted (%s): an earlier annotation was put back (%s)", d.Counter(), had, newOnRefusal)
	case before.Schema != 0 && order == 0 && before.Text != digest:
		return newRefusal("the published bundle has the counter %s of another annotation that this host has accepted (%s)", had, newOnRefusal)
	case before.Schema != 0 && order == 0:
		a.follower.permitted = since - elapsedSince(before, facts.BootTime, since, now)
		if slices.Equal(before.Signers, signers) {
			return nil
		}
		// The host has got another key that had signed it, or was interrupted before it could note the signers.
		before.Signers = signers
		return a.Engine.NoteAccepted(ctx, before)
	}
	a.follower.permitted = since
	return a.Engine.NoteAccepted(ctx, applier.Accepted{
		Term: d.Term, Sequence: d.Sequence, Text: digest, Time: now, Since: since, Boot: facts.BootTime, Signers: signers,
	})
}

// longSince is longer than any permission holds.
const longSince = 365 * 24 * time.Hour

// elapsedSince returns how long ago an annotation was accepted. Within one boot the clock is monotonic and cannot be
// set; after another boot it is the host's own, and if that was set back, the permission has ended: the operator gives
// it again.
func elapsedSince(a applier.Accepted, boot string, since time.Duration, now time.Time) time.Duration {
	passed := since - a.Since
	if a.Boot != boot {
		passed = now.Sub(a.Time)
	}
	if passed < 0 {
		return longSince
	}
	return passed
}

// permissionExpired reports whether a permission above a restart is too old to begin.
func (f *follower) permissionExpired(now time.Duration) bool {
	limit := time.Duration(min(f.desired.PermitFor, int64(longSince/time.Second))) * time.Second
	return limit > 0 && f.desired.MaxImpact.Rank() > bundle.ImpactRestart.Rank() && now-f.permitted > limit
}

// permittedImpact returns the highest impact of a change that begins now.
func (f *follower) permittedImpact(now time.Duration) bundle.Impact {
	if f.permissionExpired(now) {
		return bundle.ImpactRestart
	}
	return f.desired.MaxImpact
}

// noteRefusal notes that an annotation is not accepted: the host keeps what it has.
func (a *Agent) noteRefusal(ctx context.Context, text string, why *refusal) {
	f := &a.follower
	f.accepted, f.desired = false, published.Desired{}
	f.noteEnd(published.StateFailed, why.why)
	f.report.Refused = bundle.Of([]byte(text))
	if d, err := published.DecodeDesired(text); err == nil {
		f.report.Desired = d.Bundle // so that people see what the report is about; nothing is done with it
	}
	if a.refused != why.why {
		a.refused = why.why
		a.Log.Error("the published bundle is refused", "error", why)
		a.sendEventToNode(ctx, Event{Warning: true, Reason: EventRefused, Message: why.why})
	}
}
