package main

import (
	"bytes"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/internal/cli"
)

// A file or a service of another one on the host may have any name.
func TestNothingOnTheHostCanPrintALineOfItsOwn(t *testing.T) {
	const lie = "x\nresult: applied\r\x1b[2K"
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out}
	o := applier.Observation{
		Notes: []string{lie}, Actions: []plan.Action{{Verb: lie, Entry: lie, Reason: lie}}, Foreign: []string{lie},
		Unhealthy: []applier.Unhealthy{{Service: lie, Reason: lie}}, Impact: lie,
	}
	if err := a.printObservation(cli.Text, o); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []applier.EventKind{applier.EventPlan, applier.EventAction, applier.EventProbe, applier.EventNote, applier.EventRollback, applier.EventResult} {
		a.printEvent(applier.Event{Event: kind, Message: lie, Service: lie, Result: lie, Action: &o.Actions[0]})
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "result: applied") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\x1b") {
			t.Errorf("%q", line)
		}
	}
}
