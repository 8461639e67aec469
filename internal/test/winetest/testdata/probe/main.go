//go:build windows

// Probe prints what a Windows program sees: its arguments, a variable, its input, a file that it writes and reads, and the
// version of Windows. It ends with exit code 3.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(3)
}

func run() error {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	const file = `C:\k\probe.txt`
	if err := os.WriteFile(file, []byte("written by a Windows program\r\n"), 0o644); err != nil {
		return err
	}
	read, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	v := windows.RtlGetVersion()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"args": os.Args[1:], "dir": dir, "file": string(read), "stdin": string(stdin), "variable": os.Getenv("WINETEST"),
		"version": fmt.Sprintf("%d.%d.%d type %d", v.MajorVersion, v.MinorVersion, v.BuildNumber, v.ProductType),
	})
}
