//go:build windows

// Tripwire replaces a program that must not be run: it records its command line and fails.
package main

import (
	"fmt"
	"os"
)

const (
	log      = `C:\tripwire.log`
	exitCode = 86
)

func main() {
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%q\n", os.Args)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(exitCode)
}
