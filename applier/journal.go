package applier

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// beginRun records, before the first action, the entries that will change and their earlier state, and keeps the files that are
// about to be replaced. After an interruption, what the first run recorded stays.
func (r *run) beginRun(ctx context.Context, record records.BundleRecord, p plan.Plan, observed plan.Observed, t *plan.Target) error {
	j := r.records.Journal
	if r.records.Interrupted && j.Bundle.Manifest.Digest != record.Manifest.Digest {
		j.Earlier = append(j.Earlier, j.Bundle)
	}
	j.Schema, j.Phase, j.Bundle, j.Boot = records.Schema, records.PhaseApplying, record, r.situation.facts.BootTime
	if !r.repairs || !r.records.Interrupted {
		j.Allowed, j.Confirmer = cmp.Or(r.options.MaxImpact, bundle.ImpactReboot), r.options.Confirmer
		j.Waiting, j.Deadline = records.Waiting{Limit: r.options.ConfirmWithin}, time.Time{}
	}
	if !r.repairs || record.Manifest.Digest != r.records.Ledger.AppliedDigest() { // drift is not restored
		b := beforeRecorder{host: r.engine.Host, store: r.records.Store, observed: observed}
		if err := b.recordSteps(ctx, &j.Before, p); err != nil {
			return err
		}
	}
	for _, name := range p.ReaderServices() {
		j.Restart = withName(j.Restart, name)
	}
	for _, s := range p.Steps {
		switch s.Verb {
		case protocol.VerbClear:
			j.Stale.Paths = withName(j.Stale.Paths, s.File.Path)
		case protocol.VerbUnset:
			if s.Setting.Kind == bundle.KindNetwork {
				j.Stale.Networks = withName(j.Stale.Networks, s.Setting.Name)
			}
		case protocol.VerbStart:
			j.Starts = withName(j.Starts, s.Service.Config.Name)
			// The service control manager may start it in between, before what it reads is written. One that is stopped
			// by a step is noted by that.
			if s.Fresh && s.Reason == protocol.ReasonNotRunning {
				j.Restart = withName(j.Restart, s.Service.Config.Name)
			}
		case protocol.VerbMake, protocol.VerbSet, protocol.VerbWrite, protocol.VerbStop, protocol.VerbPut, protocol.VerbDelete, protocol.VerbRemove:
		}
	}
	for _, s := range t.Services {
		// The boot starts services that do not run.
		if p.Reboot && s.Run && observed.ServiceState(s.Config.Name).Status != plan.ServiceRunning {
			j.Starts = withName(j.Starts, s.Config.Name)
		}
	}
	r.steps.shadows = r.situation.maskedVariables(t, observed)
	return r.records.WriteJournal(ctx, j)
}

// beforeRecorder records the state of a host before it is changed.
type beforeRecorder struct {
	host     Host
	store    *records.Store
	observed plan.Observed
}

// recordSteps adds what the steps of a plan are about to change.
func (r beforeRecorder) recordSteps(ctx context.Context, b *records.Before, p plan.Plan) error {
	for _, s := range p.Steps {
		switch s.Verb {
		case protocol.VerbMake, protocol.VerbWrite, protocol.VerbRemove:
			if err := r.recordFile(ctx, b, s); err != nil {
				return err
			}
		case protocol.VerbSet, protocol.VerbUnset:
			if s.Setting.Kind == bundle.KindNetwork {
				continue // it belongs to another cluster and would be removed again
			}
			b.AddSetting(r.observed.Settings[s.Entry], s.Setting)
		case protocol.VerbStop, protocol.VerbPut, protocol.VerbDelete, protocol.VerbStart:
			b.AddService(s.Service.Config.Name, r.observed)
		case protocol.VerbClear: // it belongs to another cluster and would be removed again
		}
	}
	return nil
}

func (r beforeRecorder) recordFile(ctx context.Context, b *records.Before, s plan.Step) error {
	same := func(f records.FileBefore) bool { return bundle.FoldPath(f.Path) == bundle.FoldPath(s.File.Path) }
	if slices.ContainsFunc(b.Files, same) {
		return nil
	}
	have := r.observed.FileAt(s.File.Path)
	f := records.FileBefore{Entry: s.Entry, Path: s.File.Path, Kind: have.Kind, Access: have.Access}
	if have.Kind == plan.FileRegular {
		sum := have.SHA256
		if sum == "" {
			var err error
			if sum, err = records.SumFile(ctx, r.host, s.File.Path); err != nil {
				return err
			}
		}
		if sum == "" {
			f.Kind = plan.FileAbsent // it has gone since it was observed
		} else {
			f.Content = plan.Content{SHA256: sum, Size: have.Size}
			if err := r.store.KeepFile(ctx, s.File.Path, f.Content); err != nil {
				return fmt.Errorf("keeping %s: %w", s.File.Path, err)
			}
		}
	}
	b.Files = append(b.Files, f)
	return nil
}
