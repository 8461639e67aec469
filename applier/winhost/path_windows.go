package winhost

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"

	"wmco/bundle"
)

// verbatim is the prefix of paths that Windows takes as they are: longer than 260 characters, with nothing stripped and no
// device in them (learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation).
const verbatim = `\\?\`

// raw is a path for a call.
func raw(path string) (*uint16, error) { return windows.UTF16PtrFromString(verbatim + path) }

// The ways in which we open: what others do meanwhile, and nothing followed at the last element
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew).
const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// asItIs opens links and folders themselves.
	asItIs = windows.FILE_FLAG_OPEN_REPARSE_POINT | windows.FILE_FLAG_BACKUP_SEMANTICS
)

// open opens what stands at the path.
func open(path string, rights, share uint32) (windows.Handle, error) {
	name, err := raw(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return windows.CreateFile(name, rights, share, nil, windows.OPEN_EXISTING, asItIs, 0)
}

// finalPath is where an open file or folder really is, without the prefix
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew).
func finalPath(file windows.Handle) (string, error) {
	buffer := make([]uint16, 512)
	for {
		n, err := windows.GetFinalPathNameByHandle(file, &buffer[0], uint32(len(buffer)), 0) //nolint:gosec // small
		if err != nil {
			return "", err
		}
		if int(n) < len(buffer) {
			return windows.UTF16ToString(buffer[:n])[len(verbatim):], nil
		}
		buffer = make([]uint16, n+1)
	}
}

// straight tells, as an error, that the open file was reached through a link or a junction.
func straight(file windows.Handle, path string) error {
	final, err := finalPath(file)
	if err != nil {
		return err
	}
	if bundle.FoldPath(final) != bundle.FoldPath(path) {
		return fmt.Errorf("%w: %s leads to %s", errLink, path, final)
	}
	return nil
}

// folder is an open folder. While it is open nobody can remove, rename or replace it or the folders above it, since it is
// not shared for deletion.
type folder struct{ handle windows.Handle }

// hold opens the folder that the path is in, unless a link leads there.
func hold(path string) (folder, error) {
	if err := bundle.CheckPath(path); err != nil {
		return folder{}, err
	}
	dir := bundle.Dir(path)
	const rights = windows.FILE_LIST_DIRECTORY | windows.FILE_READ_ATTRIBUTES
	handle, err := open(dir, rights, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE)
	if err != nil {
		return folder{}, fileError(dir, "opening the folder", err)
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(handle, &info)
	if err == nil && info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY == 0 {
		err = errNotDirectory
	}
	if err == nil {
		err = straight(handle, dir)
	}
	if err != nil {
		return folder{}, fileError(dir, "opening the folder", errors.Join(err, windows.CloseHandle(handle)))
	}
	return folder{handle}, nil
}

// close gives the folder free. Nothing was written through it, so nothing can be lost.
func (f folder) close() { _ = windows.CloseHandle(f.handle) }

// errNotFile and errNotDirectory are what stands in the way of a file or a folder.
var (
	errNotFile      = errors.New("not a file")
	errNotDirectory = errors.New("not a folder")
)

// notExist makes of an error of Windows one that says where, and that fs.ErrNotExist recognizes.
func notExist(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
