//go:build !unix

package controlplane

import "syscall"

// ownGroup starts a process as any other.
func ownGroup() *syscall.SysProcAttr { return nil }
