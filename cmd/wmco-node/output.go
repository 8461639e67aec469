package main

import (
	"fmt"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/cli"
)

// emitter returns what prints events.
func (a *app) emitter(f cli.Format) func(applier.Event) {
	if f == cli.Text {
		return a.printEvent
	}
	return a.emit
}

// printEvent prints an event for people.
func (a *app) printEvent(e applier.Event) {
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
		fmt.Fprintf(a.stdout, "%s: %s written, %s started\n", e.Result, bundle.Count(e.Written, "file"), bundle.Count(e.Restarted, "service"))
	}
}

func actionText(x plan.Action) string {
	return fmt.Sprintf("%-8s %s (%s; impact %s)", x.Verb, x.Entry, x.Reason, x.Impact)
}

func (a *app) printObservation(f cli.Format, o applier.Observation) error {
	if f != cli.Text {
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
		fmt.Fprintf(&b, "unmanaged %s (left alone)\n", path)
	}
	for _, u := range o.Unhealthy {
		fmt.Fprintf(&b, "unhealthy %s: %s\n", u.Service, u.Reason)
	}
	if o.InSync {
		fmt.Fprintln(&b, "nothing differs")
	} else {
		fmt.Fprintf(&b, "%s, impact %s\n", bundle.Count(len(o.Actions), "action"), o.Impact)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
