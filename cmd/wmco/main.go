// Command wmco previews, checks and applies what Windows nodes of OKD and OpenShift clusters should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// version is set by the Makefile.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now,
		color:   term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
		version: version,
	}
	os.Exit(run(ctx, app, os.Args[1:]))
}

// app is what commands take from the process.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	now    func() time.Time
	// color tells whether stdout is a terminal that shows colours.
	color   bool
	version string
}

// Exit statuses, the same for all commands. Every help ends with those that it can give.
const (
	exitDone        = 0
	exitDiffers     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitPartial     = 4
	exitRolledBack  = 5
	exitInterrupted = 130
)

// exitError carries the status that an error ends the program with. An empty message was told already.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// run executes one command line and returns the exit status. What cobra itself refuses is a matter of usage.
func run(ctx context.Context, a app, args []string) int {
	root := rootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	status := exitUsage
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		status = exit.status
	}
	if ctx.Err() != nil {
		status = exitInterrupted
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(a.stderr, "wmco:", text)
	}
	return status
}

func rootCommand(a app) *cobra.Command {
	root := &cobra.Command{
		Use:   "wmco",
		Short: "Windows nodes of OKD and OpenShift clusters: see, check and apply what they should be",
		Long: `wmco renders everything that a Windows node should hold from the objects of its cluster, before anything is touched.

stdout is the answer, stderr is for people; -o json gives programs the same answer.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(renderCommand(a), validateCommand(a), diffCommand(a), applyCommand(a), verifyCommand(a), goldenCommand(a), machineSetCommand(a), userDataCommand(a), versionCommand(a), docsCommand(root))
	return root
}

// exitHelp is the end of a command's help.
func exitHelp(statuses ...string) string {
	text := "\n\nExit status:"
	for _, s := range statuses {
		text += "\n  " + s
	}
	return text
}
