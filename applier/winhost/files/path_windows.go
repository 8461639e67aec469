package files

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"

	"wmco/bundle"
)

// verbatim is the prefix of paths that Windows does not change: they may be longer than 260 characters, and no name in
// them is one of a device (learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation).
const verbatim = `\\?\`

// rawPath returns a path as an argument of a call.
func rawPath(path string) (*uint16, error) { return windows.UTF16PtrFromString(verbatim + path) }

// The arguments of CreateFile for sharing, and for opening a link instead of following it
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew).
const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// asItIs opens a link itself, and folders.
	asItIs = windows.FILE_FLAG_OPEN_REPARSE_POINT | windows.FILE_FLAG_BACKUP_SEMANTICS
)

// openHandle opens the file, folder or link at the path.
func openHandle(path string, rights, share uint32) (windows.Handle, error) {
	name, err := rawPath(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return windows.CreateFile(name, rights, share, nil, windows.OPEN_EXISTING, asItIs, 0)
}

// finalPath returns the path of an open file or folder with all links resolved, without the prefix
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

// checkNoLink returns ErrLink if the open file was reached through a link or a junction.
func checkNoLink(file windows.Handle, path string) error {
	final, err := finalPath(file)
	if err != nil {
		return err
	}
	if bundle.FoldPath(final) != bundle.FoldPath(path) {
		return fmt.Errorf("%w: %s leads to %s", ErrLink, path, final)
	}
	return nil
}

// folder is an open folder. It is not shared for deletion: while it is open, no process can remove, rename or replace it or
// the folders above it.
type folder struct{ handle windows.Handle }

// holdFolder opens the folder of the path. It returns ErrLink if a link leads there.
func holdFolder(path string) (folder, error) {
	if err := bundle.CheckHostPath(path); err != nil {
		return folder{}, err
	}
	dir := bundle.Dir(path)
	const rights = windows.FILE_LIST_DIRECTORY | windows.FILE_READ_ATTRIBUTES
	handle, err := openHandle(dir, rights, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE)
	if err != nil {
		return folder{}, fileError(dir, "opening the folder", err)
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(handle, &info)
	if err == nil && info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY == 0 {
		err = ErrNotDirectory
	}
	if err == nil {
		err = checkNoLink(handle, dir)
	}
	if err != nil {
		return folder{}, fileError(dir, "opening the folder", errors.Join(err, windows.CloseHandle(handle)))
	}
	return folder{handle}, nil
}

// closeHandle ignores errors: nothing was written through the handle.
func (f folder) closeHandle() { _ = windows.CloseHandle(f.handle) }

// ErrNotFile and ErrNotDirectory are why something at a path cannot be used as a file or a folder.
var (
	ErrNotFile      = errors.New("not a file")
	ErrNotDirectory = errors.New("not a folder")
)

// pathError adds the operation and the path to an error of Windows. errors.Is finds fs.ErrNotExist in it.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
