package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Stage keeps the executables of a bundle that is applied later, so that nothing has to be sent then. It changes
// nothing that runs, and what it keeps survives every run until a bundle has it, or other contents are staged. A
// transfer that was interrupted is resumed by the next call with the parts that are missing. A result of ResultSame
// means that everything was here, ResultRefused that contents are missing, which it names.
func (e *Engine) Stage(ctx context.Context, m bundle.Manifest, from ContentSource, wait time.Duration) (Outcome, error) {
	record, err := e.admitBundle(m, from.Contents())
	return e.stageRecord(ctx, record, staging{from, func(bundle.Digest) bool { return false }, wait}, err)
}

// StageExecutables is Stage for executables of which no bundle is known yet: all that are to be kept, those of which the
// source has bytes among them. It returns which the host lacks then. lacks reports whether one is to be sent although the
// applied bundle has it. Paths are not asked for, so that a host gets executables too that this program installs nowhere;
// the bundle that brings them is checked.
func (e *Engine) StageExecutables(ctx context.Context, all []archive.Content, lacks func(bundle.Digest) bool, from archive.Source,
	wait time.Duration) ([]bundle.Digest, error) {
	var l bundle.Layer
	for _, c := range all {
		l.Payload = append(l.Payload, bundle.Payload{Digest: c.Digest, Size: c.Size})
	}
	record := records.BundleRecord{Manifest: bundle.Manifest{Layers: []bundle.Index{{Layer: l}}}}
	request := archive.Request{Manifest: record.Manifest, Source: onlyListed{all, from}, Missing: map[bundle.Digest][]int{}}
	record.Contents = request.Contents()
	for _, c := range from.Contents() {
		request.Missing[c.Digest] = nil
	}
	delivery, err := request.Deliver(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading executables: %w", err)
	}
	defer delivery.Close()
	_, err = e.stageRecord(ctx, record, staging{delivery, lacks, wait}, nil)
	var refused *RefusedError
	if !errors.As(err, &refused) || len(refused.Missing) == 0 {
		return nil, err
	}
	var missing []bundle.Digest
	for _, m := range refused.Missing {
		missing = append(missing, m.Digest)
	}
	return missing, nil
}

// onlyListed lists contents of which a source may have no bytes.
type onlyListed struct {
	all []archive.Content
	archive.Source
}

// Contents implements archive.Source.
func (l onlyListed) Contents() []archive.Content { return l.all }

// staging is where executables come from. lacks reports whether the host lacks one that the applied bundle has, and that
// did not come.
type staging struct {
	from  ContentSource
	lacks func(bundle.Digest) bool
	wait  time.Duration
}

func (e *Engine) stageRecord(ctx context.Context, record records.BundleRecord, s staging, refused error) (Outcome, error) {
	r, err := newRun(e, Options{LockWait: s.wait}), refused
	if err == nil {
		err = r.whileLocked(ctx, func() error {
			if err := r.receiveContents(ctx, record, s.from); err != nil {
				return err
			}
			return r.stageContents(ctx, record, s.lacks)
		})
	}
	return r.endRun(record.Manifest.Digest, err)
}

// stageContents lists the contents to keep. What the applied bundle has is in its place, and need not come again.
func (r *run) stageContents(ctx context.Context, record records.BundleRecord, lacks func(bundle.Digest) bool) error {
	wanted, has := record.Manifest.PayloadDigests(), r.records.Ledger.Bundle.Manifest.PayloadDigests()
	s := records.Staged{Schema: records.Schema, Program: r.engine.Program, Time: r.engine.Clock.Now(), Bundle: record.Manifest.Digest}
	var missing []protocol.Missing
	r.progress.result = protocol.ResultSame
	for _, c := range record.Contents {
		if !wanted[c.Digest] {
			continue
		}
		switch store := r.records.Store; {
		case !store.IsWhole(c.SHA256) && has[c.Digest] && !lacks(c.Digest):
			continue
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
