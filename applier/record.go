package applier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"wmco/bundle"
	"wmco/bundle/archive"
)

// record writes the ledger, when it has something new, and ends the application.
func (r *run) record(ctx context.Context, record bundleRecord, p plan, t *target) error {
	if err := r.hoard(ctx, record, t); err != nil {
		return err
	}
	next := ledger{
		Schema: Schema, Program: r.Program, Time: r.Clock.Now(), Bundle: record, Found: r.findings(t), Folders: r.folders(t),
		Shadows: r.shadows, Boot: r.s.facts.BootTime,
	}
	if r.result == ResultSame {
		next.Shadows = r.s.ledger.Shadows
	}
	for _, v := range t.settings {
		if v.Kind == bundle.KindVariable && v.Present && r.s.setSinceBoot(v.Name) {
			next.Fresh = append(next.Fresh, v.Name)
		}
	}
	if r.result != ResultSame || len(p.adopt) > 0 || r.s.ledger.applied() != next.applied() || r.s.blind {
		if err := r.s.records.write(ctx, fileLedger, next); err != nil {
			return fmt.Errorf("writing the ledger: %w", err)
		}
		r.s.ledger = next
	}
	files := map[string]bool{}
	for _, f := range t.files {
		files[bundle.FoldPath(f.path)] = f.kind == FileRegular
	}
	r.s.cache.keep(files)
	if r.result == ResultSame {
		r.applying = false
		r.s.cache.save(ctx, r.s.records)
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
func (r *run) findings(t *target) []bundle.EntryID {
	earlier := r.s.found()
	adopts := r.adopts(t)
	var list []bundle.EntryID
	for _, s := range t.settings {
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
func (r *run) adopts(t *target) bool {
	if r.s.ledger.applied() != "" {
		return false
	}
	var services []ServiceConfig
	for _, b := range r.s.journal.Before.Services {
		services = append(services, b.Config)
	}
	for _, s := range r.seen.services {
		services = append(services, s.ServiceConfig)
	}
	return slices.ContainsFunc(services, func(have ServiceConfig) bool {
		return slices.ContainsFunc(t.services, func(s serviceItem) bool {
			started := r.s.journal.startedByUs(have.Name)
			return !started && s.present && have.CommandLine != "" && serviceName(have.Name) == serviceName(s.config.Name) && have.Description == s.config.Description
		})
	})
}

// startedByUs tells whether the journal saw no service of that name before us.
func (j journal) startedByUs(name string) bool {
	return slices.ContainsFunc(j.Before.Services, func(b serviceBefore) bool {
		return serviceName(b.Config.Name) == serviceName(name) && !b.Present
	})
}

// ours tells whether the bundle that was applied before owns an entry.
func (r *run) ours(id bundle.EntryID) bool {
	b := r.s.ledger.Bundle.bundle()
	for _, l := range b.Layers() {
		if slices.Contains(l.IDs(), id) {
			return true
		}
	}
	return false
}

// wasThere tells whether an entry stood there before the application began.
func (r *run) wasThere(id bundle.EntryID) bool {
	for _, s := range r.s.journal.Before.Settings {
		if s.Kind.ID(s.Name) == id {
			return s.Present
		}
	}
	return true
}

// folders are the parents that we made, in this run or earlier.
func (r *run) folders(t *target) []string {
	list := slices.Clone(r.s.ledger.Folders)
	for _, f := range t.files {
		if f.kind != FileDirectory || f.access != "" || slices.Contains(list, f.path) {
			continue
		}
		for _, b := range r.s.journal.Before.Files {
			if b.Kind == FileAbsent && bundle.FoldPath(b.Path) == bundle.FoldPath(f.path) {
				list = append(list, f.path)
			}
		}
	}
	slices.Sort(list)
	return list
}

// hoard keeps the contents that did not travel because the machine had the files: without them nothing could be repaired.
func (r *run) hoard(ctx context.Context, record bundleRecord, t *target) error {
	wanted := map[string]bool{}
	for _, c := range record.Contents {
		wanted[c.SHA256] = true
	}
	for _, f := range t.files {
		sum := f.content.SHA256
		if f.kind != FileRegular || !wanted[sum] || r.s.store.whole(sum) {
			continue
		}
		if err := r.pack(ctx, f); err != nil {
			return fmt.Errorf("keeping %s: %w", f.path, err)
		}
	}
	for _, text := range r.texts(t) {
		c := contentOf([]byte(text))
		if !wanted[c.SHA256] || r.s.store.whole(c.SHA256) {
			continue
		}
		if err := r.packBytes(ctx, c, archive.Compress([]byte(text))); err != nil {
			return fmt.Errorf("keeping a setting: %w", err)
		}
	}
	return nil
}

// texts are the values of settings and variables on the machine that the target wants by digest.
func (r *run) texts(t *target) []string {
	var list []string
	for _, s := range t.settings {
		if have := r.seen.settings[s.ID()]; s.Present && !s.value.known && have.Present {
			list = append(list, have.Value)
		}
	}
	for _, s := range t.services {
		for _, line := range r.seen.service(s.config.Name).Environment {
			list = append(list, splitVariable(line).value.text)
		}
	}
	return list
}

// packOwn keeps the contents of files that are right and are only written for their access: they need not travel.
func (r *run) packOwn(ctx context.Context, p plan) error {
	for _, s := range p.steps {
		if s.Verb != VerbWrite || s.Reason != ReasonAccess || r.s.store.whole(s.file.content.SHA256) {
			continue
		}
		if err := r.pack(ctx, s.file); err != nil {
			return fmt.Errorf("keeping %s: %w", s.file.path, err)
		}
	}
	return nil
}

// pack puts a file into the store as it would have travelled. It takes as much memory as its parts.
func (r *run) pack(ctx context.Context, f fileItem) error {
	in, err := r.Host.Open(ctx, f.path)
	if err != nil {
		return err
	}
	var stored bytes.Buffer
	out := archive.Encode(&stored)
	_, err = io.Copy(out, contextReader{ctx, in})
	if err := errors.Join(err, out.Close(), in.Close()); err != nil {
		return err
	}
	return r.packBytes(ctx, f.content, stored.Bytes())
}

func (r *run) packBytes(ctx context.Context, c content, stored []byte) error {
	whole := archive.Content{SHA256: c.SHA256, Size: c.Size, Stored: int64(len(stored))}
	for i := range whole.Parts() {
		data := stored[:whole.PartSize(i+1)]
		stored = stored[len(data):]
		if err := r.s.store.put(ctx, whole.Part(i+1), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return nil
}
