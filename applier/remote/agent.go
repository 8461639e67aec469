package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Agent is the node agent of one host.
type Agent struct {
	client *Client
	target Target
	host   *knownHost
}

// Request is what a host should be.
type Request struct {
	Manifest bundle.Manifest
	// Source has the contents. Many hosts may share it.
	Source archive.Source
	// Reset is the name of the Node that the host may stop being, for a bundle with which it joins; empty is none.
	Reset string
	// Fetch has the host fetch executables that it lacks; nil sends them.
	Fetch *Fetch
}

// ApplyOptions are how a request is applied.
type ApplyOptions struct {
	// DryRun stops before the first write.
	DryRun bool
	// MaxImpact refuses a plan with a higher impact; empty refuses none.
	MaxImpact bundle.Impact
	// Reboot reboots the host if the plan needs it.
	Reboot bool
	// ChangeNode accepts the bundle of another node than the one that the host is.
	ChangeNode bool
	// RemoveSigningKeys accepts a bundle without signing keys on a host that an earlier bundle gave some.
	RemoveSigningKeys bool
	// ConfirmWithin rolls back unless Confirm is called within it; 0 needs no confirmation.
	ConfirmWithin time.Duration
	// Wait is how long to wait for another run on the same host.
	Wait time.Duration
}

// Commands of the node agent.
const (
	wordObserve   = "observe"
	wordVerify    = "verify"
	wordApply     = "apply"
	wordStage     = "stage"
	wordConfirm   = "confirm"
	wordFacts     = "facts"
	wordRepair    = "repair"
	wordCleanup   = "cleanup"
	wordPending   = "pending-key"
	wordVersion   = "version"
	wordSelfTest  = "selftest"
	wordPreflight = "preflight"
	wordFetch     = "fetch"
	// flagChange lets a host become another node.
	flagChange = "--change-node"
	// flagRemoveKeys accepts that a bundle removes the signing keys of the host.
	flagRemoveKeys = "--remove-signing-keys"
	// flagReset lets the host of a node join again.
	flagReset = "--reset"
)

// Target returns where the host is.
func (a *Agent) Target() Target { return a.target }

// Observe compares the host with the manifest.
func (a *Agent) Observe(ctx context.Context, r Request) (protocol.Observation, error) {
	return a.compareHost(ctx, r, wordObserve)
}

// Verify compares as Observe does, but reads every content and checks the health of every service.
func (a *Agent) Verify(ctx context.Context, r Request) (protocol.Observation, error) {
	return a.compareHost(ctx, r, wordVerify)
}

func (a *Agent) compareHost(ctx context.Context, r Request, word string, flags ...string) (protocol.Observation, error) {
	// The index goes along: the digests of secrets are keyed, and the index names their contents.
	var index bytes.Buffer
	if err := archive.Send(ctx, &index, archive.Request{Manifest: r.Manifest, Source: r.Source}); err != nil {
		return protocol.Observation{}, err
	}
	send := func(_ context.Context, w io.Writer) error {
		_, err := w.Write(index.Bytes())
		return err
	}
	var out answer
	words := slices.Concat([]string{word}, flags, r.requestFlags())
	failed := a.runChecked(ctx, ask{words: words, works: true, stdin: send, stdout: &out, limit: a.client.limits.Compare})
	if len(out.data) == 0 && failed != nil {
		return protocol.Observation{}, failed
	}
	o, err := protocol.DecodeObservation(out.data)
	if err != nil {
		return o, a.badAnswer(word, out.data, errors.Join(err, failed))
	}
	return o, unlessStatus(failed)
}

// unlessStatus drops an exit status, which the answer explains better. Shells change it anyway: PowerShell makes 1 of
// all.
func unlessStatus(err error) error {
	var status *CommandError
	if errors.As(err, &status) && status.Status != NoStatus {
		return nil
	}
	return err
}

func (a *Agent) badAnswer(command string, data []byte, err error) error {
	return &AnswerError{Target: a.target, Command: command, Head: beginningOf(data), Err: err}
}

