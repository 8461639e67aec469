//go:build windows

package main

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// servePipe accepts connections to the pipe and closes them.
func servePipe(name string) error {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	pipe, err := windows.CreateNamedPipe(text, windows.PIPE_ACCESS_DUPLEX, windows.PIPE_TYPE_BYTE, 1, 512, 512, 0, nil)
	if err != nil {
		return fmt.Errorf("serving pipe %s: %w", name, err)
	}
	go func() {
		for windows.ConnectNamedPipe(pipe, nil) == nil {
			_ = windows.DisconnectNamedPipe(pipe)
		}
	}()
	return nil
}
