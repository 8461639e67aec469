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

// record writes the ledger, when it has something new, and ends the application.
func (r *run) record(ctx context.Context, record records.Bundle, p plan.Plan, t *plan.Target) error {
	if err := r.hoard(ctx, record, t); err != nil {
		return err
	}
	next := records.Ledger{
		Schema: records.Schema, Program: r.Program, Time: r.Clock.Now(), Bundle: record, Found: r.findings(t), Folders: r.folders(t),
		Shadows: r.shadows, Boot: r.s.facts.BootTime,
	}
	if r.result == ResultSame {
		next.Shadows = r.s.Ledger.Shadows
	}
	for _, v := range t.Settings {
		if v.Kind == bundle.KindVariable && v.Present && r.s.setSinceBoot(v.Name) {
			next.Fresh = append(next.Fresh, v.Name)
		}
	}
	if r.result != ResultSame || len(p.Adopt) > 0 || r.s.Ledger.Applied() != next.Applied() || r.s.Damaged {
		if err := r.s.WriteLedger(ctx, next); err != nil {
			return err
		}
	}
	files := map[string]bool{}
	for _, f := range t.Files {
		files[bundle.FoldPath(f.Path)] = f.Kind == plan.FileRegular
	}
	r.s.Cache.Keep(files)
	if r.result == ResultSame {
		r.applying = false
		r.s.SaveCache(ctx)
		return nil
	}
	if err := r.forget(ctx); err != nil {
		return err
	}
	return r.reboot(ctx)
}

// findings are the entries that were there before us and may be somebody else's: those that earlier runs found, and those
// that this one neither wrote nor owned. Entries of other kinds are adopted, and so are all entries of a machine on which the
// existing operator's services stand: it put them there.
func (r *run) findings(t *plan.Target) []bundle.EntryID {
	earlier := r.s.Found()
	adopts := r.adopts(t)
	var list []bundle.EntryID
	for _, s := range t.Settings {
		id := s.ID()
		if !s.Present || !bundle.Describe(s.Kind).Shared {
			continue
		}
		if r.ours(id) && earlier[id] || !r.ours(id) && !adopts && r.wasThere(id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// adopts tells whether the machine was the existing operator's: it has a service of ours by name and description, and we
// have never been here.
func (r *run) adopts(t *plan.Target) bool {
	if r.s.Ledger.Applied() != "" {
		return false
	}
	var services []plan.ServiceConfig
	for _, b := range r.s.Journal.Before.Services {
		services = append(services, b.Config)
	}
	for _, s := range r.seen.Services {
		services = append(services, s.ServiceConfig)
	}
	return slices.ContainsFunc(services, func(have plan.ServiceConfig) bool {
		return slices.ContainsFunc(t.Services, func(s plan.WantedService) bool {
			started := r.s.Journal.StartedByUs(have.Name)
			return !started && s.Present && have.CommandLine != "" && plan.ServiceName(have.Name) == plan.ServiceName(s.Config.Name) && have.Description == s.Config.Description
		})
	})
}

// ours tells whether the bundle that was applied before owns an entry.
func (r *run) ours(id bundle.EntryID) bool {
	b := r.s.Ledger.Bundle.Bundle()
	for _, l := range b.Layers() {
		if slices.Contains(l.IDs(), id) {
			return true
		}
	}
	return false
}

// wasThere tells whether an entry stood there before the application began.
func (r *run) wasThere(id bundle.EntryID) bool {
	for _, s := range r.s.Journal.Before.Settings {
		if s.Kind.ID(s.Name) == id {
			return s.Present
		}
	}
	return true
}

// folders are the parents that we made, in this run or earlier.
func (r *run) folders(t *plan.Target) []string {
	list := slices.Clone(r.s.Ledger.Folders)
	for _, f := range t.Files {
		if f.Kind != plan.FileDirectory || f.Access != "" || slices.Contains(list, f.Path) {
			continue
		}
		for _, b := range r.s.Journal.Before.Files {
			if b.Kind == plan.FileAbsent && bundle.FoldPath(b.Path) == bundle.FoldPath(f.Path) {
				list = append(list, f.Path)
			}
		}
	}
	slices.Sort(list)
	return list
}

// hoard keeps the contents that did not travel because the machine had the files: without them nothing could be repaired.
func (r *run) hoard(ctx context.Context, record records.Bundle, t *plan.Target) error {
	wanted := map[string]bool{}
	for _, c := range record.Contents {
		wanted[c.SHA256] = true
	}
	for _, f := range t.Files {
		sum := f.Content.SHA256
		if f.Kind != plan.FileRegular || !wanted[sum] || r.s.Store.Whole(sum) {
			continue
		}
		if err := r.pack(ctx, f); err != nil {
			return fmt.Errorf("keeping %s: %w", f.Path, err)
		}
	}
	for _, text := range r.texts(t) {
		c := plan.ContentOf([]byte(text))
		if !wanted[c.SHA256] || r.s.Store.Whole(c.SHA256) {
			continue
		}
		if err := r.packBytes(ctx, c, archive.Compress([]byte(text))); err != nil {
			return fmt.Errorf("keeping a setting: %w", err)
		}
	}
	return nil
}

// texts are the values of settings and variables on the machine that the target wants by digest.
func (r *run) texts(t *plan.Target) []string {
	var list []string
	for _, s := range t.Settings {
		if have := r.seen.Settings[s.ID()]; s.Present && !s.Value.Known && have.Present {
			list = append(list, have.Value)
		}
	}
	for _, s := range t.Services {
		for _, line := range r.seen.Service(s.Config.Name).Environment {
			list = append(list, plan.SplitVariable(line).Value.Text)
		}
	}
	return list
}

// packOwn keeps the contents of files that are right and are only written for their access: they need not travel.
func (r *run) packOwn(ctx context.Context, p plan.Plan) error {
	for _, s := range p.Steps {
		if s.Verb != plan.VerbWrite || s.Reason != plan.ReasonAccess || r.s.Store.Whole(s.File.Content.SHA256) {
			continue
		}
		if err := r.pack(ctx, s.File); err != nil {
			return fmt.Errorf("keeping %s: %w", s.File.Path, err)
		}
	}
	return nil
}

// pack puts a file into the store as it would have travelled. It takes as much memory as its parts.
func (r *run) pack(ctx context.Context, f plan.WantedFile) error {
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
	return r.packBytes(ctx, f.Content, stored.Bytes())
}

func (r *run) packBytes(ctx context.Context, c plan.Content, stored []byte) error {
	whole := archive.Content{SHA256: c.SHA256, Size: c.Size, Stored: int64(len(stored))}
	for i := range whole.Parts() {
		data := stored[:whole.PartSize(i+1)]
		stored = stored[len(data):]
		if err := r.s.Store.Put(ctx, whole.Part(i+1), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return nil
}
