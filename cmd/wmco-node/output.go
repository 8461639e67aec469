package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wmco/applier"
)

// format is how an answer is printed.
type format string

const (
	// formatJSON is for programs, and what they get if they say nothing.
	formatJSON format = "json"
	// formatText is for people.
	formatText format = "text"
)

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	switch format(s) {
	case formatJSON, formatText:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("write json or text")
}

// String implements pflag.Value.
func (f *format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *format) Type() string { return "format" }

func formatFlag(cmd *cobra.Command, f *format) {
	*f = formatJSON
	cmd.Flags().VarP(f, "output", "o", "json or text")
}

func (a *app) emitter(f format) func(applier.Event) {
	if f == formatText {
		return a.tell
	}
	return a.emit
}

// tell prints an event for people.
func (a *app) tell(e applier.Event) {
	switch e.Event {
	case applier.EventReceived:
		fmt.Fprintf(a.stdout, "received %s\n", e.Content.Short())
	case applier.EventPlan:
		fmt.Fprintf(a.stdout, "plan: %s\n", e.Message)
	case applier.EventAction:
		fmt.Fprintf(a.stdout, "  %s\n", actionText(*e.Action))
	case applier.EventProbe:
		fmt.Fprintf(a.stdout, "  %s: %s\n", e.Service, e.Message)
	case applier.EventConfirm, applier.EventNote:
		fmt.Fprintf(a.stdout, "  %s\n", e.Message)
	case applier.EventRollback:
		fmt.Fprintf(a.stdout, "rolling back: %s\n", e.Message)
	case applier.EventResult:
		fmt.Fprintf(a.stdout, "%s: %d files written, %d services started\n", e.Result, e.Written, e.Restarted)
	}
}

func actionText(x applier.Action) string {
	return fmt.Sprintf("%-8s %s (%s; impact %s)", x.Verb, x.Entry, x.Reason, x.Impact)
}

func (a *app) printObservation(f format, o applier.Observation) error {
	if f != formatText {
		return a.print(o)
	}
	var b strings.Builder
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, x := range o.Actions {
		fmt.Fprintln(&b, actionText(x))
	}
	for _, path := range o.Foreign {
		fmt.Fprintf(&b, "foreign  %s (left alone)\n", path)
	}
	for _, u := range o.Unhealthy {
		fmt.Fprintf(&b, "unhealthy %s: %s\n", u.Service, u.Reason)
	}
	if o.InSync {
		fmt.Fprintln(&b, "nothing differs")
	} else {
		fmt.Fprintf(&b, "%d actions, impact %s\n", len(o.Actions), o.Impact)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
