package applier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// writeLedger writes the ledger if it has changed, and ends the run but for a boot that waits (rebootHost).
func (r *run) writeLedger(ctx context.Context, record records.BundleRecord, p plan.Plan, t *plan.Target) error {
	next := records.Ledger{
		Schema: records.Schema, Program: r.Program, Time: r.Clock.Now(), Bundle: record, Found: r.preexistingEntries(t), Folders: r.madeFolders(t),
		Shadows: r.shadows, Boot: r.situation.facts.BootTime,
	}
	files := map[string]bool{}
	for _, f := range t.Files {
		files[bundle.FoldPath(f.Path)] = f.Kind == plan.FileRegular
	}
	if r.progress.result == ResultSame {
		next.Shadows = r.records.Ledger.Shadows
	}
	for _, s := range t.Settings {
		if s.Kind == bundle.KindVariable && s.Present && r.situation.setSinceBoot(s.Name) {
			next.Fresh = append(next.Fresh, s.Name)
		}
	}
	if err := r.keepContents(ctx, record, t); err != nil {
		return err
	}
	if r.records.Interrupted && r.progress.result != ResultSame {
		j := r.records.Journal
		j.Phase = records.PhaseRecording
		if err := r.records.WriteJournal(ctx, j); err != nil {
			return err
		}
	}
	if r.progress.result != ResultSame || len(p.Adopt) > 0 || r.records.Ledger.AppliedDigest() != next.AppliedDigest() || r.records.Damaged {
		if err := r.records.WriteLedger(ctx, next); err != nil {
			return err
		}
	}
	r.records.Cache.KeepPaths(files)
	if r.progress.result == ResultSame {
		r.records.SweepContents(ctx, r.abandonedSince())
		r.records.SaveCache(ctx)
		return nil
	}
	return r.records.RemoveJournal(ctx)
}

// preexistingEntries returns the entries that were on the host before us and may belong to another product: those that earlier runs
// found, and those that this run neither wrote nor owned. Entries of other kinds are adopted, and so are all entries of a
// host with the existing operator's services: that operator put them there.
func (r *run) preexistingEntries(t *plan.Target) []bundle.EntryID {
	earlier := r.records.FoundEntries()
	adopts := r.isAdoption(t)
	var list []bundle.EntryID
	for _, s := range t.Settings {
		id := s.ID()
		if !s.Present || !bundle.Describe(s.Kind).Shared {
			continue
		}
		if r.ownsEntry(id) && earlier[id] || !r.ownsEntry(id) && !adopts && r.wasThere(id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// isAdoption reports whether the host was the existing operator's: it has one of our services by name and description, or that
// operator's list of CAs, and we never applied a bundle to it.
func (r *run) isAdoption(t *plan.Target) bool {
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
		return slices.ContainsFunc(t.Services, func(s plan.WantedService) bool {
			started := r.records.Journal.StartedByUs(have.Name)
			return !started && s.Present && have.CommandLine != "" && plan.ServiceName(have.Name) == plan.ServiceName(s.Config.Name) && have.Description == s.Config.Description
		})
	})
}

// ownsEntry reports whether the bundle that was applied before has an entry.
func (r *run) ownsEntry(id bundle.EntryID) bool {
	b := r.records.Ledger.Bundle.ManifestBundle()
	for _, l := range b.Layers() {
		if slices.Contains(l.IDs(), id) {
			return true
		}
	}
	return false
}

// wasThere reports whether an entry was on the host before the run began.
func (r *run) wasThere(id bundle.EntryID) bool {
	for _, s := range r.records.Journal.Before.Settings {
		if s.Kind.ID(s.Name) == id {
			return s.Present
		}
	}
	return true
}

// madeFolders returns the parents that we made, in this run or earlier.
func (r *run) madeFolders(t *plan.Target) []string {
	list := slices.Clone(r.records.Ledger.Folders)
	for _, f := range t.Files {
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
func (r *run) keepContents(ctx context.Context, record records.BundleRecord, t *plan.Target) error {
	missing := r.records.Store.MissingContents(record)
	for _, f := range t.Files {
		if f.Kind != plan.FileRegular || !missing[f.Content.SHA256] {
			continue
		}
		if err := r.keepFile(ctx, f); err != nil {
			return fmt.Errorf("keeping %s: %w", f.Path, err)
		}
		delete(missing, f.Content.SHA256)
	}
	for _, text := range r.wantedTexts(t) {
		c := plan.ContentOf([]byte(text))
		if !missing[c.SHA256] {
			continue
		}
		if err := r.keepParts(ctx, c, archive.Compress([]byte(text))); err != nil {
			return fmt.Errorf("keeping a setting: %w", err)
		}
		delete(missing, c.SHA256)
	}
	return nil
}

// wantedTexts returns the values of settings and variables on the host that the target wants by digest.
func (r *run) wantedTexts(t *plan.Target) []string {
	var list []string
	for _, s := range t.Settings {
		if have := r.observed.Settings[s.ID()]; s.Present && !s.Value.Known && have.Present {
			list = append(list, have.Value)
		}
	}
	for _, s := range t.Services {
		for _, text := range r.observed.ServiceState(s.Config.Name).Environment {
			list = append(list, plan.SplitVariable(text).Value.Text)
		}
	}
	return list
}

// keepCurrent stores the contents of files that are right and are only written for their access: they need not be sent.
func (r *run) keepCurrent(ctx context.Context, p plan.Plan) error {
	for _, s := range p.Steps {
		if s.Verb != plan.VerbWrite || s.Reason != plan.ReasonAccess || r.records.Store.IsWhole(s.File.Content.SHA256) {
			continue
		}
		if err := r.keepFile(ctx, s.File); err != nil {
			return fmt.Errorf("keeping %s: %w", s.File.Path, err)
		}
	}
	return nil
}

// keepFile stores a file in the form in which it would have been sent. It takes as much memory as its parts.
func (r *run) keepFile(ctx context.Context, f plan.WantedFile) error {
	in, err := r.Host.Open(ctx, f.Path)
	if err != nil {
		return err
	}
	var stored bytes.Buffer
	out := archive.Encode(&stored)
	_, err = io.Copy(out, contextReader{ctx, in})
	if err := errors.Join(err, out.Close(), in.Close()); err != nil {
		return err
	}
	return r.keepParts(ctx, f.Content, stored.Bytes())
}

func (r *run) keepParts(ctx context.Context, c plan.Content, stored []byte) error {
	whole := archive.Content{SHA256: c.SHA256, Size: c.Size, Stored: int64(len(stored))}
	for i := range whole.Parts() {
		data := stored[:whole.PartSize(i+1)]
		stored = stored[len(data):]
		if err := r.records.Store.PutPart(ctx, whole.Part(i+1), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return nil
}
