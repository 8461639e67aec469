package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Records are what the applier keeps on a host between two runs.
type Records struct {
	host    Files
	Store   *Store
	Cache   *Cache
	Ledger  Ledger
	Journal Journal
	// Staged are the contents that are kept for a bundle of later.
	Staged Staged
	// Removal is the one that the node agent has begun.
	Removal Removal
	// Interrupted reports whether the last run was interrupted: there is a journal.
	Interrupted bool
	// Finished reports whether there is a journal of a run that was interrupted after it had recorded its bundle in the
	// ledger: nothing of it is left to do, and its journal does not count.
	Finished bool
	// Applying reports whether this process has written the journal and has neither ended the run nor left it to
	// another process: one that ends now without a result is interrupted.
	Applying bool
	// Damaged reports whether the ledger or the journal could not be read: services may run with what they read before
	// a change.
	Damaged bool
	// Untrusted are the records that do not count because others could have written them.
	Untrusted []string
	// Notes say which record is damaged or does not count, and what follows from that.
	Notes []string
}

// LoadRecords reads all records. A damaged one, and one that others could have written, is noted and counts as absent;
// one of a newer program is a *bundle.SchemaError.
func LoadRecords(ctx context.Context, host Files) (*Records, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return nil, err
	}
	r := &Records{host: host, Untrusted: bad}
	for _, path := range bad {
		r.Notes = append(r.Notes, path+" is ignored: users other than SYSTEM and Administrators can write it")
	}
	if r.Store, err = openStore(ctx, r); err != nil {
		return nil, err
	}
	if err := r.readLedger(ctx); err != nil {
		return nil, err
	}
	if err := r.readJournal(ctx); err != nil {
		return nil, err
	}
	if err := r.readStaged(ctx); err != nil {
		return nil, err
	}
	if err := r.readRemoval(ctx); err != nil {
		return nil, err
	}
	r.Cache = &Cache{Schema: sharedSchema, Files: map[string]cachedFile{}}
	if r.isTrusted(FileCache) {
		r.Cache = readCache(ctx, host)
	}
	return r, nil
}

// isTrusted reports whether the record at a path may be read.
func (r *Records) isTrusted(path string) bool {
	return !slices.Contains(r.Untrusted, plan.StateFolder) && !slices.Contains(r.Untrusted, path)
}

// ReadLedger returns the ledger alone, a zero one where none counts or it is damaged.
func ReadLedger(ctx context.Context, host Files) (Ledger, error) {
	bad, err := UntrustedRecords(ctx, host)
	if err != nil {
		return Ledger{}, err
	}
	r := &Records{host: host, Untrusted: bad}
	err = r.readLedger(ctx)
	return r.Ledger, err
}

func (r *Records) readLedger(ctx context.Context) error {
	if !r.isTrusted(FileLedger) {
		return nil
	}
	err := DecodeFile(ctx, r.host, FileLedger, "ledger", &r.Ledger)
	if err == nil {
		err = r.Ledger.checkNames()
	}
	if err == nil {
		return nil
	}
	r.Ledger = Ledger{}
	return r.tolerateDamage(err, "the ledger is damaged: entries that it listed and that are no longer wanted are not removed")
}

func (r *Records) readJournal(ctx context.Context) error {
	if !r.isTrusted(FileJournal) {
		return nil
	}
	err := DecodeFile(ctx, r.host, FileJournal, "journal", &r.Journal)
	if err == nil {
		// A ledger that is damaged may have had any service.
		err = r.Journal.checkNames(func(service string) bool {
			return r.Damaged || haveService([]bundle.Bundle{r.Ledger.Bundle.ManifestBundle()}, service)
		})
	}
	if err != nil {
		r.Journal = Journal{}
		return r.tolerateDamage(err, "the journal is damaged: what an interrupted run replaced cannot be restored")
	}
	r.Interrupted = r.Journal.Schema != 0
	if r.Journal.Phase == PhaseRecording && r.Journal.Bundle.Manifest.Digest == r.Ledger.AppliedDigest() {
		r.Journal, r.Interrupted, r.Finished = Journal{}, false, true
	}
	return nil
}

// tolerateDamage turns damage into a note, and returns any other error.
func (r *Records) tolerateDamage(err error, note string) error {
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, bundle.ErrInconsistent) && !errors.Is(err, bundle.ErrPath) {
		return err
	}
	r.Damaged = true
	r.Notes = append(r.Notes, note)
	return nil
}

