package winhost

import (
	"context"
	"errors"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/bundle"
)

// MakeDirectory gives a folder that is there the access without reading it first: the call is the question.
func (h *Host) MakeDirectory(ctx context.Context, path string, access bundle.Access) error {
	parent, err := hold(path)
	if err != nil {
		return err
	}
	defer parent.close()
	sa, err := securityAttributes(access, applier.FileDirectory)
	if err != nil {
		return err
	}
	name, err := raw(path)
	if err != nil {
		return err
	}
	err = windows.CreateDirectory(name, sa)
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		err = changeAccess(path, access)
	}
	return errors.Join(fileError(path, "making the folder", err), ctx.Err())
}

// changeAccess gives a folder the access.
func changeAccess(path string, access bundle.Access) error {
	dir, err := open(path, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL|windows.WRITE_DAC|windows.WRITE_OWNER, shareAll)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(dir) //nolint:errcheck // the calls before have told
	info, err := describe(path, dir)
	if err == nil && info.Kind != applier.FileDirectory {
		err = errNotDirectory
	}
	if err != nil {
		return err
	}
	return setAccess(dir, access, applier.FileDirectory)
}

// Link makes the second name beside its place and moves it there
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-createhardlinkw).
func (h *Host) Link(ctx context.Context, path, second string) error {
	for _, p := range []string{path, second} {
		parent, err := hold(p)
		if err != nil {
			return err
		}
		defer parent.close()
	}
	infos, err := h.Stat(ctx, []string{path, second})
	if err != nil {
		return err
	}
	if infos[0].Kind != applier.FileRegular {
		return fileError(path, "linking", kindError(infos[0].Kind))
	}
	if infos[1].ID == infos[0].ID {
		return nil
	}
	if infos[1].Kind == applier.FileDirectory {
		return fileError(second, "linking", errNotFile)
	}
	beside := applier.NewName(second)
	if err := link(path, beside); err != nil {
		return fileError(second, "linking", err)
	}
	if err := patiently(ctx, func() error { return takePlace(beside, second) }); err != nil {
		return errors.Join(fileError(second, "replacing", err), removeName(beside))
	}
	return nil
}

func kindError(kind applier.FileKind) error {
	if kind == applier.FileAbsent {
		return windows.ERROR_FILE_NOT_FOUND
	}
	return errNotFile
}

func link(path, second string) error {
	if err := removeName(second); err != nil {
		return err
	}
	old, err := raw(path)
	if err != nil {
		return err
	}
	name, err := raw(second)
	if err != nil {
		return err
	}
	return windows.CreateHardLink(name, old, 0)
}

// Remove removes a link itself, and moves a program that runs aside.
func (h *Host) Remove(ctx context.Context, path string) error {
	if err := bundle.CheckPath(path); err != nil {
		return err
	}
	attributes, there, err := attributesOf(path)
	if err != nil || !there {
		return fileError(path, "removing", err)
	}
	parent, err := hold(path)
	if err != nil {
		return err
	}
	defer parent.close()
	return fileError(path, "removing", patiently(ctx, func() error { return remove(path, attributes) }))
}

func remove(path string, attributes uint32) error {
	if attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		if err := clearReadOnly(path, attributes); err != nil {
			return err
		}
	}
	if attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0 {
		name, err := raw(path)
		if err != nil {
			return err
		}
		return windows.RemoveDirectory(name)
	}
	err := deleteFile(path)
	// What stands aside already is not moved further.
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) || applier.Leftover(path) {
		return err
	}
	aside, asideErr := moveAside(path)
	if asideErr != nil {
		return errors.Join(asideErr, err) // the first says why: the file is locked, or denied
	}
	_ = deleteFile(aside) // it goes when the program has ended
	return nil
}

// CopyTruncate loses what the program appends between the end of the copy and the emptying: a moment, which no API of
// Windows closes without stopping the program.
func (h *Host) CopyTruncate(ctx context.Context, path, to string) error {
	for _, p := range []string{path, to} {
		parent, err := hold(p)
		if err != nil {
			return err
		}
		defer parent.close()
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
	if err := writeThrough(ctx, to, sa, log); err != nil {
		return err
	}
	if err := log.Truncate(0); err != nil {
		return fileError(path, "emptying", err)
	}
	return fileError(path, "flushing", log.Sync())
}
