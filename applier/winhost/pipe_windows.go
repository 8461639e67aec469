package winhost

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pipeWait is how long an instance of a pipe may take to be free, in milliseconds; 0 would be the pipe's own default.
const pipeWait = 1

// probePipe tells that somebody serves a pipe, without connecting. One whose instances are all in use is served too
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
