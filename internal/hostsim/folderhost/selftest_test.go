//go:build unix

package folderhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/selftest"
	"wmco/internal/hostsim"
)

// TestASelfTestPassesAndLeavesNothing runs the whole self-test on a simulated host.
func TestASelfTestPassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	create(t, root)
	before := contentsOf(t, root)
	m := NewMachine(root, Options{Now: hostsim.NewClock(hostsim.Epoch()).Now})
	r, err := selftest.Run(t.Context(), m, selftest.Options{Now: time.Now, Tell: func(selftest.Outcome) {}})
	ok(t, err)
	for _, o := range r.Clauses {
		if o.Status == selftest.StatusFailed {
			t.Errorf("%s: %+v", o.Clause, o.Failures)
		}
	}
	if r.Passed+r.Skipped != len(r.Clauses) || r.Passed < 90 || r.Skipped != len(m.Skips()) || len(r.Removed)+len(r.Left) > 0 {
		t.Errorf("%d passed, %d skipped, removed %q, left %q", r.Passed, r.Skipped, r.Removed, r.Left)
	}
	if diff := cmp.Diff(before, contentsOf(t, root)); diff != "" {
		t.Errorf("files before and after:\n%s", diff)
	}
}

// TestAnInterruptedSelfTestIsCleanedUp ends the run in each clause, without what clauses do at their end.
func TestAnInterruptedSelfTestIsCleanedUp(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	create(t, root)
	before := contentsOf(t, root)
	m := NewMachine(root, Options{Now: hostsim.NewClock(hostsim.Epoch()).Now})
	anything := 0
	for _, part := range selftest.Parts() {
		for _, c := range part.Clauses {
			if m.Skips()[c.Name] != "" {
				continue
			}
			ok(t, m.Prepare(t.Context()))
			c.Test(&killed{t}, m)
			removed, err := m.Clean(t.Context())
			if err != nil {
				t.Errorf("after %q: %v", c.Name, err)
			}
			anything += len(removed)
			if diff := cmp.Diff(before, contentsOf(t, root)); diff != "" {
				t.Errorf("files before, and after %q was interrupted:\n%s", c.Name, diff)
			}
		}
	}
	if anything < 100 {
		t.Errorf("the clauses left only %d things to remove", anything)
	}
}

// killed is a clause whose process ends before it cleans up.
type killed struct{ testing.TB }

// Cleanup calls nothing.
func (*killed) Cleanup(func()) {}

// contentsOf returns the size of each file of the host's drive.
func contentsOf(t *testing.T, root string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(root, driveFolder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		all[path] = info.Size()
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}
