//go:build windows

// Tool does what Wine has no program for.
//
//	tool hold        keeps the root store of Wine until it is killed
//	tool kill NAME   kills all processes of a program, and prints their number
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "hold":
		return hold()
	case len(args) == 2 && args[0] == "kill":
		return kill(args[1])
	}
	return errors.New("usage: tool hold | kill NAME")
}

// hold keeps a semaphore open. When a process opens the root store, Wine replaces all roots by those of Linux, unless another
// process has this semaphore.
func hold() error {
	name := windows.StringToUTF16Ptr("crypt32_root_semaphore")
	create := windows.NewLazySystemDLL("kernel32.dll").NewProc("CreateSemaphoreW")
	if handle, _, err := create.Call(0, 1, 1, uintptr(unsafe.Pointer(name))); handle == 0 {
		return err
	}
	fmt.Println("holds")
	time.Sleep(24 * time.Hour)
	return nil
}

func kill(name string) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return err
	}
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	ended := 0
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if !strings.EqualFold(windows.UTF16ToString(entry.ExeFile[:]), name) {
			continue
		}
		if err := terminate(entry.ProcessID); err != nil {
			return err
		}
		ended++
	}
	fmt.Println(ended)
	return windows.CloseHandle(snapshot)
}

func terminate(id uint32) error {
	process, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, id)
	if err != nil {
		return err
	}
	if err := windows.TerminateProcess(process, 1); err != nil {
		return err
	}
	if _, err := windows.WaitForSingleObject(process, windows.INFINITE); err != nil {
		return err
	}
	return windows.CloseHandle(process)
}
