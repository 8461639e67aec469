package cri

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	keeper "wmco/applier/agent/images"
)

// pipe is where containerd listens, and drive has what it stores, as rendered (render, paths.go).
const (
	pipe  = `\\.\pipe\containerd-containerd`
	drive = `C:\`
)

// NewLocal returns the containerd of this host.
func NewLocal() (*Containerd, error) {
	return New(func(ctx context.Context) (net.Conn, error) { return winio.DialPipeContext(ctx, pipe) }, diskSpace)
}

// diskSpace asks Windows (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw).
func diskSpace(ctx context.Context) (keeper.Disk, error) {
	name, err := windows.UTF16PtrFromString(drive)
	if err != nil {
		return keeper.Disk{}, err
	}
	var disk keeper.Disk
	if err := windows.GetDiskFreeSpaceEx(name, &disk.Free, &disk.Size, nil); err != nil {
		return keeper.Disk{}, err
	}
	return disk, ctx.Err()
}
