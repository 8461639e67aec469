package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Machine is a machine that answers over SSH.
type Machine struct {
	client *Client
	target Target
}

// Request is what a machine should be.
type Request struct {
	Manifest bundle.Manifest
	// Source has the contents. Many machines may share it.
	Source archive.Source
}

// ApplyOptions are how a machine is made right.
type ApplyOptions struct {
	// DryRun ends before the first write.
	DryRun bool
	// MaxImpact refuses a plan that costs more; empty refuses none.
	MaxImpact bundle.Impact
	// Reboot lets the machine restart where the plan needs it.
	Reboot bool
	// ConfirmWithin rolls back unless Confirm comes within it; 0 needs no confirmation.
	ConfirmWithin time.Duration
	// Wait is how long to wait for another one who changes the machine.
	Wait time.Duration
}

// Words of the node program.
const (
	wordObserve = "observe"
	wordVerify  = "verify"
	wordApply   = "apply"
	wordConfirm = "confirm"
	wordFacts   = "facts"
	wordVersion = "version"
	wordServe   = "serve"
)

// Target is where the machine is.
func (m *Machine) Target() Target { return m.target }

// Observe compares the machine with the manifest.
func (m *Machine) Observe(ctx context.Context, r Request) (applier.Observation, error) {
	return m.observation(ctx, r, wordObserve)
}

// Verify is Observe that believes nothing: every content is read, every service asked.
func (m *Machine) Verify(ctx context.Context, r Request) (applier.Observation, error) {
	return m.observation(ctx, r, wordVerify)
}

func (m *Machine) observation(ctx context.Context, r Request, word string) (applier.Observation, error) {
	// The index goes along, so that the machine can tell the secrets that it has: their digests are keyed.
	index, err := encode(ctx, archive.Request{Manifest: r.Manifest, Source: r.Source})
	if err != nil {
		return applier.Observation{}, err
	}
	send := func(_ context.Context, w io.Writer) error {
		_, err := w.Write(index)
		return err
	}
	data, failed := m.answer(ctx, send, word)
	if len(data) == 0 && failed != nil {
		return applier.Observation{}, failed
	}
	o, err := applier.DecodeObservation(data)
	if err != nil {
		return o, m.strange(word, data, errors.Join(err, failed))
	}
	// The program that answered is ours, whether the bundle names it or not.
	o.Foreign = slices.DeleteFunc(o.Foreign, func(path string) bool { return path == m.client.program.Path })
	return o, unlessStatus(failed)
}

func encode(ctx context.Context, r archive.Request) ([]byte, error) {
	var out bytes.Buffer
	err := archive.Send(ctx, &out, r)
	return out.Bytes(), err
}

// unlessStatus takes a status away that the answer tells in better words. Shells change it anyway: PowerShell makes 1 of all.
func unlessStatus(err error) error {
	var status *CommandError
	if errors.As(err, &status) && status.Status != NoStatus {
		return nil
	}
	return err
}

func (m *Machine) strange(command string, data []byte, err error) error {
	return &AnswerError{Target: m.target, Command: command, Head: head(data), Err: err}
}

// Apply brings the machine to what the request says: where something differs it sends the contents that the machine lacks
// and applies. It asks the machine what it lacks, unless it has left it with another bundle and knows. It returns the last
// event. Tell gets all of them as they come.
//
// An error means that there is no result: how far the machine came is not known, and the next Apply takes it up.
func (m *Machine) Apply(ctx context.Context, r Request, o ApplyOptions, tell func(applier.Event)) (applier.Event, error) {
	result, err := m.apply(ctx, r, o, tell)
	if !o.DryRun {
		m.client.left(m.target, r, result.Result)
	}
	return result, err
}

func (m *Machine) apply(ctx context.Context, r Request, o ApplyOptions, tell func(applier.Event)) (applier.Event, error) {
	lacks, known := m.client.lacks(m.target, r)
	if o.DryRun || !known {
		seen, err := m.Observe(ctx, r)
		if err != nil {
			return applier.Event{}, err
		}
		if result, done := o.done(seen, r); done {
			tell(result)
			return result, nil
		}
		lacks = seen.Missing
	}
	if o.DryRun {
		return m.send(ctx, r, o, nil, tell)
	}
	// What a guess missed, and then what rotted where it was kept.
	for range 2 {
		result, err := m.send(ctx, r, o, lacks, patient(tell))
		if err != nil || !wanting(result) {
			return result, err
		}
		lacks = slices.Concat(lacks, result.Missing)
	}
	return m.send(ctx, r, o, lacks, tell)
}

