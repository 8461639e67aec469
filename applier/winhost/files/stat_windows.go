package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Stat opens each path once.
func (f Files) Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error) {
	all := make([]plan.FileInfo, 0, len(paths))
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := bundle.CheckHostPath(path); err != nil {
			return nil, err
		}
		info, err := f.statPath(path)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// List returns nothing for a path that is not a folder. It leaves out entries that are removed during the call.
func (f Files) List(ctx context.Context, directory string) ([]plan.FileInfo, error) {
	self, err := f.Stat(ctx, []string{directory})
	if err != nil || self[0].Kind != plan.FileDirectory {
		return nil, err
	}
	entries, err := os.ReadDir(verbatim + directory)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", directory, err)
	}
	var all []plan.FileInfo
	for _, e := range entries {
		info, err := f.statPath(directory + `\` + e.Name())
		if err != nil {
			return nil, err
		}
		if info.Kind != plan.FileAbsent {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b plan.FileInfo) int {
		return strings.Compare(bundle.FoldPath(a.Path), bundle.FoldPath(b.Path))
	})
	return all, ctx.Err()
}

// statPath returns AccessOther and OwnerOther if it may not read the security descriptor. A link has an owner and no
// access.
func (f Files) statPath(path string) (plan.FileInfo, error) {
	file, err := openHandle(path, windows.FILE_READ_ATTRIBUTES|windows.READ_CONTROL, shareAll)
	readable := err == nil
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		file, err = openHandle(path, windows.FILE_READ_ATTRIBUTES, shareAll)
	}
	if isAbsent(err) {
		return plan.FileInfo{Path: path}, nil
	}
	if err != nil {
		return plan.FileInfo{}, fileError(path, "observing", err)
	}
	defer windows.CloseHandle(file) //nolint:errcheck // nothing was written
	info, err := describeFile(path, file)
	if err != nil {
		return info, fileError(path, "observing", err)
	}
	info.Access, info.Owner = plan.AccessOther, plan.OwnerOther
	if readable {
		info.Access, info.Owner, err = f.accessAndOwner(file, info.Kind)
	}
	if info.Kind == plan.FileOther {
		info.Access = ""
	}
	return info, fileError(path, "observing", err)
}

// describeFile returns what an open file is. A file that was reached through a link or a junction is FileOther, as the
// link is.
func describeFile(path string, file windows.Handle) (plan.FileInfo, error) {
	var b windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(file, &b); err != nil {
		return plan.FileInfo{}, err
	}
	info := plan.FileInfo{
		Path:     path,
		Kind:     kindOf(b.FileAttributes),
		Modified: time.Unix(0, b.LastWriteTime.Nanoseconds()).UTC(),
		ID:       fmt.Sprintf("%08x-%08x%08x", b.VolumeSerialNumber, b.FileIndexHigh, b.FileIndexLow),
	}
	if info.Kind == plan.FileRegular {
		info.Size = int64(b.FileSizeHigh)<<32 | int64(b.FileSizeLow)
	}
	if err := checkNoLink(file, path); errors.Is(err, ErrLink) {
		info.Kind = plan.FileOther
	} else if err != nil {
		return plan.FileInfo{}, err
	}
	return info, nil
}

func kindOf(attributes uint32) plan.FileKind {
	switch {
	case attributes&(windows.FILE_ATTRIBUTE_REPARSE_POINT|windows.FILE_ATTRIBUTE_DEVICE) != 0:
		return plan.FileOther
	case attributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0:
		return plan.FileDirectory
	}
	return plan.FileRegular
}

// Open shares the file for reading, writing and deletion, so that others can replace and remove it. It waits a moment
// for one that a virus scanner has open.
func (f Files) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if err := errors.Join(ctx.Err(), bundle.CheckHostPath(path)); err != nil {
		return nil, err
	}
	var file *os.File
	err := retryLocked(ctx, lockLimit, func() (err error) {
		file, err = openFile(path, windows.GENERIC_READ)
		return err
	})
	if err != nil {
		return nil, fileError(path, "opening", err)
	}
	return reading{file}, nil
}

// reading is a file that is read. Another program may lock a part of it (ERROR_LOCK_VIOLATION).
type reading struct{ file *os.File }

func (r reading) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fileError(r.file.Name(), "reading", err)
	}
	return n, err
}

// Seek lets the end of a log be read without the rest.
func (r reading) Seek(offset int64, whence int) (int64, error) { return r.file.Seek(offset, whence) }

func (r reading) Close() error { return r.file.Close() }

// openFile returns ErrNotFile for anything but a file.
func openFile(path string, rights uint32) (*os.File, error) {
	handle, err := openHandle(path, rights|windows.FILE_READ_ATTRIBUTES, shareAll)
	if err != nil {
		return nil, pathError("open", path, err)
	}
	info, err := describeFile(path, handle)
	if err == nil && info.Kind != plan.FileRegular {
		err = ErrNotFile
	}
	if err != nil {
		return nil, pathError("open", path, errors.Join(err, windows.CloseHandle(handle)))
	}
	return os.NewFile(uintptr(handle), path), nil
}

// attributesOf returns the attributes of the file, folder or link at the path, and whether it exists.
func attributesOf(path string) (attributes uint32, exists bool, err error) {
	name, err := rawPath(path)
	if err != nil {
		return 0, false, err
	}
	attributes, err = windows.GetFileAttributes(name)
	if isAbsent(err) {
		return 0, false, nil
	}
	return attributes, err == nil, err
}
