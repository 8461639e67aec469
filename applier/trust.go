package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// lockAndQuarantine locks the host and sets aside the records that do not count. It comes before anything of ours is written, and before
// folders get our access: until then their owner and access show who made them.
func (r *run) lockAndQuarantine(ctx context.Context) (release func() error, err error) {
	// An error may be that another run is removing its records at this moment: the lock waits for that, and it is asked again.
	bad, _ := records.UntrustedRecords(ctx, r.Host)
	var moved []string
	if slices.Contains(bad, plan.StateFolder) {
		if r.options.DryRun {
			return func() error { return nil }, nil // nobody of ours has its lock there
		}
		// The lock makes the next one, unless its maker does so before: then the lock is refused.
		beside, err := records.MoveBeside(ctx, r.Host, plan.StateFolder, r.Clock.Now())
		if err != nil {
			return nil, err
		}
		moved = append(moved, beside)
	}
	if release, err = r.Engine.lockHost(ctx, r.options.LockWait); err != nil || r.options.DryRun {
		return release, err
	}
	if bad, err = records.UntrustedRecords(ctx, r.Host); err == nil {
		for _, path := range append(moved, bad...) {
			err = errors.Join(err, r.quarantinePath(ctx, path))
		}
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}

// releaseLock releases the lock. That it cannot changes nothing of what the run did: the lock of a process that ends is free.
func (r *run) releaseLock(release func() error) {
	if err := release(); err != nil {
		r.emitNote(fmt.Sprintf("releasing the lock: %v", err))
	}
}

// quarantinePath moves away what others than SYSTEM and Administrators could have written, and says so.
func (r *run) quarantinePath(ctx context.Context, path string) error {
	to, err := records.SetAside(ctx, r.Host, path, r.Clock.Now())
	if err != nil {
		return fmt.Errorf("%w (fix: end the programs that have it open, or boot the host)", err)
	}
	r.emitNote(fmt.Sprintf("%s is ignored: users other than SYSTEM and Administrators could change it. It is now %s: look at it, then delete it", path, to))
	return nil
}

// claimRoots sets aside the roots that somebody else made before us: whoever owns a folder can put programs beside ours, and
// change the access that we give it. On a host with a ledger they are ours, and the plan gives them their access again.
func (r *run) claimRoots(ctx context.Context) error {
	if r.situation.Ledger.AppliedDigest() != "" || r.situation.Interrupted || r.situation.Damaged {
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
	if r.situation.Ledger.AppliedDigest() != "" {
		return nil
	}
	infos, err := r.Host.Stat(ctx, []string{plan.ProgramRoot})
	if err != nil {
		return err
	}
	if infos[0].Kind == plan.FileDirectory {
		if err := r.quarantineContents(ctx, infos[0]); err != nil {
			return err
		}
	}
	return r.claimRuntime(ctx)
}

// claimRuntime sets aside what others have made in the folder of containerd, where an administrator has made that without an access of its own. What is further
// inside is of images, and of their owners.
func (r *run) claimRuntime(ctx context.Context) error {
	infos, err := r.Host.Stat(ctx, []string{plan.RuntimeFolder})
	if err != nil || infos[0].Kind != plan.FileDirectory {
		return err
	}
	inside, err := r.Host.List(ctx, plan.RuntimeFolder)
	if err != nil {
		return fmt.Errorf("listing %s: %w", plan.RuntimeFolder, err)
	}
	left := len(inside)
	for _, child := range inside {
		if isForeign(child) {
			if err := r.quarantinePath(ctx, child.Path); err != nil {
				return err
			}
			left--
		}
	}
	return r.replaceHeld(ctx, infos[0], left)
}

// replaceHeld makes a folder again that others could change until this run, where nothing is left in it: whoever has it open can make it lead elsewhere while
// it is empty, whatever access it got (learn.microsoft.com/windows/win32/fileio/reparse-point-operations).
func (r *run) replaceHeld(ctx context.Context, f plan.FileInfo, left int) error {
	wasOpen := r.observed.FileAt(f.Path).Access == plan.AccessOther && f.Access != plan.AccessOther
	if left > 0 || !wasOpen {
		return nil
	}
	if err := r.quarantinePath(ctx, f.Path); err != nil {
		return err
	}
	return r.makeFolder(ctx, f.Path, f.Access)
}

// isForeign reports whether something belongs to another product, or leads elsewhere.
func isForeign(f plan.FileInfo) bool { return f.Owner == plan.OwnerOther || f.Kind == plan.FileOther }

// makeFolder makes a folder, or gives one that exists its access. Whoever has made a folder may hold it open with the right to change its access, which no
// other access takes away (learn.microsoft.com/windows/win32/secauthz/access-rights-and-access-masks): before the first bundle, one of another user is set
// aside and not taken, also where a program keeps it from being moved.
func (r *run) makeFolder(ctx context.Context, path string, access bundle.Access) error {
	if r.situation.Ledger.AppliedDigest() != "" || r.situation.Damaged {
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
	if f.Kind == plan.FileAbsent && plan.MovedInPlace(path) {
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
	left := 0
	for _, child := range inside {
		switch {
		case child.Owner == plan.OwnerOther:
			err = r.quarantinePath(ctx, child.Path)
			left--
		case child.Kind == plan.FileDirectory:
			err = r.quarantineContents(ctx, child)
		}
		if err != nil {
			return err
		}
		left++
	}
	return r.replaceHeld(ctx, f, left)
}
