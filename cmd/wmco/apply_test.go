package main

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle"
)

func TestTheResultSaysWhetherAMachineReboots(t *testing.T) {
	waits, reboots := "waits for a reboot: reboot it and apply again", "rebooting: apply again when it is back"
	for _, tt := range []struct {
		options remote.ApplyOptions
		want    string
	}{
		{remote.ApplyOptions{}, waits},
		{remote.ApplyOptions{Reboot: true}, reboots},
		{remote.ApplyOptions{Reboot: true, MaxImpact: bundle.ImpactReboot}, reboots},
		{remote.ApplyOptions{Reboot: true, MaxImpact: bundle.ImpactDrain}, waits},
	} {
		f := applyFlags{options: tt.options}
		if got := f.resultText(applier.Event{Result: applier.ResultReboot}, nil); got != tt.want {
			t.Errorf("%+v: %s", tt.options, got)
		}
	}
}

func TestTheResultSaysThatABootIsPending(t *testing.T) {
	pending := []bundle.EntryID{"host-name computer"}
	for _, tt := range []struct {
		options remote.ApplyOptions
		event   applier.Event
		want    string
	}{
		{remote.ApplyOptions{Reboot: true}, applier.Event{Result: applier.ResultSame}, "same"},
		{remote.ApplyOptions{}, applier.Event{Result: applier.ResultSame, RebootPending: pending}, "same, a reboot is pending"},
		{remote.ApplyOptions{Reboot: true}, applier.Event{Result: applier.ResultApplied, RebootPending: pending}, "applied, rebooting"},
		{remote.ApplyOptions{Reboot: true}, applier.Event{Result: applier.ResultRolledBack, RebootPending: pending}, "rolled back, a reboot is pending"},
		{remote.ApplyOptions{Reboot: true, DryRun: true}, applier.Event{Result: applier.ResultPlanned, RebootPending: pending}, "planned, a reboot is pending"},
	} {
		f := applyFlags{options: tt.options}
		if got := f.resultText(tt.event, nil); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.event, got, tt.want)
		}
	}
}

func TestWhatToDoAboutAnEndIsToldByItsFields(t *testing.T) {
	f := applyFlags{options: remote.ApplyOptions{MaxImpact: bundle.ImpactRestart}}
	for _, tt := range []struct {
		event applier.Event
		want  string
	}{
		{applier.Event{Result: applier.ResultApplied, Message: "x"}, ""},
		{applier.Event{Result: applier.ResultReboot}, ""},
		{applier.Event{Result: applier.ResultRolledBack, Message: "x"}, "HOST: x\n  fix: look into the service's log under C:\\var\\log on the machine, mend the inputs, apply again\n"},
		{applier.Event{Result: applier.ResultPartial}, "HOST: partial\n  fix: apply again; where another run is at work on the machine, wait for its end or give a longer --wait\n"},
		{applier.Event{Result: applier.ResultRefused, Impact: bundle.ImpactDrain, Message: "x"}, "HOST: x\n  fix: apply when the machine may be disturbed so much, with --max-impact drain\n"},
		{applier.Event{Result: applier.ResultRefused, Impact: bundle.ImpactNone, Missing: []applier.Missing{{}}, Message: "x"}, "HOST: x\n  fix: apply again, with --payload if these are executables\n"},
		{applier.Event{Result: applier.ResultRefused, Message: "the manifest is a preview"}, "HOST: the manifest is a preview\n"},
	} {
		var stderr bytes.Buffer
		target := remote.Target{User: "u", Address: "h:22"}
		f.printEnd(app{stderr: &stderr}, target, tt.event)
		if got := strings.Replace(stderr.String(), target.String(), "HOST", 1); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.event, got, tt.want)
		}
	}
}

func TestAnApplicationThatWasCutIsTold(t *testing.T) {
	var stdout bytes.Buffer
	digest := bundle.Digest("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	m := &member{target: remote.Target{User: "u", Address: "h:22"}}
	printObservation(app{stdout: &stdout}, palette{}, m, applier.Observation{Interrupted: digest})
	if want := "\n  an application of bundle " + digest.Short() + " was cut or is under way: apply again\n"; !strings.Contains(stdout.String(), want) {
		t.Errorf("want %q, got %q", want, &stdout)
	}
}

func TestAttemptsToConfirmDifferByMoreThanTheirPorts(t *testing.T) {
	attempt := func(port int, why string) error {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		return &remote.UnreachableError{Phase: remote.PhaseDial, Err: &net.OpError{Op: "read", Net: "tcp", Source: from, Err: errors.New(why)}}
	}
	if a, b := attempt(1, "refused"), attempt(2, "refused"); kindOf(a) != kindOf(b) {
		t.Errorf("%q and %q are two", a, b)
	}
	if a, b := attempt(1, "refused"), attempt(1, "no route"); kindOf(a) == kindOf(b) {
		t.Errorf("%q and %q are one", a, b)
	}
}
