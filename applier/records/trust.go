package records

import (
	"context"
	"fmt"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// DirAside is where records are kept that others than SYSTEM and Administrators could change, for people to look at.
const DirAside = plan.StateFolder + `\set-aside`

// Mover moves entries that are set aside.
type Mover interface {
	Files
	MakeDirectory(ctx context.Context, path string, access bundle.Access) error
	Move(ctx context.Context, path, to string) error
}

// UntrustedRecords returns which records do not count because others than SYSTEM and Administrators could have written
// them: the StateFolder with everything in it, or some of its entries. Every user may make a folder in
// C:\ProgramData, also one with the name of ours before we come; its maker owns it.
func UntrustedRecords(ctx context.Context, host Files) ([]string, error) {
	for _, paths := range [][]string{{plan.StateFolder}, {
		FileLedger, FileJournal, FileCache, FileConfirm, FileStaged, FileUndone, FileAccepted, FileSigners, FileBoots,
		FileRemoval, FileRemovalAccess,
		DirContents, DirPrevious, DirAside,
	}} {
		infos, err := host.Stat(ctx, paths)
		if err != nil {
			return nil, fmt.Errorf("observing %s: %w", plan.StateFolder, err)
		}
		var bad []string
		for i, f := range infos {
			if !f.IsTrusted() {
				bad = append(bad, paths[i])
			}
		}
		if len(bad) > 0 {
			return bad, nil
		}
	}
	return nil, nil
}

// SetAside moves something that does not count into DirAside, under a name with the time, and returns its new path.
// Whoever owns it may still read and write it there. The StateFolder is that of who has the lock.
func SetAside(ctx context.Context, host Mover, path string, now time.Time) (string, error) {
	name := nameAside(path, now)
	if bundle.FoldPath(path) != bundle.FoldPath(DirAside) {
		return moveInto(ctx, host, path, name)
	}
	// It cannot be moved into itself: it makes room first.
	beside, err := MoveBeside(ctx, host, path, now)
	if err != nil {
		return "", err
	}
	return moveInto(ctx, host, beside, name)
}

func nameAside(path string, now time.Time) string {
	return now.UTC().Format("20060102-150405") + "-" + bundle.Base(path)
}

// MoveBeside gives something another name in its folder, and returns its new path.
func MoveBeside(ctx context.Context, host Mover, path string, now time.Time) (string, error) {
	return moveFree(ctx, host, path, bundle.Dir(path)+`\`+bundle.Base(path)+"-"+nameAside(path, now))
}

// PlaceFolder makes a folder where everybody may make one: in the StateFolder, from which it is moved to its place.
// There it is an error if another one was faster.
func PlaceFolder(ctx context.Context, host Mover, path string, access bundle.Access) error {
	const made = plan.StateFolder + `\folder` + bundle.NewMark
	if err := host.MakeDirectory(ctx, made, access); err != nil {
		return fmt.Errorf("making %s: %w", made, err)
	}
	if err := host.Move(ctx, made, path); err != nil {
		return fmt.Errorf("making %s: %w", path, err)
	}
	return nil
}

func moveInto(ctx context.Context, host Mover, path, name string) (string, error) {
	infos, err := host.Stat(ctx, []string{plan.StateFolder})
	if err == nil && infos[0].Kind == plan.FileAbsent { // on a host that locks without it
		err = host.MakeDirectory(ctx, plan.StateFolder, bundle.AccessAdmins)
	}
	if err != nil {
		return "", fmt.Errorf("making %s: %w", plan.StateFolder, err)
	}
	if err := host.MakeDirectory(ctx, DirAside, bundle.AccessAdmins); err != nil {
		return "", fmt.Errorf("making %s: %w", DirAside, err)
	}
	return moveFree(ctx, host, path, DirAside+`\`+name)
}

// moveFree moves something to a path, or to the first with a number behind it that is free.
func moveFree(ctx context.Context, host Mover, path, to string) (string, error) {
	free := to
	for n := 2; ; n++ {
		infos, err := host.Stat(ctx, []string{free})
		if err != nil {
			return "", fmt.Errorf("observing %s: %w", free, err)
		}
		if infos[0].Kind == plan.FileAbsent {
			break
		}
		free = fmt.Sprintf("%s-%d", to, n)
	}
	if err := host.Move(ctx, path, free); err != nil {
		return "", fmt.Errorf("setting %s aside: %w", path, err)
	}
	return free, nil
}
