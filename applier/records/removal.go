package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"wmco/bundle"
)

// Removal is a removal of everything from this host that its node agent has begun. It outlives every process until
// nothing else is left.
type Removal struct {
	Schema  int       `json:"schema"`
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	// Node is the UID of the Node that ends; empty where no removal has begun.
	Node string `json:"node"`
}

// ReadRemoval returns a zero value where there is none, or none that counts.
func ReadRemoval(ctx context.Context, host Files) (Removal, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return Removal{}, err
	}
	r := &Records{host: host, Untrusted: bad}
	err = r.readRemoval(ctx)
	return r.Removal, err
}

func (r *Records) readRemoval(ctx context.Context) error {
	if !r.isTrusted(FileRemoval) {
		return nil
	}
	err := DecodeFile(ctx, r.host, FileRemoval, "record of the removal", &r.Removal)
	switch {
	case errors.Is(err, ErrDamaged): // the node agent is told again
		r.Removal = Removal{}
		r.Notes = append(r.Notes, "the record of the removal is damaged, and does not count")
		return nil
	case err != nil:
		return err
	}
	return nil
}

// WriteRemoval replaces it. Access, which holds a private key, is written before: without it there is no removal.
func WriteRemoval(ctx context.Context, host Files, r Removal, access []byte) error {
	if err := host.Write(ctx, FileRemovalAccess, bundle.AccessAdmins, bytes.NewReader(access)); err != nil {
		return fmt.Errorf("writing %s: %w", FileRemovalAccess, err)
	}
	r.Schema = sharedSchema
	if err := ReplaceFile(ctx, host, FileRemoval, r); err != nil {
		return fmt.Errorf("writing the record of the removal: %w", err)
	}
	return nil
}

// ForgetRemoval removes it, the record last.
func ForgetRemoval(ctx context.Context, host Files) error {
	for _, path := range []string{FileRemovalAccess, FileRemoval} {
		if err := host.Remove(ctx, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return nil
}