// Apply brings the host to the state of the request: it asks what differs, and where something does, sends the contents that
// are missing and applies. It returns the last event. Tell gets all of them as they come.
//
// An error means that there is no result: the host may have been changed in part, and the next Apply resumes the run.
func (a *Agent) Apply(ctx context.Context, r Request, o ApplyOptions, tell func(protocol.Event)) (protocol.Event, error) {
	seen, err := a.compareHost(ctx, r, wordObserve, o.compareFlags()...)
	if err != nil {
		return protocol.Event{}, err
	}
	if result, done := o.resultIfDone(seen, r); done {
		tell(result)
		return result, nil
	}
	if o.DryRun {
		return a.sendAndApply(ctx, r, o, nil, tell)
	}
	missing, err := a.fetchMissing(ctx, r, seen.Missing)
	if err != nil {
		return protocol.Event{}, err
	}
	result, err := a.sendAndApply(ctx, r, o, missing, unlessMissing(tell))
	if err != nil || !isMissing(result) {
		return result, err
	}
	if missing, err = a.fetchMissing(ctx, r, slices.Concat(missing, result.Missing)); err != nil {
		return protocol.Event{}, err
	}
	return a.sendAndApply(ctx, r, o, missing, tell)
}

// resultIfDone returns the result if there is nothing to apply, or if the impact is higher than allowed.
func (o ApplyOptions) resultIfDone(seen protocol.Observation, r Request) (protocol.Event, bool) {
	e := protocol.Event{Schema: protocol.Schema, Time: time.Now().UTC(), Event: protocol.EventResult, Bundle: seen.Bundle,
		RebootPending: seen.RebootPending}
	if seen.InSync && seen.Applied == r.Manifest.Digest && seen.Interrupted == "" && (!o.Reboot || len(seen.RebootPending) == 0) {
		e.Result = protocol.ResultSame
		return e, true
	}
	if err := seen.Impact.CheckLimit(o.MaxImpact); err != nil && !o.DryRun {
		e.Result, e.Impact, e.Message = protocol.ResultRefused, seen.Impact, err.Error()
		return e, true
	}
	return e, false
}

// isMissing reports whether nothing was applied because contents are missing: the host found that some of its own are
// corrupt.
func isMissing(result protocol.Event) bool {
	return result.Result == protocol.ResultRefused && len(result.Missing) > 0
}

// unlessMissing leaves out a result after which the archive is sent again.
func unlessMissing(tell func(protocol.Event)) func(protocol.Event) {
	return func(e protocol.Event) {
		if !isMissing(e) {
			tell(e)
		}
	}
}

// sendAndApply applies, with the contents that are missing.
func (a *Agent) sendAndApply(ctx context.Context, r Request, o ApplyOptions, missing []protocol.Missing,
	tell func(protocol.Event)) (protocol.Event, error) {
	parts := map[bundle.Digest][]int{}
	for _, m := range missing {
		parts[m.Digest] = m.Parts
	}
	waits := o.Wait + o.ConfirmWithin
	return a.lastEvent(ctx, ask{words: append(o.applyFlags(), r.requestFlags()...), changes: !o.DryRun,
		stdin: sendMissing(ctx, r, parts), limit: a.client.limits.Apply + waits, waits: waits}, tell)
}

// sendMissing sends a request with the parts of contents that the host lacks. Who has made the context is told how much
// is sent.
func sendMissing(ctx context.Context, r Request, parts map[bundle.Digest][]int) func(ctx context.Context, w io.Writer) error {
	return func(sending context.Context, w io.Writer) error {
		request := archive.Request{Manifest: r.Manifest, Source: r.Source, Missing: parts}
		if sum, what := missingBytes(request); sum > 0 {
			w = io.MultiWriter(w, newCopying(ctx, what, 0, sum))
		}
		return archive.Send(sending, w, request)
	}
}

// Stage sends the executables of a request that the host lacks, for a bundle of later. Nothing that runs is changed. An
// interrupted transfer is resumed by the next call. Wait is how long to wait for another run on the host.
func (a *Agent) Stage(ctx context.Context, r Request, wait time.Duration) (protocol.Event, error) {
	seen, err := a.compareHost(ctx, r, wordObserve)
	if err != nil {
		return protocol.Event{}, err
	}
	missing, err := a.fetchMissing(ctx, r, seen.Missing)
	if err != nil {
		return protocol.Event{}, err
	}
	result, err := a.stageMissing(ctx, r, missing, wait)
	if err != nil || !isMissing(result) {
		return result, err
	}
	return a.stageMissing(ctx, r, result.Missing, wait)
}

func (a *Agent) stageMissing(ctx context.Context, r Request, missing []protocol.Missing, wait time.Duration) (protocol.Event, error) {
	wanted, parts := r.Manifest.PayloadDigests(), map[bundle.Digest][]int{}
	for _, m := range missing {
		if wanted[m.Digest] {
			parts[m.Digest] = m.Parts
		}
	}
	question := ask{
		words: append([]string{wordStage, "--wait", wait.String()}, r.requestFlags()...), changes: true,
		stdin: sendMissing(ctx, r, parts), limit: a.client.limits.Apply + wait, waits: wait,
	}
	return a.lastEvent(ctx, question, func(protocol.Event) {})
}

