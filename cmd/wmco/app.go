package main

import (
	"io"
	"time"

	"wmco/applier/remote/ssh"
)

// version is set by the Makefile.
var version = "devel"

// sourceTree is the URL below which the files of a release can be read; make release sets it.
var sourceTree string //nolint:gochecknoglobals // the linker sets it

// app is what commands take from the process.
type app struct {
	// name is that of the program in usage texts, wmco if it is empty.
	name   string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	now    func() time.Time
	// color is true where stdout is a terminal that shows colours.
	color   bool
	version string
	// limits are of connections to hosts; the zero value is ssh.DefaultLimits.
	limits ssh.Limits
}
