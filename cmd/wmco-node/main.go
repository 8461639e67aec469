// Command wmco-node is the program on a Windows node: it compares the machine with a bundle and makes it so, once and over
// SSH or for good as a service. It reads stdin, prints JSON and decides nothing that is not in the bundle.
//
// On other systems it works on a machine that lies in a folder (--root, or WMCO_NODE_ROOT in the environment), for demos
// and tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
)

// version is set by the Makefile.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cobra.MousetrapHelpText = "" // nobody double-clicks it: the parent process need not be looked at
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, clock: clock{}, version: version, root: os.Getenv("WMCO_NODE_ROOT")}
	os.Exit(run(ctx, a, os.Args[1:]))
}

// app is what commands take from the process.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	clock  applier.Clock
	// version is of this program.
	version string
	// root is the folder of a simulated machine.
	root string
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Exit statuses, the same for all commands.
const (
	exitDone        = 0
	exitDiffers     = 1
	exitUsage       = 2
	exitPartial     = 4
	exitRolledBack  = 5
	exitInterrupted = 130
)

// exitError carries the status that an error ends the program with. A nil error was told already.
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

// run executes one command line and returns the exit status.
func run(ctx context.Context, a *app, args []string) int {
	root := rootCommand(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(a.stderr, "wmco-node:", text)
	}
	return status(ctx, err)
}

// status is how an error ends the program.
func status(ctx context.Context, err error) int {
	var exit *exitError
	var back *applier.RolledBackError
	var partial *applier.PartialError
	var file *applier.FileError
	var locked *applier.LockedError
	switch {
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &exit):
		return exit.status
	case errors.As(err, &back):
		return exitRolledBack
	case errors.As(err, &partial), errors.As(err, &file), errors.As(err, &locked):
		return exitPartial
	}
	return exitUsage
}

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "wmco-node",
		Short: "Compare this machine with a bundle, and make it so",
		Long: `wmco-node is on the Windows nodes of a cluster. Its commands read a bundle from stdin and print JSON; wmco and the
operator call them over SSH, and people can too.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	platformCommands(root, a)
	root.AddCommand(observeCommand(a), verifyCommand(a), applyCommand(a), confirmCommand(a), factsCommand(a), repairCommand(a), cleanupCommand(a), runCommand(a), versionCommand(a))
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

// engine is the applier for this machine. doing is what it says to those who find the machine locked.
func (a *app) engine(doing string) (*applier.Engine, error) {
	host, err := openHost(a.root)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	owner := fmt.Sprintf("wmco-node %s, process %d, since %s", doing, os.Getpid(), a.clock.Now().UTC().Format(time.RFC3339))
	return &applier.Engine{Host: host, Clock: a.clock, Program: a.version, Owner: owner}, nil
}

// print writes one JSON value, indented.
func (a *app) print(value any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// emit prints an event as one line.
func (a *app) emit(e applier.Event) {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		fmt.Fprintln(a.stderr, "wmco-node: printing an event:", err)
	}
}
