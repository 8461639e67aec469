package records

import (
	"context"
	"fmt"
	"time"

	"wmco/bundle"
)

// Undone is the bundle that was rolled back by a process that cannot report it.
type Undone struct {
	Schema  int       `json:"schema"`
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	// Bundle is the one that was rolled back, Reason why. It holds no secrets.
	Bundle bundle.Digest `json:"bundle"`
	Reason string        `json:"reason"`
	// Guarded reports whether bundle.GuardService rolled back, which cannot remove itself.
	Guarded bool `json:"guarded,omitempty"`
}

// ReadUndone returns a zero value where there is none, or none that counts.
func ReadUndone(ctx context.Context, host Files) (Undone, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return Undone{}, err
	}
	r := &Records{Untrusted: bad}
	if !r.isTrusted(FileUndone) {
		return Undone{}, nil
	}
	var u Undone
	err = DecodeFile(ctx, host, FileUndone, "record of the rollback", &u)
	if err == nil && u.Schema != 0 {
		err = u.Bundle.Validate()
	}
	if err != nil {
		return Undone{}, r.tolerateDamage(err, "")
	}
	return u, nil
}

// WriteUndone replaces it.
func WriteUndone(ctx context.Context, host Files, u Undone) error {
	u.Schema = sharedSchema
	if err := ReplaceFile(ctx, host, FileUndone, u); err != nil {
		return fmt.Errorf("writing the record of the rollback: %w", err)
	}
	return nil
}
