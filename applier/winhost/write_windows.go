package winhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/bundle"
)

// Write creates the new file without sharing it, so that nobody reads half of it.
func (h *Host) Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error {
	parent, err := hold(path)
	if err != nil {
		return err
	}
	defer parent.close()
	sa, err := securityAttributes(access, applier.FileRegular)
	if err != nil {
		return err
	}
	return writeThrough(ctx, path, sa, content)
}

// writeThrough writes beside and takes the place. What a cut leaves beside is replaced by the next run.
func writeThrough(ctx context.Context, path string, sa *windows.SecurityAttributes, content io.Reader) error {
	beside := applier.NewName(path)
	if err := createFile(ctx, beside, sa, content); err != nil {
		return errors.Join(err, removeName(beside))
	}
	if err := patiently(ctx, func() error { return takePlace(beside, path) }); err != nil {
		return errors.Join(fileError(path, "replacing", err), removeName(beside))
	}
	return nil
}

// lockPatience is how long a file may be locked before it counts: virus scanners open what is new and let go of it soon.
const (
	lockPatience = time.Second
	lockPause    = 50 * time.Millisecond
)

// patiently tries again while the file is locked by another program.
func patiently(ctx context.Context, try func() error) error {
	var last error
	err := poll(ctx, lockPatience, lockPause, func() (bool, error) {
		last = try()
		return reasonOf(last) != applier.FileLocked, nil
	})
	if errors.Is(err, errTooLong) {
		return last
	}
	return errors.Join(last, err)
}

// createFile writes a file that was not there, to the disk.
func createFile(ctx context.Context, path string, sa *windows.SecurityAttributes, content io.Reader) error {
	// One that is there would keep its security, or lead elsewhere.
	if err := removeName(path); err != nil {
		return err
	}
	name, err := raw(path)
	if err != nil {
		return err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_WRITE, 0, sa, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return fileError(path, "creating", err)
	}
	file := os.NewFile(uintptr(handle), path)
	err = copyAll(ctx, file, content)
	if err == nil {
		// FlushFileBuffers (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers).
		err = fileError(path, "flushing", file.Sync())
	}
	return errors.Join(err, fileError(path, "closing", file.Close()))
}

// copyAll tells the errors of the content as they are, those of the file as a *applier.FileError.
func copyAll(ctx context.Context, file *os.File, content io.Reader) error {
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

// takePlace gives a file the name of another one, which may be read-only or a program that runs.
func takePlace(from, to string) error {
	err := rename(from, to)
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) && !errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return err
	}
	attributes, there, statErr := attributesOf(to)
	if statErr != nil || !there || kindOf(attributes) != applier.FileRegular {
		return err
	}
	if attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		if clearErr := clearReadOnly(to, attributes); clearErr != nil {
			return clearErr
		}
		if err = rename(from, to); err == nil {
			return nil
		}
	}
	aside, asideErr := moveAside(to)
	if asideErr != nil {
		return errors.Join(asideErr, err) // the first says why: the file is locked, or denied
	}
	if err := rename(from, to); err != nil {
		return errors.Join(err, rename(aside, to))
	}
	// It goes with the last one that has it open; a program that runs stays until a later run.
	_ = deleteFile(aside)
	return nil
}

// rename gives a file another name, in place of what has it. It returns when the disk knows
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
func rename(from, to string) error {
	return move(from, to, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

func move(from, to string, flags uint32) error {
	old, err := raw(from)
	if err != nil {
		return err
	}
	name, err := raw(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(old, name, flags)
}

// moveAside gives a file the first of the names beside it that is free or was left by a program that has ended. A file that
// is open can be renamed if those who have it open share it for deletion, as Windows does with a program that runs.
func moveAside(path string) (string, error) {
	for serial := 1; ; serial++ {
		aside := applier.AsideName(path, strconv.Itoa(serial))
		if err := deleteFile(aside); err != nil && !absent(err) {
			if serial < 1000 {
				continue
			}
			return "", err
		}
		return aside, move(path, aside, windows.MOVEFILE_WRITE_THROUGH)
	}
}

// clearReadOnly lets a file be replaced and removed
// (learn.microsoft.com/windows/win32/fileio/file-attribute-constants, FILE_ATTRIBUTE_READONLY).
func clearReadOnly(path string, attributes uint32) error {
	name, err := raw(path)
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
	name, err := raw(path)
	if err != nil {
		return err
	}
	return windows.DeleteFile(name)
}

// removeName removes a file or a link that we write beside others.
func removeName(path string) error {
	if err := deleteFile(path); err != nil && !absent(err) {
		return fileError(path, "removing", err)
	}
	return nil
}
