package records

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"wmco/bundle"
)

// maxStaged is how many contents can be staged: a payload has about fifteen.
const maxStaged = 1000

// Staged lists contents that are kept although no bundle on this host has them yet. They came ahead of the bundle, and
// a later call replaces the list.
type Staged struct {
	Schema  int       `json:"schema"`
	Program string    `json:"program"`
	Time    time.Time `json:"time"`
	// Bundle is the one that they came for. Any other that has them may use them.
	Bundle bundle.Digest `json:"bundle"`
	// Contents are named by their sha256, sorted.
	Contents []string `json:"contents"`
}

func (s Staged) checkStaged() error {
	if len(s.Contents) > maxStaged {
		return fmt.Errorf("%w: %d staged contents", ErrDamaged, len(s.Contents))
	}
	for _, sum := range s.Contents {
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
			return fmt.Errorf("%w: %.80q is not a sha256", ErrDamaged, sum)
		}
	}
	return nil
}

// readStaged reads the staged contents. A damaged list is none: the contents are sent again.
func (r *Records) readStaged(ctx context.Context) error {
	if !r.isTrusted(FileStaged) {
		return nil
	}
	err := DecodeFile(ctx, r.host, FileStaged, "list of staged contents", &r.Staged)
	if err == nil {
		err = r.Staged.checkStaged()
	}
	if err == nil {
		return nil
	}
	r.Staged = Staged{}
	damaged := r.Damaged
	err = r.tolerateDamage(err, "the list of staged contents is damaged: they are sent again")
	r.Damaged = damaged // services have nothing to do with it
	return err
}

// WriteStaged replaces the list of staged contents.
func (r *Records) WriteStaged(ctx context.Context, s Staged) error {
	s.Schema = sharedSchema
	if err := ReplaceFile(ctx, r.host, FileStaged, s); err != nil {
		return fmt.Errorf("writing the list of staged contents: %w", err)
	}
	r.Staged = s
	return nil
}

// endStaging drops the list when the applied bundle has all of it. Where that fails, the next sweep does it.
func (r *Records) endStaging(ctx context.Context, needed map[string]bool) {
	if r.Staged.Schema == 0 || slices.ContainsFunc(r.Staged.Contents, func(sum string) bool { return !needed[sum] }) {
		return
	}
	if r.host.Remove(ctx, FileStaged) == nil {
		r.Staged = Staged{}
	}
}
