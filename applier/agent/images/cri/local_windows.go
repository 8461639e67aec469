package cri

import (
	"context"
	"errors"
	"fmt"
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
	return New(func(ctx context.Context) (net.Conn, error) { return dialPipe(ctx, pipe) }, diskSpace)
}

// dialPipe connects to a pipe of SYSTEM or Administrators. Any user can create a pipe of any name that is free, and
// owns it then (learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights): while containerd does not
// run, whoever takes its name would be given the credentials of registries.
func dialPipe(ctx context.Context, name string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := checkOwner(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to pipe %s: %w", name, err), conn.Close())
	}
	return conn, nil
}

// checkOwner returns an error unless SYSTEM or Administrators own the object behind a connection. The right to read
// that is part of the access with which winio opens a pipe (GENERIC_READ;
// learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-getsecurityinfo).
func checkOwner(conn net.Conn) error {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("it has no handle")
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("reading its owner: %w", err)
	}
	owner, _, err := sd.Owner()
	switch {
	case err != nil:
		return fmt.Errorf("reading its owner: %w", err)
	case !owner.IsWellKnown(windows.WinLocalSystemSid) && !owner.IsWellKnown(windows.WinBuiltinAdministratorsSid):
		return fmt.Errorf("its owner is %s, neither SYSTEM nor Administrators", owner)
	}
	return nil
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