// lastEvent runs the agent and returns its last event. Tell gets all of them as they come.
func (a *Agent) lastEvent(ctx context.Context, q ask, tell func(protocol.Event)) (protocol.Event, error) {
	out := events{tell: func(e protocol.Event) {
		noteProgress(ctx)
		tell(e)
	}}
	q.stdout, q.works = &out, true
	failed := a.runChecked(ctx, q)
	switch {
	case out.result.Event != "":
		return out.result, nil
	case out.problem != nil:
		return out.result, a.badAnswer(q.words[0], out.bad, errors.Join(out.problem, failed))
	case failed != nil:
		return out.result, failed
	}
	return out.result, a.badAnswer(q.words[0], nil, errors.New("it ended without a result"))
}

// Repair restores the bundle that was applied last, from what the host keeps. A plan with a higher impact is refused.
// Services of the bundle that are named are restarted although nothing about them differs.
func (a *Agent) Repair(ctx context.Context, limit bundle.Impact, wait time.Duration, restart ...string) (protocol.Event, error) {
	words := []string{wordRepair, "--max-impact", string(limit), "--wait", wait.String()}
	for _, service := range restart {
		words = append(words, "--restart", service)
	}
	return a.lastEvent(ctx, ask{words: words, changes: true, limit: a.client.limits.Apply + wait, waits: wait}, func(protocol.Event) {})
}

// Cleanup removes everything managed from the host.
func (a *Agent) Cleanup(ctx context.Context, wait time.Duration) (protocol.Event, error) {
	words := []string{wordCleanup, "--wait", wait.String()}
	return a.lastEvent(ctx, ask{words: words, changes: true, limit: a.client.limits.Apply + wait, waits: wait}, func(protocol.Event) {})
}

// compareFlags are those of observe and apply.
func (o ApplyOptions) compareFlags() []string {
	if o.ChangeNode {
		return []string{flagChange}
	}
	return nil
}

// requestFlags are those of each command that gets the request.
func (r Request) requestFlags() []string {
	if r.Reset == "" {
		return nil
	}
	return []string{flagReset, r.Reset}
}

func (o ApplyOptions) applyFlags() []string {
	words := append([]string{wordApply}, o.compareFlags()...)
	if o.DryRun {
		words = append(words, "--dry-run")
	}
	if o.MaxImpact != "" {
		words = append(words, "--max-impact", string(o.MaxImpact))
	}
	if o.Reboot {
		words = append(words, "--reboot")
	}
	if o.RemoveSigningKeys {
		words = append(words, flagRemoveKeys)
	}
	if o.ConfirmWithin > 0 {
		words = append(words, "--confirm-within", o.ConfirmWithin.String())
	}
	if o.Wait > 0 {
		words = append(words, "--wait", o.Wait.String())
	}
	return words
}

// Confirm confirms the bundle that a run is waiting for (ApplyOptions.ConfirmWithin).
func (a *Agent) Confirm(ctx context.Context, d bundle.Digest) error {
	return a.runChecked(ctx, ask{words: []string{wordConfirm, string(d)}, stdout: &answer{}, limit: a.client.limits.Question})
}

// Facts returns the facts that the host reports.
func (a *Agent) Facts(ctx context.Context) (bundle.Facts, error) {
	var out answer
	if err := a.runChecked(ctx, ask{words: []string{wordFacts}, stdout: &out, limit: a.client.limits.Question}); err != nil {
		return bundle.Facts{}, err
	}
	all, err := bundle.DecodeFacts(bytes.NewReader(out.data))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("facts of %d hosts, expected 1", len(all))
	}
	if err != nil {
		return bundle.Facts{}, a.badAnswer(wordFacts, out.data, err)
	}
	return all[0], nil
}

// PendingKey is the public key with which the kubelet of a host asks for its first certificate.
type PendingKey struct {
	// PublicKey is in the form of PKIX, DER; empty if the kubelet has none.
	PublicKey []byte `json:"publicKey"`
	// NotAfter is when the client certificate that the kubelet has expires; zero if it has none.
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// PendingKey asks the host for it.
func (a *Agent) PendingKey(ctx context.Context) (PendingKey, error) {
	var out answer
	if err := a.runChecked(ctx, ask{words: []string{wordPending}, stdout: &out, limit: a.client.limits.Question}); err != nil {
		return PendingKey{}, err
	}
	var key PendingKey
	if err := json.Unmarshal(out.data, &key); err != nil {
		return PendingKey{}, a.badAnswer(wordPending, out.data, err)
	}
	return key, nil
}
