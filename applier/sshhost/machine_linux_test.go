package sshhost

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/internal/sshtest"
	"wmco/internal/sshtest/simulated"
)

// One program tells that nothing differs, and a second one changes it; those who come again and again have one for all.
func TestFewProgramsAreStarted(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	m := machine(t, s)
	line := func(word string) string {
		l, err := commandLine(fake.Path, []string{word})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	var want []string
	for _, step := range []struct {
		what    string
		version int
		result  applier.Result
		starts  []string
	}{
		{"first contact puts the program there", 1, applier.ResultApplied, []string{line("observe"), simulated.SFTP, line("version"), line("observe"), line("apply")}},
		{"nothing differs", 1, applier.ResultSame, []string{line("serve")}},
		{"one file differs", 2, applier.ResultApplied, nil},
		{"and is right again", 2, applier.ResultSame, nil},
		{"somebody else comes, and nothing differs", 2, applier.ResultSame, []string{line("observe")}},
		{"and then one file does", 3, applier.ResultApplied, []string{line("apply")}},
		{"and another", 4, applier.ResultApplied, []string{line("serve")}},
	} {
		if strings.HasPrefix(step.what, "somebody else") {
			m = machine(t, s)
		}
		r, err := m.Apply(t.Context(), small(t, 30, step.version), ApplyOptions{}, quiet)
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if r.Result != step.result {
			t.Errorf("%s: %q, want %q", step.what, r.Result, step.result)
		}
		want = append(want, step.starts...)
		if diff := cmp.Diff(want, s.Starts()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	if !uploaded(t, s) {
		t.Error("the program is not on the machine")
	}
}

// S5, S7
func TestTheSameCommandsWorkUnderEveryShell(t *testing.T) {
	for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
		t.Run(string(shell), func(t *testing.T) {
			t.Parallel()
			s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Shell: shell, Environment: []string{"FAKE=chatters"}}})
			m := machine(t, s)
			for i, want := range []applier.Result{applier.ResultApplied, applier.ResultSame, applier.ResultApplied} {
				r, err := m.Apply(t.Context(), small(t, 30, i/2), ApplyOptions{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				if r.Result != want {
					t.Errorf("run %d: %q, want %q", i, r.Result, want)
				}
			}
			facts, err := m.Facts(t.Context())
			if err != nil || facts.HostName != "simulated" {
				t.Errorf("%v, %v", facts, err)
			}
			if err := m.Confirm(t.Context(), small(t, 30, 1).Manifest.Digest); err != nil {
				t.Error(err)
			}
		})
	}
}
