package applier

import (
	"context"
	"slices"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// Stage keeps the executables of a bundle that is applied later, so that nothing has to be sent then. It changes
// nothing that runs, and what it keeps survives every run until a bundle has it, or other contents are staged. A
// transfer that was interrupted is resumed by the next call with the parts that are missing. A result of ResultSame
// means that everything was here, ResultRefused that contents are missing, which it names.
func (e *Engine) Stage(ctx context.Context, m bundle.Manifest, from ContentSource, wait time.Duration) (Outcome, error) {
	r := newRun(e, Options{LockWait: wait})
	record, err := e.admitBundle(m, from.Contents())
	if err == nil {
		err = r.whileLocked(ctx, func() error {
			if err := r.receiveContents(ctx, record, from); err != nil {
				return err
			}
			return r.stageContents(ctx, record)
		})
	}
	return r.endRun(m.Digest, err)
}

func (r *run) stageContents(ctx context.Context, record records.BundleRecord) error {
	wanted := record.Manifest.PayloadDigests()
	s := records.Staged{Schema: records.Schema, Program: r.engine.Program, Time: r.engine.Clock.Now(), Bundle: record.Manifest.Digest}
	var missing []protocol.Missing
	r.progress.result = protocol.ResultSame
	for _, c := range record.Contents {
		if !wanted[c.Digest] {
			continue
		}
		switch store := r.records.Store; {
		case !store.IsWhole(c.SHA256):
			missing = append(missing, protocol.Missing{Digest: c.Digest, Parts: store.PartsOf(c.SHA256)})
		case store.HasArrived(c.SHA256):
			r.progress.result = protocol.ResultApplied
		}
		s.Contents = append(s.Contents, c.SHA256)
	}
	slices.Sort(s.Contents)
	s.Contents = slices.Compact(s.Contents)
	if !slices.Equal(s.Contents, r.records.Staged.Contents) {
		if err := r.records.WriteStaged(ctx, s); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return refuseMissing(missing)
	}
	return nil
}
