package payloadbuild

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"wmco/payload/store"
)

// errDiffers is the error for a second build with other bytes.
var errDiffers = errors.New("two builds differ")

// Check verifies the built executables, builds them again from empty caches in a folder below Out, and compares the
// digests.
func Check(ctx context.Context, o Options) error {
	first, err := o.verifyList(ctx)
	if err != nil {
		return err
	}
	// The underscore excludes the module cache in it from ./...
	again, err := os.MkdirTemp(o.Out, "_payload-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(again) //nolint:errcheck // what remains of it is harmless
	second := o
	second.Out, second.Caches = again, filepath.Join(again, "caches")
	if err := Build(ctx, second); err != nil {
		return fmt.Errorf("building from empty caches: %w", err)
	}
	entries, err := second.verifyList(ctx)
	if err != nil {
		return err
	}
	return o.compareBuilds(first, entries)
}

// verifyList verifies the folder and returns the selected executables. It returns an error if one is missing.
func (o Options) verifyList(ctx context.Context) ([]store.Entry, error) {
	all, err := o.readRecipes(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := o.chooseRecipes(all)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(o.payloadDir())
	if err != nil {
		return nil, err
	}
	if err := s.Verify(ctx); err != nil {
		return nil, err
	}
	var entries []store.Entry
	for _, r := range wanted {
		i := slices.IndexFunc(s.Entries(), func(e store.Entry) bool { return e.Name == r.Name })
		if i < 0 {
			return nil, fmt.Errorf("checking %q: %s is not built: make payload", o.payloadDir(), r.Name)
		}
		entries = append(entries, s.Entries()[i])
	}
	return entries, nil
}

func (o Options) compareBuilds(first, second []store.Entry) error {
	var problems []error
	for i, e := range first {
		if e != second[i] {
			problems = append(problems, fmt.Errorf("comparing %s: %w: %+v and %+v", e.Name, errDiffers, e, second[i]))
			continue
		}
		o.logf("same bytes: %s %s %s", e.Raw.Digest.Short(), e.Name, e.Version)
	}
	return errors.Join(problems...)
}
