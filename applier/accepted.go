package applier

import (
	"context"
	"slices"

	"wmco/applier/records"
	"wmco/bundle"
)

// Accepted is the newest desired state of the Node of a host that its agent has accepted.
type Accepted = records.Accepted

// LastAccepted returns what was accepted last; zero if nothing was.
func (e *Engine) LastAccepted(ctx context.Context) (Accepted, error) {
	return records.ReadAccepted(ctx, e.Host)
}

// NoteAccepted notes an accepted state, before anything is done with it. The folder of the records is made where a host
// has none.
func (e *Engine) NoteAccepted(ctx context.Context, a Accepted) error {
	if err := e.prepareFolders(ctx); err != nil {
		return err
	}
	a.Program = e.Program
	return records.WriteAccepted(ctx, e.Host, a)
}

// BroughtFile reports whether the bundle that was applied last has a file at the path, whether the host still has it or
// not.
func (e *Engine) BroughtFile(ctx context.Context, path string) (bool, error) {
	r, err := records.LoadRecords(ctx, e.Host)
	if err != nil {
		return false, err
	}
	isPath := func(f bundle.File) bool { return bundle.FoldPath(f.Path) == bundle.FoldPath(path) }
	b := r.Ledger.Bundle.ManifestBundle()
	return slices.ContainsFunc(append(slices.Clone(b.Cluster.Files), b.Node.Files...), isPath), nil
}
