//go:build windows

// Args reads command lines, a list in JSON, starts itself with each and prints what the children saw: a list for each line. It
// starts a child twice: as os/exec does, which names the program too, and as the service manager does, with only the line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// seen is what a child saw: the arguments as Go splits its command line, and as CommandLineToArgvW does.
type seen struct{ Go, Windows []string }

// child is the environment variable with the file for the answer of a child.
const child = "ARGS_FILE"

func main() {
	run := parent
	if os.Getenv(child) != "" {
		run = answer
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer() error {
	argv, err := windows.DecomposeCommandLine(windows.UTF16PtrToString(syscall.GetCommandLine()))
	if err != nil {
		return err
	}
	data, err := json.Marshal(seen{Go: os.Args, Windows: argv})
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv(child), data, 0o644)
}

func parent() error {
	var lines []string
	if err := json.NewDecoder(os.Stdin).Decode(&lines); err != nil {
		return err
	}
	file := `C:\answer.json`
	if err := os.Setenv(child, file); err != nil {
		return err
	}
	var answers [][]seen
	for _, line := range lines {
		var both []seen
		for _, start := range []func(string) error{named, alone} {
			if err := start(line); err != nil {
				return fmt.Errorf("starting %s: %w", line, err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := os.Remove(file); err != nil {
				return err
			}
			var s seen
			if err := json.Unmarshal(data, &s); err != nil {
				return err
			}
			both = append(both, s)
		}
		answers = append(answers, both)
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

func named(line string) error {
	cmd := exec.Command(os.Args[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: line}
	return cmd.Run()
}

func alone(line string) error {
	text, err := syscall.UTF16PtrFromString(line)
	if err != nil {
		return err
	}
	si, pi := syscall.StartupInfo{}, syscall.ProcessInformation{}
	si.Cb = uint32(unsafe.Sizeof(si))
	if err := syscall.CreateProcess(nil, text, nil, nil, false, 0, nil, nil, &si, &pi); err != nil {
		return err
	}
	defer syscall.CloseHandle(pi.Process)
	defer syscall.CloseHandle(pi.Thread)
	_, err = syscall.WaitForSingleObject(pi.Process, syscall.INFINITE)
	return err
}