// WriteLedger replaces the ledger.
func (r *Records) WriteLedger(ctx context.Context, l Ledger) error {
	l.Schema = schemaOf(l.Bundle)
	if err := ReplaceFile(ctx, r.host, FileLedger, l); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	r.Ledger = l
	return nil
}

// WriteJournal replaces the journal, or begins one.
func (r *Records) WriteJournal(ctx context.Context, j Journal) error {
	j.Schema = schemaOf(append(slices.Clone(j.Earlier), j.Bundle)...)
	if err := ReplaceFile(ctx, r.host, FileJournal, j); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	r.Journal, r.Interrupted, r.Applying = j, true, true
	return nil
}

// RemoveJournal ends a run: it removes the journal, then what was kept for it alone.
func (r *Records) RemoveJournal(ctx context.Context) error {
	if err := r.EndRun(ctx); err != nil {
		return err
	}
	r.SweepContents(ctx, time.Time{})
	r.SaveCache(ctx)
	return nil
}

// EndRun removes the journal.
func (r *Records) EndRun(ctx context.Context) error {
	for _, path := range []string{FileJournal, FileConfirm} {
		if err := r.host.Remove(ctx, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	r.Journal, r.Interrupted, r.Finished, r.Applying = Journal{}, false, false, false
	return nil
}

// SweepContents removes the contents that no run needs, except those that were written since a time: their transfer may
// have been interrupted and go on. A zero time spares none. It does nothing while a run is interrupted.
func (r *Records) SweepContents(ctx context.Context, since time.Time) {
	if r.Interrupted {
		return
	}
	needed := map[string]bool{}
	for _, c := range r.Ledger.Bundle.Contents {
		needed[c.SHA256] = true
	}
	r.endStaging(ctx, needed)
	for _, sum := range r.Staged.Contents {
		needed[sum] = true
	}
	r.Store.sweepUnneeded(ctx, needed, since)
}

// SweepLeftovers removes what interrupted writes of records left. They may hold secrets.
func (r *Records) SweepLeftovers(ctx context.Context) error {
	var failed error
	for _, dir := range []string{plan.StateFolder, DirContents, DirPrevious} {
		infos, err := r.host.List(ctx, dir)
		if err != nil {
			return fmt.Errorf("listing %s: %w", dir, err)
		}
		for _, f := range infos {
			if !plan.IsLeftover(f.Path) {
				continue
			}
			if err := r.host.Remove(ctx, f.Path); err != nil {
				failed = fmt.Errorf("removing %s: %w", f.Path, err)
			}
		}
	}
	return failed
}

// SaveCache writes the cache if it has changed. Losing it costs time and nothing else.
func (r *Records) SaveCache(ctx context.Context) {
	if r.Cache.dirty && ReplaceFile(ctx, r.host, FileCache, r.Cache) == nil {
		r.Cache.dirty = false
	}
}

// ownedRecords returns the bundles whose entries are managed: the one that was applied and those of interrupted runs.
func (r *Records) ownedRecords() []BundleRecord {
	var list []BundleRecord
	for _, b := range append([]BundleRecord{r.Ledger.Bundle, r.Journal.Bundle}, r.Journal.Earlier...) {
		if b.Manifest.Digest != "" {
			list = append(list, b)
		}
	}
	return list
}

// KnownContents returns the contents of all bundles that the host has had, and of this one.
func (r *Records) KnownContents(b BundleRecord) plan.Contents {
	all := plan.Contents{}
	for _, o := range append(r.ownedRecords(), b) {
		maps.Copy(all, o.KnownContents())
	}
	return all
}

// OwnedBundles returns the bundles whose entries are managed.
func (r *Records) OwnedBundles() []bundle.Bundle {
	var list []bundle.Bundle
	for _, b := range r.ownedRecords() {
		list = append(list, b.ManifestBundle())
	}
	return list
}

// MadeFolders returns the folders that we made and that no bundle names: parents of others.
func (r *Records) MadeFolders() []string {
	list := slices.Clone(r.Ledger.Folders)
	for _, f := range r.Journal.Before.Files {
		if f.Kind == plan.FileAbsent && f.Entry == bundle.KindDirectory.ID(f.Path) {
			list = append(list, f.Path)
		}
	}
	return list
}

// FoundEntries returns the entries that were on the host before us.
func (r *Records) FoundEntries() map[bundle.EntryID]bool {
	found := map[bundle.EntryID]bool{}
	for _, id := range r.Ledger.Found {
		found[id] = true
	}
	return found
}
