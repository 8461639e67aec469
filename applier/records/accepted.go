package records

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wmco/bundle"
)

// Accepted is the newest desired state of the Node of this host that the node agent has accepted. It outlives
// the process, so that older state is refused afterwards as well.
type Accepted struct {
	Schema  int    `json:"schema"`
	Program string `json:"program"`
	// Term and Sequence are its counter, Text is the digest of the annotation.
	Term     int64         `json:"term"`
	Sequence int64         `json:"sequence"`
	Text     bundle.Digest `json:"text"`
	// Time is when the agent first had it, Since how long the host had run then, in nanoseconds, and Boot the boot time
	// of the host.
	Time  time.Time     `json:"time"`
	Since time.Duration `json:"since"`
	Boot  string        `json:"boot,omitempty"`
	// Signers are the IDs of the keys of this host that had signed it, sorted; none where an older program accepted it.
	// They are in a file of their own, because older programs refuse a record with a field that they do not know.
	Signers []string `json:"-"`
}

// signers is the record of Accepted.Signers.
type signers struct {
	Schema  int      `json:"schema"`
	Program string   `json:"program"`
	Keys    []string `json:"keys"`
}

// ReadAccepted returns a zero value where there is none, or none that counts. Only an administrator of the host, or a
// fault of its disk, can bring that about: whoever may only write to the Node cannot.
func ReadAccepted(ctx context.Context, host Files) (Accepted, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return Accepted{}, err
	}
	r := &Records{Untrusted: bad}
	if !r.isTrusted(FileAccepted) {
		return Accepted{}, nil
	}
	var a Accepted
	err = DecodeFile(ctx, host, FileAccepted, "record of what was accepted", &a)
	if err == nil && a.Schema != 0 && a.Text.Validate() != nil {
		err = fmt.Errorf("reading the record of what was accepted: %w", ErrDamaged)
	}
	if err != nil {
		return Accepted{}, r.tolerateDamage(err, "")
	}
	var s signers
	if r.isTrusted(FileSigners) {
		err = DecodeFile(ctx, host, FileSigners, "record of who signed what was accepted", &s)
	}
	a.Signers = s.Keys
	return a, r.tolerateDamage(err, "")
}

// WriteAccepted replaces it. The signers are written last: a record of theirs that is not written names keys of before,
// whose counters end with them.
func WriteAccepted(ctx context.Context, host Files, a Accepted) error {
	before, err := ReadAccepted(ctx, host)
	if err != nil {
		return err
	}
	a.Schema = sharedSchema
	if err := ReplaceFile(ctx, host, FileAccepted, a); err != nil {
		return fmt.Errorf("writing the record of what was accepted: %w", err)
	}
	if slices.Equal(before.Signers, a.Signers) {
		return nil
	}
	if err := ReplaceFile(ctx, host, FileSigners, signers{Schema: sharedSchema, Program: a.Program, Keys: a.Signers}); err != nil {
		return fmt.Errorf("writing the record of who signed what was accepted: %w", err)
	}
	return nil
}
