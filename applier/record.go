package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// recording is what a run records at its end.
type recording struct {
	records *records.Records
	target  *plan.Target
	// observed is the host before the first action.
	observed plan.Observed
}

// writeLedger writes the ledger if it has changed, and ends the run but for a boot that waits (rebootHost).
func (r *run) writeLedger(ctx context.Context, record records.BundleRecord, p plan.Plan, t *plan.Target) error {
	now := recording{records: r.records, target: t, observed: r.observed}
	next := records.Ledger{
		Schema: records.Schema, Program: r.engine.Program, Time: r.engine.Clock.Now(), Bundle: record,
		Found: now.preexistingEntries(), Folders: now.madeFolders(),
		Shadows: r.steps.shadows, Fresh: r.situation.freshVariables(t), Boot: r.situation.facts.BootTime,
	}
	files := map[string]bool{}
	for _, f := range t.Files {
		files[bundle.FoldPath(f.Path)] = f.Kind == plan.FileRegular
	}
	if r.progress.result == protocol.ResultSame {
		next.Shadows = r.records.Ledger.Shadows
	}
	if err := now.keepContents(ctx, record); err != nil {
		return err
	}
	if r.records.Interrupted && r.progress.result != protocol.ResultSame {
		j := r.records.Journal
		j.Phase = records.PhaseRecording
		if err := r.records.WriteJournal(ctx, j); err != nil {
			return err
		}
	}
	if r.progress.result != protocol.ResultSame || len(p.Adopt) > 0 || r.records.Ledger.AppliedDigest() != next.AppliedDigest() || r.records.Damaged {
		if err := r.records.WriteLedger(ctx, next); err != nil {
			return err
		}
	}
	r.records.Cache.KeepPaths(files)
	if r.progress.result == protocol.ResultSame {
		r.records.SweepContents(ctx, r.abandonedSince())
		r.records.SaveCache(ctx)
		return nil
	}
	return r.records.RemoveJournal(ctx)
}

// preexistingEntries returns the entries that were on the host before us and may belong to another product: those that
// earlier runs found, and those that this run neither wrote nor owned. Entries of other kinds are adopted, and so are
// all entries of a host with the existing operator's services: that operator put them there.
func (r recording) preexistingEntries() []bundle.EntryID {
	earlier := r.records.FoundEntries()
	adopts := r.isAdoption()
	var list []bundle.EntryID
	for _, s := range r.target.Settings {
		id := s.ID()
		if !s.Present || !bundle.Describe(s.Kind).Shared {
			continue
		}
		if owned := r.records.Ledger.HasEntry(id); owned && earlier[id] || !owned && !adopts && r.records.Journal.Before.WasThere(id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// isAdoption reports whether the host was the existing operator's: it has one of our services by name and description,
// or that operator's list of CAs, and we never applied a bundle to it.
func (r recording) isAdoption() bool {
	if r.records.Ledger.AppliedDigest() != "" {
		return false
	}
	if slices.ContainsFunc(r.records.Journal.Before.Files, func(f records.FileBefore) bool { return f.Path == fileImported }) {
		return true
	}
	var services []plan.ServiceConfig
	for _, b := range r.records.Journal.Before.Services {
		services = append(services, b.Config)
	}
	for _, s := range r.observed.Services {
		services = append(services, s.ServiceConfig)
	}
	return slices.ContainsFunc(services, func(have plan.ServiceConfig) bool {
		return slices.ContainsFunc(r.target.Services, func(s plan.WantedService) bool {
			started := r.records.Journal.StartedByUs(have.Name)
			return !started && s.Present && have.CommandLine != "" &&
				plan.ServiceName(have.Name) == plan.ServiceName(s.Config.Name) && have.Description == s.Config.Description
		})
	})
}

// madeFolders returns the parents that we made, in this run or earlier.
func (r recording) madeFolders() []string {
	list := slices.Clone(r.records.Ledger.Folders)
	for _, f := range r.target.Files {
		if f.Kind != plan.FileDirectory || f.Access != "" || slices.Contains(list, f.Path) {
			continue
		}
		for _, b := range r.records.Journal.Before.Files {
			if b.Kind == plan.FileAbsent && bundle.FoldPath(b.Path) == bundle.FoldPath(f.Path) {
				list = append(list, f.Path)
			}
		}
	}
	slices.Sort(list)
	return list
}

// keepContents stores the contents that were not sent because the host had the files: nothing could be repaired without
// them.
func (r recording) keepContents(ctx context.Context, record records.BundleRecord) error {
	missing := r.records.Store.MissingContents(record)
	for _, f := range r.target.Files {
		if f.Kind != plan.FileRegular || !missing[f.Content.SHA256] {
			continue
		}
		if err := r.records.Store.PutFile(ctx, f.Path, f.Content); err != nil {
			return fmt.Errorf("keeping %s: %w", f.Path, err)
		}
		delete(missing, f.Content.SHA256)
	}
	for _, text := range r.wantedTexts() {
		c := plan.ContentOf([]byte(text))
		if !missing[c.SHA256] {
			continue
		}
		if err := r.records.Store.PutText(ctx, text); err != nil {
			return fmt.Errorf("keeping a setting: %w", err)
		}
		delete(missing, c.SHA256)
	}
	return nil
}

// wantedTexts returns the values of settings and variables on the host that the target wants by digest.
func (r recording) wantedTexts() []string {
	var list []string
	for _, s := range r.target.Settings {
		if have := r.observed.Settings[s.ID()]; s.Present && !s.Value.Known && have.Present {
			list = append(list, have.Value)
		}
	}
	for _, s := range r.target.Services {
		for _, text := range r.observed.ServiceState(s.Config.Name).Environment {
			list = append(list, plan.SplitVariable(text).Value.Text)
		}
	}
	return list
}

// keepCurrent stores the contents of files that are right and are only written for their access: they need not be sent.
func keepCurrent(ctx context.Context, store *records.Store, p plan.Plan) error {
	for _, s := range p.Steps {
		if s.Verb != protocol.VerbWrite || s.Reason != protocol.ReasonAccess || store.IsWhole(s.File.Content.SHA256) {
			continue
		}
		if err := store.PutFile(ctx, s.File.Path, s.File.Content); err != nil {
			return fmt.Errorf("keeping %s: %w", s.File.Path, err)
		}
	}
	return nil
}
