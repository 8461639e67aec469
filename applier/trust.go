package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// quarantinePath moves away what others than SYSTEM and Administrators could have written, and says so.
func (r *run) quarantinePath(ctx context.Context, path string) error {
	to, err := records.SetAside(ctx, r.Host, path, r.Clock.Now())
	if err != nil {
		return fmt.Errorf("%w (fix: end the programs that have it open, or boot the host)", err)
	}
	r.progress.note(fmt.Sprintf("%s is ignored: users other than SYSTEM and Administrators could change it. It is now %s: look at it, then delete it", path, to))
	return nil
}

// claimRoots sets aside the roots that somebody else made before us: whoever owns a folder can put programs beside ours, and
// change the access that we give it. On a host with a ledger they are ours, and the plan gives them their access again.
func (r *run) claimRoots(ctx context.Context) error {
	if r.records.Ledger.AppliedDigest() != "" || r.records.Interrupted || r.records.Damaged {
		return nil
	}
	for _, path := range plan.GuardedFolders() {
		infos, err := r.Host.Stat(ctx, []string{path})
		if err != nil {
			return fmt.Errorf("observing %s: %w", path, err)
		}
		if !isForeign(infos[0]) {
			continue
		}
		if err := r.quarantinePath(ctx, path); err != nil {
			return err
		}
	}
	return r.claimPrograms(ctx)
}

// claimPrograms sets aside what others have put beside the programs before the first bundle was applied. Where an administrator or another operator had
// made the folder without an access of its own, users could add files, and a program looks for libraries in its own folder first
// (learn.microsoft.com/windows/win32/dlls/dynamic-link-library-search-order). It comes before the plan, which then has what is missing, and again when the
// folders have our access, before anything starts.
func (r *run) claimPrograms(ctx context.Context) error {
	if r.records.Ledger.AppliedDigest() != "" {
		return nil
	}
	infos, err := r.Host.Stat(ctx, []string{plan.ProgramRoot})
	if err != nil || infos[0].Kind != plan.FileDirectory {
		return err
	}
	return r.quarantineContents(ctx, infos[0])
}

// isForeign reports whether something belongs to another product, or leads elsewhere.
func isForeign(f plan.FileInfo) bool { return f.Owner == plan.OwnerOther || f.Kind == plan.FileOther }

// makeFolder makes a folder, or gives one that exists its access. Whoever has made a folder may hold it open with the right to change its access, which no
// other access takes away (learn.microsoft.com/windows/win32/secauthz/access-rights-and-access-masks): before the first bundle, one of another user is set
// aside and not taken, also where a program keeps it from being moved.
func (r *run) makeFolder(ctx context.Context, path string, access bundle.Access) error {
	if r.records.Ledger.AppliedDigest() != "" || r.records.Damaged {
		return r.Host.MakeDirectory(ctx, path, access)
	}
	infos, err := r.Host.Stat(ctx, []string{path})
	if err != nil {
		return fmt.Errorf("observing %s: %w", path, err)
	}
	f := infos[0]
	if isForeign(f) {
		if err := r.quarantinePath(ctx, path); err != nil {
			return err
		}
		f.Kind = plan.FileAbsent
	}
	if f.Kind == plan.FileAbsent && slices.Contains(plan.GuardedFolders(), path) {
		return records.PlaceFolder(ctx, r.Host, path, access)
	}
	return r.Host.MakeDirectory(ctx, path, access)
}

// quarantineContents sets aside what is somebody else's in a folder and in the folders below.
func (r *run) quarantineContents(ctx context.Context, f plan.FileInfo) error {
	inside, err := r.Host.List(ctx, f.Path)
	if err != nil {
		return fmt.Errorf("listing %s: %w", f.Path, err)
	}
	for _, child := range inside {
		switch {
		case child.Owner == plan.OwnerOther:
			err = r.quarantinePath(ctx, child.Path)
		case child.Kind == plan.FileDirectory:
			err = r.quarantineContents(ctx, child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
