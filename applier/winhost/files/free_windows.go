package files

import (
	"context"

	"golang.org/x/sys/windows"

	"wmco/applier"
)

// drive is the root of the drive, with the separator that a root needs.
const drive = `C:\`

// Free asks for what this user can write, which is less than the free space where a quota is set
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw, lpFreeBytesAvailableToCaller).
func (Files) Free(ctx context.Context) (int64, error) {
	name, err := windows.UTF16PtrFromString(drive)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, &applier.FileError{Path: drive, Reason: reasonOf(err), Err: err}
	}
	return int64(min(free, 1<<62)), ctx.Err() //nolint:gosec // it fits
}