// done is the result where there is nothing to apply, or more than is allowed.
func (o ApplyOptions) done(seen applier.Observation, r Request) (applier.Event, bool) {
	e := applier.Event{Schema: applier.Schema, Time: time.Now().UTC(), Event: applier.EventResult, Bundle: seen.Bundle, RebootPending: seen.RebootPending}
	if seen.InSync && seen.Applied == r.Manifest.Digest && seen.Interrupted == "" && (!o.Reboot || len(seen.RebootPending) == 0) {
		e.Result = applier.ResultSame
		return e, true
	}
	if err := applier.Allowed(seen.Impact, o.MaxImpact); err != nil && !o.DryRun {
		e.Result, e.Impact, e.Message = applier.ResultRefused, seen.Impact, err.Error()
		return e, true
	}
	return e, false
}

// wanting tells whether nothing was done because something is missing: it went away since the machine was last asked.
func wanting(result applier.Event) bool {
	return result.Result == applier.ResultRefused && len(result.Missing) > 0
}

// patient does not tell a result after which everything is sent again.
func patient(tell func(applier.Event)) func(applier.Event) {
	return func(e applier.Event) {
		if !wanting(e) {
			tell(e)
		}
	}
}

// send applies with the contents that are missing.
func (m *Machine) send(ctx context.Context, r Request, o ApplyOptions, missing []applier.Missing, tell func(applier.Event)) (applier.Event, error) {
	lacks := map[bundle.Digest][]int{}
	for _, want := range missing {
		lacks[want.Digest] = want.Parts
	}
	send := func(ctx context.Context, w io.Writer) error {
		return archive.Send(ctx, w, archive.Request{Manifest: r.Manifest, Source: r.Source, Missing: lacks})
	}
	e := &events{tell: tell}
	failed := m.call(ctx, call{stdin: send, stdout: e.read, answered: func() bool { return e.any }, words: o.words()})
	if e.result.Event != "" {
		return e.result, nil
	}
	if e.problem != nil {
		return e.result, m.strange(wordApply, e.strange, errors.Join(e.problem, failed))
	}
	if failed == nil {
		failed = m.strange(wordApply, nil, errors.New("it ended without a result"))
	}
	return e.result, failed
}

func (o ApplyOptions) words() []string {
	words := []string{wordApply}
	if o.DryRun {
		words = append(words, "--dry-run")
	}
	if o.MaxImpact != "" {
		words = append(words, "--max-impact", string(o.MaxImpact))
	}
	if o.Reboot {
		words = append(words, "--reboot")
	}
	if o.ConfirmWithin > 0 {
		words = append(words, "--confirm-within", o.ConfirmWithin.String())
	}
	if o.Wait > 0 {
		words = append(words, "--wait", o.Wait.String())
	}
	return words
}

// Confirm tells the machine that what was applied is good.
func (m *Machine) Confirm(ctx context.Context, d bundle.Digest) error {
	_, err := m.answer(ctx, nil, wordConfirm, string(d))
	return err
}

// Facts asks the machine about itself.
func (m *Machine) Facts(ctx context.Context) (bundle.Facts, error) {
	data, err := m.answer(ctx, nil, wordFacts)
	if err != nil {
		return bundle.Facts{}, err
	}
	all, err := bundle.DecodeFacts(bytes.NewReader(data))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d facts", len(all))
	}
	if err != nil {
		return bundle.Facts{}, m.strange(wordFacts, data, err)
	}
	return all[0], nil
}

// Version is what the node program says of itself.
type Version struct {
	Version string `json:"version"`
	// Digest is of the program's own file.
	Digest bundle.Digest `json:"digest"`
}

// Version asks the node program about itself.
func (m *Machine) Version(ctx context.Context) (Version, error) {
	data, err := m.answer(ctx, nil, wordVersion)
	if err != nil {
		return Version{}, err
	}
	return m.decodeVersion(data)
}

func (m *Machine) decodeVersion(data []byte) (Version, error) {
	var v Version
	if err := json.Unmarshal(data, &v); err != nil {
		return Version{}, m.strange(wordVersion, data, err)
	}
	return v, nil
}

// answer runs the node program and returns everything that it printed.
func (m *Machine) answer(ctx context.Context, stdin func(context.Context, io.Writer) error, words ...string) ([]byte, error) {
	var data []byte
	read := func(from io.Reader) (err error) {
		data, err = readAnswer(from)
		return err
	}
	err := m.call(ctx, call{stdin: stdin, stdout: read, answered: func() bool { return isAnswer(data) }, words: words})
	return data, err
}

func nameOf(words []string) string { return strings.Join(words, " ") }
