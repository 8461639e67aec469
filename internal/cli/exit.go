// Package cli has flags, messages and exit statuses of the command lines. It has nothing to do with nodes, hosts or
// clusters.
package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit statuses, the same for all commands. Every help ends with those that its command can return.
const (
	ExitDone        = 0
	ExitDiffers     = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitPartial     = 4
	ExitRolledBack  = 5
	// ExitDamaged is that of a program whose own file does not match its name.
	ExitDamaged     = 125
	ExitInterrupted = 130
)

// ExitError ends the program with a status. Without Err there is nothing left to print.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

// Unwrap implements errors.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns the error of a command that has printed its answer and ends with the status; nil for ExitDone.
func Exit(status int) error {
	if status == ExitDone {
		return nil
	}
	return &ExitError{Status: status}
}

// StatusOf returns the status that an error ends the program with; ExitDone where it has none of its own.
func StatusOf(err error) int {
	if exit := (*ExitError)(nil); errors.As(err, &exit) {
		return exit.Status
	}
	return ExitDone
}

// UsageError returns an error with status ExitUsage.
func UsageError(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// Execute runs a command line, prints the error that it ends with and returns the exit status. Interrupted is the
// status of every error after the context ended, which ends every command within a second (Orderly has the exceptions).
// An error without a status of its own has the one that statusOf returns, and ExitUsage where that is nil: it includes
// what cobra refuses.
func Execute(ctx context.Context, root *cobra.Command, statusOf func(error) int) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(flagError)
	err := interruptible(ctx, root.ExecuteContext)
	if err == nil {
		return ExitDone
	}
	if err.Error() != "" {
		Printf(root.ErrOrStderr(), "%s: %v\n", root.CommandPath(), err)
	}
	exit := (*ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &exit):
		return exit.Status
	case statusOf != nil:
		return statusOf(err)
	}
	return ExitUsage
}

// ExitHelp returns the end of a help text: a line for each status that the command can return.
func ExitHelp(statuses ...string) string {
	text := "\n\nExit status:"
	for _, s := range statuses {
		text += "\n  " + s
	}
	return text
}
