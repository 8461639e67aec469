package applier

import (
	"context"
	"fmt"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// quarantine sets aside what others have made where our folders and files belong.
type quarantine struct {
	host     Host
	progress *progress
}

// setAside moves away entries that others than SYSTEM and Administrators could have written, with a note.
func (q quarantine) setAside(ctx context.Context, path string) error {
	to, err := records.SetAside(ctx, q.host, path, q.progress.clock.Now())
	if err != nil {
		return fmt.Errorf("%w (fix: end the programs that have it open, or reboot the host)", err)
	}
	q.progress.addNote(fmt.Sprintf("%s is ignored: users other than SYSTEM and Administrators could change it. It is now %s: look at it, then delete it", path, to))
	return nil
}

// claimRoots sets aside the roots that another user made before us: whoever owns a folder can put programs beside
// ours, and change the access that we give it. On a host with a ledger they are ours, and the plan gives them their
// access again.
func (q quarantine) claimRoots(ctx context.Context, r *records.Records) error {
	if r.Ledger.AppliedDigest() != "" || r.Interrupted || r.Damaged {
		return nil
	}
	for _, path := range plan.GuardedFolders() {
		infos, err := q.host.Stat(ctx, []string{path})
		if err != nil {
			return fmt.Errorf("observing %s: %w", path, err)
		}
		if !isForeign(infos[0]) {
			continue
		}
		if err := q.setAside(ctx, path); err != nil {
			return err
		}
	}
	return q.claimPrograms(ctx, r, plan.Observed{})
}

// claimPrograms sets aside what others have put beside the programs before the first bundle was applied. Where an
// administrator or another operator had made the folder without an access of its own, users could add files, and a
// program looks for libraries in its own folder first
// (learn.microsoft.com/windows/win32/dlls/dynamic-link-library-search-order). It comes before the plan, which then has
// missing entries, and again when the folders have our access, before anything starts. Before is the host before the
// first action, empty where that is not known yet.
func (q quarantine) claimPrograms(ctx context.Context, r *records.Records, before plan.Observed) error {
	if r.Ledger.AppliedDigest() != "" {
		return nil
	}
	infos, err := q.host.Stat(ctx, []string{plan.ProgramRoot})
	if err != nil {
		return err
	}
	if infos[0].Kind == plan.FileDirectory {
		if err := q.setAsideInside(ctx, r, before, infos[0]); err != nil {
			return err
		}
	}
	return q.claimRuntime(ctx, r, before)
}

// claimRuntime sets aside what others have made in the folder of containerd, where an administrator has made that
// without an access of its own. What is further inside is of images, and of their owners, but for the programs.
func (q quarantine) claimRuntime(ctx context.Context, r *records.Records, before plan.Observed) error {
	infos, err := q.host.Stat(ctx, []string{plan.RuntimeFolder})
	if err != nil || infos[0].Kind != plan.FileDirectory {
		return err
	}
	inside, err := q.host.List(ctx, plan.RuntimeFolder)
	if err != nil {
		return fmt.Errorf("listing %s: %w", plan.RuntimeFolder, err)
	}
	left := len(inside)
	for _, child := range inside {
		if isForeign(child) {
			if err := q.setAside(ctx, child.Path); err != nil {
				return err
			}
			left--
		}
	}
	if err := q.claimFolder(ctx, r, before, plan.RuntimePrograms); err != nil {
		return err
	}
	return q.replaceHeld(ctx, r, before, infos[0], left)
}

// claimFolder sets aside a folder that others have made, or else what is theirs in it.
func (q quarantine) claimFolder(ctx context.Context, r *records.Records, before plan.Observed, path string) error {
	infos, err := q.host.Stat(ctx, []string{path})
	switch {
	case err != nil:
		return err
	case isForeign(infos[0]):
		return q.setAside(ctx, path)
	case infos[0].Kind == plan.FileDirectory:
		return q.setAsideInside(ctx, r, before, infos[0])
	}
	return nil
}

// replaceHeld makes a folder again that others could change until this run, where nothing is left in it: whoever has it
// open can make it lead elsewhere while it is empty, whatever access it got
// (learn.microsoft.com/windows/win32/fileio/reparse-point-operations).
func (q quarantine) replaceHeld(ctx context.Context, r *records.Records, before plan.Observed, f plan.FileInfo, left int) error {
	wasOpen := before.FileAt(f.Path).Access == plan.AccessOther && f.Access != plan.AccessOther
	if left > 0 || !wasOpen {
		return nil
	}
	if err := q.setAside(ctx, f.Path); err != nil {
		return err
	}
	return q.makeFolder(ctx, r, f.Path, f.Access)
}

// isForeign reports whether something belongs to another product, or leads elsewhere.
func isForeign(f plan.FileInfo) bool { return f.Owner == plan.OwnerOther || f.Kind == plan.FileOther }

// makeFolder makes a folder, or gives one that exists its access. Whoever has made a folder may hold it open with the
// right to change its access, which no other access takes away
// (learn.microsoft.com/windows/win32/secauthz/access-rights-and-access-masks): before the first bundle, one of another
// user is set aside and not taken, also where a program keeps it from being moved.
func (q quarantine) makeFolder(ctx context.Context, r *records.Records, path string, access bundle.Access) error {
	if r.Ledger.AppliedDigest() != "" || r.Damaged {
		return q.host.MakeDirectory(ctx, path, access)
	}
	infos, err := q.host.Stat(ctx, []string{path})
	if err != nil {
		return fmt.Errorf("observing %s: %w", path, err)
	}
	f := infos[0]
	if isForeign(f) {
		if err := q.setAside(ctx, path); err != nil {
			return err
		}
		f.Kind = plan.FileAbsent
	}
	if f.Kind == plan.FileAbsent && plan.MovedInPlace(path) {
		return records.PlaceFolder(ctx, q.host, path, access)
	}
	return q.host.MakeDirectory(ctx, path, access)
}

// setAsideInside sets aside what belongs to others in a folder and in the folders below.
func (q quarantine) setAsideInside(ctx context.Context, r *records.Records, before plan.Observed, f plan.FileInfo) error {
	inside, err := q.host.List(ctx, f.Path)
	if err != nil {
		return fmt.Errorf("listing %s: %w", f.Path, err)
	}
	left := 0
	for _, child := range inside {
		switch {
		case child.Owner == plan.OwnerOther:
			err = q.setAside(ctx, child.Path)
			left--
		case child.Kind == plan.FileDirectory:
			err = q.setAsideInside(ctx, r, before, child)
		}
		if err != nil {
			return err
		}
		left++
	}
	return q.replaceHeld(ctx, r, before, f, left)
}
