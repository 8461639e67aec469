package nodecli

import (
	"bytes"
	"strings"
	"testing"

	"wmco/applier/protocol"
	"wmco/internal/cli"
)

// A file or a service of another one on the host may have any name.
func TestNothingOnTheHostCanPrintALineOfItsOwn(t *testing.T) {
	const lie = "x\nresult: applied\r\x1b[2K"
	var out bytes.Buffer
	p := Program{Stdout: &out, Stderr: &out}
	o := protocol.Observation{
		Notes: []string{lie}, Actions: []protocol.Action{{Verb: lie, Entry: lie, Reason: lie}}, Foreign: []string{lie},
		Unhealthy: []protocol.Unhealthy{{Service: lie, Reason: lie}}, Impact: lie,
	}
	if err := p.printObservation(cli.Text, o); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []protocol.EventKind{protocol.EventPlan, protocol.EventAction, protocol.EventProbe, protocol.EventNote, protocol.EventRollback, protocol.EventResult} {
		p.printEvent(protocol.Event{Event: kind, Message: lie, Service: lie, Result: lie, Action: &o.Actions[0]})
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "result: applied") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\x1b") {
			t.Errorf("%q", line)
		}
	}
}
