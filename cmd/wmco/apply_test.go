package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
)

func TestTheResultSaysWhetherAHostReboots(t *testing.T) {
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
		if got := f.resultText(protocol.Event{Result: protocol.ResultReboot}, nil); got != tt.want {
			t.Errorf("%+v: %s", tt.options, got)
		}
	}
}

func TestTheResultSaysThatABootIsPending(t *testing.T) {
	pending := []bundle.EntryID{"host-name computer"}
	for _, tt := range []struct {
		options remote.ApplyOptions
		event   protocol.Event
		want    string
	}{
		{remote.ApplyOptions{Reboot: true}, protocol.Event{Result: protocol.ResultSame}, "same"},
		{remote.ApplyOptions{}, protocol.Event{Result: protocol.ResultSame, RebootPending: pending}, "same, a reboot is pending"},
		{remote.ApplyOptions{Reboot: true}, protocol.Event{Result: protocol.ResultApplied, RebootPending: pending}, "applied, rebooting"},
		{remote.ApplyOptions{Reboot: true}, protocol.Event{Result: protocol.ResultRolledBack, RebootPending: pending}, "rolled back, a reboot is pending"},
		{remote.ApplyOptions{Reboot: true, DryRun: true}, protocol.Event{Result: protocol.ResultPlanned, RebootPending: pending}, "planned, a reboot is pending"},
	} {
		f := applyFlags{options: tt.options}
		if got := f.resultText(tt.event, nil); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.event, got, tt.want)
		}
	}
}

func TestTheFixDependsOnTheFieldsOfTheResult(t *testing.T) {
	f := applyFlags{options: remote.ApplyOptions{MaxImpact: bundle.ImpactRestart}}
	for _, tt := range []struct {
		event protocol.Event
		want  string
	}{
		{protocol.Event{Result: protocol.ResultApplied, Message: "x"}, ""},
		{protocol.Event{Result: protocol.ResultReboot}, ""},
		{protocol.Event{Result: protocol.ResultRolledBack, Message: "x"}, "HOST: x\n  fix: read the log of the service under C:\\var\\log on the host, fix the inputs and apply again\n"},
		{protocol.Event{Result: protocol.ResultRolledBack, Message: "x", DiskFull: true}, "HOST: x\n  fix: free space on drive C: of the host, for example from images that no container uses, and apply again\n"},
		{protocol.Event{Result: protocol.ResultPartial}, "HOST: partial\n  fix: apply again; if another run is in progress on the host, wait for its end or give a longer --wait\n"},
		{protocol.Event{Result: protocol.ResultRefused, Impact: bundle.ImpactDrain, Message: "x"}, "HOST: x\n  fix: allow it with --max-impact drain\n"},
		{protocol.Event{Result: protocol.ResultRefused, Impact: bundle.ImpactNone, Missing: []protocol.Missing{{}}, Message: "x"}, "HOST: x\n  fix: apply again, with --payload if these are executables\n"},
		{protocol.Event{Result: protocol.ResultRefused, Message: "the manifest is a preview"}, "HOST: the manifest is a preview\n"},
	} {
		var stderr bytes.Buffer
		target := remote.Target{User: "u", Address: "h:22"}
		f.printEnd(app{stderr: &stderr}, target, tt.event)
		if got := strings.Replace(stderr.String(), target.String(), "HOST", 1); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.event, got, tt.want)
		}
	}
}

func TestAnInterruptedRunIsShown(t *testing.T) {
	var stdout bytes.Buffer
	digest := bundle.Digest("sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
	h := &host{target: remote.Target{User: "u", Address: "h:22"}}
	printObservation(app{stdout: &stdout}, palette{}, h, protocol.Observation{Interrupted: digest})
	if want := "\n  a run for bundle " + digest.Short() + " was interrupted or is in progress: apply again\n"; !strings.Contains(stdout.String(), want) {
		t.Errorf("want %q, got %q", want, &stdout)
	}
}

// TestAClockThatDiffersIsShown: events have the time of the host's clock.
func TestAClockThatDiffersIsShown(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		on   time.Time
		want string
	}{
		"behind":  {now.Add(-time.Hour), "u@h: ClockSkew: the clock is 1h0m behind; fix: check the time service of the host, such as with w32tm /query /status\n"},
		"ahead":   {now.Add(90 * time.Minute), "u@h: ClockSkew: the clock is 1h30m ahead; fix: check the time service of the host, such as with w32tm /query /status\n"},
		"agrees":  {now.Add(time.Minute), ""},
		"no time": {time.Time{}, ""},
	} {
		var stderr bytes.Buffer
		noteClock(&progress{lines: &stderr}, remote.Target{User: "u", Address: "h:22"}, tt.on, now)
		if got := stderr.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
