package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/internal/cli"
)

// lie is text of a host that looks like a line about another host, and hides the text before it.
const lie = "x\nwin-2: applied\r\x1b[2K\u009b1m\u202e"

// A host writes what it likes into every field of its answers, and an SSH server into its errors.
func TestAHostCannotPrintALineOfItsOwn(t *testing.T) {
	liar := &host{target: remote.Target{User: "u", Address: "win-1:22"}}
	action := protocol.Action{Verb: lie, Entry: lie, Reason: lie, Impact: lie}
	id := []bundle.EntryID{lie}
	observed := protocol.Observation{
		Actions: []protocol.Action{action}, Impact: lie, Interrupted: lie, Unhealthy: []protocol.Unhealthy{{Service: lie, Reason: lie}},
		RebootPending: id, Foreign: []string{lie}, Notes: []string{lie},
	}
	failure := errors.Join(
		&remote.CommandError{Target: liar.target, Command: "observe", Signal: lie, Stderr: lie},
		&remote.AuthError{Target: liar.target, Allowed: []string{lie}, Err: errors.New(lie)},
	)
	var events []protocol.Event
	for _, kind := range []protocol.EventKind{
		protocol.EventReceived, protocol.EventPlan, protocol.EventAction, protocol.EventProbe, protocol.EventConfirm, protocol.EventNote, protocol.EventRollback, protocol.EventResult, lie,
	} {
		events = append(events, protocol.Event{Event: kind, Message: lie, Service: lie, Impact: lie, Result: lie, Action: &action})
	}
	for name, show := range map[string]func(app){
		"an observation": func(a app) { printObservation(a, palette{}, liar, observed) },
		"events": func(a app) {
			p := newProgress(a, cli.Text, nil)
			for _, e := range events {
				p.event(liar.target, e)
			}
			p.note(liar.target, confirmNote(failure))
			p.end()
		},
		"a failure": func(a app) {
			h := *liar
			h.err = failure
			printFailure(a, cli.Text, &h)
		},
		"results": func(a app) {
			var f applyFlags
			o := &hosts{all: []*host{liar}}
			for _, e := range events {
				e.Result = lie
				_ = f.printTable(a, o, &results{events: map[remote.Target]protocol.Event{liar.target: e}})
				for _, r := range []protocol.Result{protocol.ResultRefused, protocol.ResultPartial, protocol.ResultRolledBack} {
					e.Result = r
					f.printEnd(a, liar.target, e)
				}
			}
		},
		"findings about its facts": func(a app) {
			printFindings(a.stderr, palette{}, bundle.Findings{{Severity: lie, Reason: lie, Node: lie, Field: lie, Message: lie, Fix: lie}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			show(app{stdout: &out, stderr: &out})
			if out.Len() == 0 {
				t.Fatal("nothing is printed")
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "win-2") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\r\n\x1b\u009b\u202e") {
					t.Errorf("%q", line)
				}
			}
		})
	}
	var out bytes.Buffer
	root := rootCommand(app{stdout: &out, stderr: &out})
	root.SetArgs([]string{"version", fmt.Sprint("--", lie)})
	if cli.Execute(t.Context(), root, nil); strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%q", out.String())
	}
}
