package remote

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/bundle"
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

// What costs more than is allowed is not sent.
func TestWhatCostsTooMuchStaysHere(t *testing.T) {
	s, p := realMachine(t, sshtest.Options{})
	d := dialer(t, s)
	l := small(t, 3, 1).Manifest.Layers[0].Layer
	l.Features = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactReboot}}
	for _, step := range []struct {
		to   Request
		want applier.Result
	}{{small(t, 3, 0), applier.ResultApplied}, {request(t, l), applier.ResultRefused}} {
		c := NewClient(d, p)
		r, err := c.Machine(at(s, s.Address)).Apply(t.Context(), step.to, ApplyOptions{MaxImpact: bundle.ImpactRestart}, quiet)
		if err != nil || r.Result != step.want {
			t.Errorf("%q, %v", r.Result, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"observe", "", "version", "observe", "apply --max-impact restart", "observe"}, words(s, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A shell that greets says so even where there is no program yet; the program gets there, and then the greeting is told.
func TestAShellThatGreets(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Noise: "Welcome to win-1!\r\n"}})
	m := machine(t, s)
	_, err := m.Apply(t.Context(), small(t, 3, 0), ApplyOptions{}, quiet)
	if !uploaded(t, s) {
		t.Errorf("the program is not on the machine: %v", err)
	}
	s.Settings(simulated.Settings{})
	mustApply(t, m, small(t, 3, 0))
}
