package files

import (
	"context"
	"errors"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/bundle"
)

// MakeDirectory tries to create the folder instead of looking first. It gives one that exists the access.
func (f Files) MakeDirectory(ctx context.Context, path string, access bundle.Access) error {
	parent, err := holdFolder(path)
	if err != nil {
		return err
	}
	defer parent.closeHandle()
	err = createFolder(path, access)
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		err = changeAccess(path, access)
	}
	return errors.Join(fileError(path, "making the folder", err), ctx.Err())
}

// CreateDirectory makes the folder and gives it the access at once, so that its entries are of whoever has that
// access. One that exists is fs.ErrExist.
func (f Files) CreateDirectory(ctx context.Context, path string, access bundle.Access) error {
	parent, err := holdFolder(path)
	if err != nil {
		return err
	}
	defer parent.closeHandle()
	return errors.Join(fileError(path, "making the folder", createFolder(path, access)), ctx.Err())
}

func createFolder(path string, access bundle.Access) error {
	sa, err := securityAttributes(access, plan.FileDirectory)
	if err != nil {
		return err
	}
	name, err := rawPath(path)
	if err != nil {
		return err
	}
	return windows.CreateDirectory(name, sa)
}

// changeAccess gives a folder the access.
func changeAccess(path string, access bundle.Access) error {
	dir, err := openHandle(path, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL|windows.WRITE_DAC|windows.WRITE_OWNER, shareAll)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(dir) //nolint:errcheck // the calls before returned their errors
	info, err := describeFile(path, dir)
	if err == nil && info.Kind != plan.FileDirectory {
		err = ErrNotDirectory
	}
	if err != nil {
		return err
	}
	return setAccess(dir, access, plan.FileDirectory)
}

// Link creates the second name beside its path and moves it there
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-createhardlinkw).
func (f Files) Link(ctx context.Context, path, second string) error {
	for _, p := range []string{path, second} {
		parent, err := holdFolder(p)
		if err != nil {
			return err
		}
		defer parent.closeHandle()
	}
	infos, err := f.Stat(ctx, []string{path, second})
	if err != nil {
		return err
	}
	if infos[0].Kind != plan.FileRegular {
		return fileError(path, "linking", kindError(infos[0].Kind))
	}
	if infos[1].ID == infos[0].ID {
		return nil
	}
	if infos[1].Kind == plan.FileDirectory {
		return fileError(second, "linking", ErrNotFile)
	}
	beside := plan.NewName(second)
	if err := createLink(path, beside); err != nil {
		return fileError(second, "linking", err)
	}
	if err := retryLocked(ctx, lockLimitOf(path, second), func() error { return moveInPlace(beside, second) }); err != nil {
		return errors.Join(fileError(second, "replacing", err), removeName(beside))
	}
	return nil
}

func kindError(kind plan.FileKind) error {
	if kind == plan.FileAbsent {
		return windows.ERROR_FILE_NOT_FOUND
	}
	return ErrNotFile
}

func createLink(path, second string) error {
	if err := removeName(second); err != nil {
		return err
	}
	old, err := rawPath(path)
	if err != nil {
		return err
	}
	name, err := rawPath(second)
	if err != nil {
		return err
	}
	return windows.CreateHardLink(name, old, 0)
}

// Move moves a link itself. Without MOVEFILE_REPLACE_EXISTING nothing is replaced, and without MOVEFILE_COPY_ALLOWED
// nothing is copied to another drive (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
func (f Files) Move(ctx context.Context, path, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, p := range []string{path, to} {
		parent, err := holdFolder(p)
		if err != nil {
			return err
		}
		defer parent.closeHandle()
	}
	return fileError(path, "moving", moveFile(path, to, windows.MOVEFILE_WRITE_THROUGH))
}

// Remove does not follow links. It moves a program that runs aside.
func (f Files) Remove(ctx context.Context, path string) error {
	if err := bundle.CheckHostPath(path); err != nil {
		return err
	}
	if _, exists, err := attributesOf(path); err == nil && !exists {
		return nil
	}
	parent, err := holdFolder(path)
	if err != nil {
		return err
	}
	defer parent.closeHandle()
	return fileError(path, "removing", retryLocked(ctx, lockLimitOf(path), func() error { return removeEntry(path) }))
}

func removeEntry(path string) error {
	attributes, exists, err := attributesOf(path)
	if err != nil || !exists {
		return explainDenied(err, err)
	}
	if attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		if err := clearReadOnly(path, attributes); err != nil {
			return err
		}
	}
	if attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		name, err := rawPath(path)
		if err != nil {
			return err
		}
		return windows.RemoveDirectory(name)
	}
	err = deleteFile(path)
	// A file that was moved aside before is not moved again.
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) || plan.IsLeftover(path) {
		return err
	}
	aside, asideErr := moveAside(path)
	if asideErr != nil {
		return errors.Join(asideErr, err) // the first has the reason: locked or denied
	}
	_ = deleteFile(aside) // a program that runs cannot be removed: a later run does it
	return nil
}

// RemoveAtBoot has Windows remove a file when it boots, before any service starts: the file of a program that runs
// cannot be removed at once. Windows keeps that in PendingFileRenameOperations of the Session Manager
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw, MOVEFILE_DELAY_UNTIL_REBOOT), which needs the
// rights of an administrator.
func (f Files) RemoveAtBoot(ctx context.Context, path string) error {
	parent, err := holdFolder(path)
	if err != nil {
		return err
	}
	defer parent.closeHandle()
	name, err := rawPath(path)
	if err == nil {
		err = windows.MoveFileEx(name, nil, windows.MOVEFILE_DELAY_UNTIL_REBOOT)
	}
	return errors.Join(fileError(path, "removing at the next boot", err), ctx.Err())
}

// CopyTruncate loses what the program appends after the copy and before the file is emptied. No API of Windows prevents
// that without stopping the program.
func (f Files) CopyTruncate(ctx context.Context, path, to string) error {
	for _, p := range []string{path, to} {
		parent, err := holdFolder(p)
		if err != nil {
			return err
		}
		defer parent.closeHandle()
	}
	log, err := openFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE|windows.READ_CONTROL)
	if err != nil {
		return fileError(path, "opening", err)
	}
	defer log.Close() //nolint:errcheck // it was flushed
	sa, err := sameAttributes(windows.Handle(log.Fd()))
	if err != nil {
		return fileError(path, "reading the access", err)
	}
	if err := replaceFile(ctx, to, sa, log); err != nil {
		return err
	}
	if err := log.Truncate(0); err != nil {
		return fileError(path, "emptying", err)
	}
	return fileError(path, "flushing", log.Sync())
}
