package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Files are the files of this host.
type Files struct {
	// NoACLs is true if the disk does not keep the access control lists that files are given. Then the access of files
	// is not available, see plan.FileInfo. Wine keeps only what fits into the mode of a Linux file, but reports
	// FILE_PERSISTENT_ACLS.
	NoACLs bool
}

// Write does not share the new file, so that no part of it is read.
func (f Files) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	parent, err := holdFolder(path)
	if err != nil {
		return err
	}
	defer parent.closeHandle()
	sa, err := securityAttributes(access, plan.FileRegular)
	if err != nil {
		return err
	}
	return replaceFile(ctx, path, sa, content)
}

// replaceFile writes a new file beside the path and moves it there. The next call removes what an interrupted one left.
func replaceFile(ctx context.Context, path string, sa *windows.SecurityAttributes, content io.Reader) error {
	beside, limit := plan.NewName(path), lockLimitOf(path)
	var handle windows.Handle
	err := retryLocked(ctx, limit, func() (err error) {
		handle, err = createAnew(beside, sa)
		return err
	})
	if err != nil {
		return err
	}
	if err := fillFile(ctx, os.NewFile(uintptr(handle), beside), content); err != nil {
		return errors.Join(err, removeName(beside))
	}
	if err := retryLocked(ctx, limit, func() error { return moveInPlace(beside, path) }); err != nil {
		return errors.Join(fileError(path, "replacing", err), removeName(beside))
	}
	return nil
}

// createAnew creates a file. One that exists would keep its access, and a link would be followed.
func createAnew(path string, sa *windows.SecurityAttributes) (windows.Handle, error) {
	name, err := rawPath(path)
	if err == nil {
		err = windows.DeleteFile(name)
	}
	if err != nil && !isAbsent(err) {
		return windows.InvalidHandle, fileError(path, "removing", whyDenied(path, err))
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, sa, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	return handle, fileError(path, "creating", whyDenied(path, err))
}

// whyDenied explains why Windows denies access to a path.
func whyDenied(path string, err error) error {
	if err == nil {
		return nil
	}
	_, _, attributes := attributesOf(path)
	return explainDenied(err, attributes)
}

// fillFile writes a file, flushes it to the disk and closes it.
func fillFile(ctx context.Context, file *os.File, content io.Reader) error {
	err := copyContent(ctx, file, content)
	if err == nil {
		// FlushFileBuffers (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers).
		err = fileError(file.Name(), "flushing", file.Sync())
	}
	return errors.Join(err, fileError(file.Name(), "closing", file.Close()))
}

// copyContent returns the errors of the file as a *applier.FileError, and wraps those of the content.
func copyContent(ctx context.Context, file *os.File, content io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := content.Read(buffer)
		if n > 0 {
			if _, err := file.Write(buffer[:n]); err != nil {
				return fileError(file.Name(), "writing", err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the content of %s: %w", file.Name(), err)
		}
	}
}

// moveInPlace moves a file to the path of another one, which may be read-only or a program that runs.
func moveInPlace(from, to string) error {
	err := renameDurably(from, to)
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) && !errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return err
	}
	if isHeld(from) {
		return err // the old file stays at its path for as long as the new one cannot take it
	}
	attributes, exists, statErr := attributesOf(to)
	if statErr != nil || !exists || kindOf(attributes) != plan.FileRegular {
		return explainDenied(err, statErr)
	}
	if attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		if clearErr := clearReadOnly(to, attributes); clearErr != nil {
			return clearErr
		}
		if err = renameDurably(from, to); err == nil {
			return nil
		}
	}
	aside, asideErr := moveAside(to)
	if asideErr != nil {
		return errors.Join(asideErr, err) // the first has the reason: locked or denied
	}
	if err := renameDurably(from, to); err != nil {
		return errors.Join(err, renameDurably(aside, to))
	}
	// Windows removes it when the last handle is closed. A program that runs cannot be removed: a later run does it.
	_ = deleteFile(aside)
	return nil
}

// isHeld reports whether another program has the file open and does not share it for deletion, as a scanner may have a
// new file: it cannot be renamed (learn.microsoft.com/windows/win32/fileio/creating-and-opening-files).
func isHeld(path string) bool {
	file, err := openHandle(path, windows.DELETE, shareAll)
	if err == nil {
		_ = windows.CloseHandle(file) // nothing was written
	}
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// renameDurably gives a file another name and replaces the file with that name. It returns when that is on the disk
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
func renameDurably(from, to string) error {
	return moveFile(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

func moveFile(from, to string, flags uint32) error {
	old, err := rawPath(from)
	if err != nil {
		return err
	}
	name, err := rawPath(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(old, name, flags)
}

// moveAside renames a file to the first name beside it that is free or that a program had that has ended. Windows can
// rename an open file if all handles share it for deletion, as those of a running program do.
func moveAside(path string) (string, error) {
	for serial := 1; ; serial++ {
		aside := plan.AsideName(path, strconv.Itoa(serial))
		if err := deleteFile(aside); err != nil && !isAbsent(err) {
			if serial < 1000 {
				continue
			}
			return "", err
		}
		return aside, moveFile(path, aside, windows.MOVEFILE_WRITE_THROUGH)
	}
}

// clearReadOnly removes the read-only attribute, so that the file can be replaced and removed
// (learn.microsoft.com/windows/win32/fileio/file-attribute-constants, FILE_ATTRIBUTE_READONLY).
func clearReadOnly(path string, attributes uint32) error {
	name, err := rawPath(path)
	if err != nil {
		return err
	}
	attributes &^= windows.FILE_ATTRIBUTE_READONLY
	if attributes == 0 {
		attributes = windows.FILE_ATTRIBUTE_NORMAL
	}
	return windows.SetFileAttributes(name, attributes)
}

func deleteFile(path string) error {
	name, err := rawPath(path)
	if err != nil {
		return err
	}
	return windows.DeleteFile(name)
}

// removeName removes a file or a link, if it exists.
func removeName(path string) error {
	if err := deleteFile(path); err != nil && !isAbsent(err) {
		return fileError(path, "removing", err)
	}
	return nil
}
