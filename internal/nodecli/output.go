package nodecli

import (
	"fmt"
	"strings"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/cli"
)

// emitter returns what prints events.
func (p Program) emitter(f cli.Format) func(protocol.Event) {
	if f == cli.Text {
		return p.printEvent
	}
	return p.emit
}

// printEvent prints an event for people.
func (p Program) printEvent(e protocol.Event) {
	switch e.Event {
	case protocol.EventReceived:
		cli.Printf(p.Stdout, "received %s\n", e.Content.Short())
	case protocol.EventFetching:
		cli.Printf(p.Stdout, "fetched %d of %d bytes\n", e.Bytes, e.AllBytes)
	case protocol.EventPlan:
		cli.Printf(p.Stdout, "plan: %s\n", e.Message)
	case protocol.EventAction:
		cli.Printf(p.Stdout, "  %s\n", actionText(*e.Action))
	case protocol.EventProbe:
		cli.Printf(p.Stdout, "  %s: %s\n", e.Service, e.Message)
	case protocol.EventConfirm, protocol.EventNote:
		cli.Printf(p.Stdout, "  %s\n", e.Message)
	case protocol.EventRollback:
		cli.Printf(p.Stdout, "rolling back: %s\n", e.Message)
	case protocol.EventResult:
		cli.Printf(
			p.Stdout, "%s: %s written, %s started\n", e.Result, bundle.Count(e.Written, "file"),
			bundle.Count(e.Restarted, "service"),
		)
	}
}

func actionText(x protocol.Action) string {
	return fmt.Sprintf("%-8s %s (%s; impact %s)", x.Verb, x.Entry, x.Reason, x.Impact)
}

func (p Program) printObservation(f cli.Format, o protocol.Observation) error {
	if f != cli.Text {
		return p.print(o)
	}
	var b strings.Builder
	for _, n := range o.Notes {
		cli.Printf(&b, "note: %s\n", n)
	}
	for _, x := range o.Actions {
		cli.Printf(&b, "%s\n", actionText(x))
	}
	for _, path := range o.Foreign {
		cli.Printf(&b, "unmanaged %s (left alone)\n", path)
	}
	for _, u := range o.Unhealthy {
		cli.Printf(&b, "unhealthy %s: %s\n", u.Service, u.Reason)
	}
	if o.InSync {
		cli.Printf(&b, "nothing differs\n")
	} else {
		cli.Printf(&b, "%s, impact %s\n", bundle.Count(len(o.Actions), "action"), o.Impact)
	}
	return cli.PrintText(p.Stdout, b.String())
}
