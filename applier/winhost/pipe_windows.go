package winhost

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pipeWait is the limit of the wait for a free instance of a pipe, in milliseconds. 0 would be the default of the pipe.
const pipeWait = 1

// probePipe returns nil if a program serves the pipe, even if all instances are in use. It does not connect
// (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-waitnamedpipew).
func probePipe(name string) error {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	wait := windows.NewLazySystemDLL("kernel32.dll").NewProc("WaitNamedPipeW")
	ok, _, err := wait.Call(uintptr(unsafe.Pointer(text)), pipeWait)
	if ok != 0 || errors.Is(err, windows.ERROR_SEM_TIMEOUT) {
		return nil
	}
	return fmt.Errorf("asking for pipe %s: %w", name, err)
}
