package ssh

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/internal/test/seed"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

func TestAHostInSyncCostsOneCommandAndAChangeTwo(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	m := agent(t, s)
	line := func(word string) string {
		return strings.ReplaceAll(fake.Path, `\`, `\\`) + " " + word + " " + ownfile.Flag + " " + fake.Sum
	}
	var want []string
	for _, step := range []struct {
		what    string
		version int
		result  protocol.Result
		starts  []string
	}{
		{"first contact uploads the agent", 1, protocol.ResultApplied, []string{line("observe"), simulated.SFTP, line("version"), line("observe"), line("apply")}},
		{"nothing differs", 1, protocol.ResultSame, []string{line("observe")}},
		{"one file differs", 2, protocol.ResultApplied, []string{line("observe"), line("apply")}},
		{"nothing differs again", 2, protocol.ResultSame, []string{line("observe")}},
		{"a new client, and nothing differs", 2, protocol.ResultSame, []string{line("observe")}},
		{"a new client, and one file differs", 3, protocol.ResultApplied, []string{line("observe"), line("apply")}},
	} {
		if strings.HasPrefix(step.what, "a new client") {
			m = agent(t, s)
		}
		r, err := m.Apply(t.Context(), small(t, 30, step.version), remote.ApplyOptions{}, quiet)
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
		t.Error("the agent is not on the host")
	}
}

func TestCommandsWorkInEveryShell(t *testing.T) {
	for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
		t.Run(string(shell), func(t *testing.T) {
			t.Parallel()
			s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Shell: shell, Environment: []string{"FAKE=chatters"}}})
			m := agent(t, s)
			for i, want := range []protocol.Result{protocol.ResultApplied, protocol.ResultSame, protocol.ResultApplied} {
				r, err := m.Apply(t.Context(), small(t, 30, i/2), remote.ApplyOptions{}, quiet)
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

func TestAPlanAboveTheMaximumImpactIsNotSent(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	d := dialer(t, s)
	l := small(t, 3, 1).Manifest.Layers[0].Layer
	l.Features = []bundle.Feature{{Name: "Containers", Impact: bundle.ImpactReboot}}
	for _, step := range []struct {
		to   remote.Request
		want protocol.Result
	}{{small(t, 3, 0), protocol.ResultApplied}, {request(t, l), protocol.ResultRefused}} {
		c := remote.NewClient(NewTransport(d), p, remote.DefaultLimits())
		r, err := c.AgentFor(at(s, s.Address)).Apply(t.Context(), step.to, remote.ApplyOptions{MaxImpact: bundle.ImpactRestart}, quiet)
		if err != nil || r.Result != step.want {
			t.Errorf("%q, %v", r.Result, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff([]string{"observe", "", "version", "observe", "apply --max-impact restart", "observe"}, words(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A greeting of the shell does not prevent the upload. Without it the run succeeds.
func TestAShellThatPrintsAGreeting(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Noise: "Welcome to win-1!\r\n"}})
	m := agent(t, s)
	_, err := m.Apply(t.Context(), small(t, 3, 0), remote.ApplyOptions{}, quiet)
	if !uploaded(t, s) {
		t.Errorf("the agent is not on the host: %v", err)
	}
	s.Settings(simulated.Settings{})
	mustApply(t, m, small(t, 3, 0))
}

func TestTheRealAgentAppliesUnderEveryShell(t *testing.T) {
	for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell, simulated.ShellSh} {
		s, p := realHost(t, sshtest.Options{Settings: simulated.Settings{Shell: shell}})
		c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
		defer c.Close()
		m := c.AgentFor(at(s, s.Address))
		for _, step := range []struct {
			what    string
			do      func()
			version int
			result  protocol.Result
			written int
		}{
			{"first contact", func() {}, 0, protocol.ResultApplied, 30},
			{"nothing differs", func() {}, 0, protocol.ResultSame, 0},
			{"one file differs", func() {}, 1, protocol.ResultApplied, 1},
			{"somebody edits a file", func() { write(t, s.Path(`C:\k\file-007`), "edited") }, 1, protocol.ResultApplied, 1},
			{"nothing differs again", func() {}, 1, protocol.ResultSame, 0},
		} {
			step.do()
			want := small(t, 30, step.version)
			r, err := m.Apply(t.Context(), want, remote.ApplyOptions{}, quiet)
			if err != nil || r.Result != step.result || r.Written != step.written {
				t.Fatalf("%s, %s: %q, %d written, %v", shell, step.what, r.Result, r.Written, err)
			}
			if list := differs(t, s, want); len(list) > 0 {
				t.Fatalf("%s, %s: differ: %v", shell, step.what, list)
			}
			o, err := m.Verify(t.Context(), want)
			if err != nil || !o.InSync {
				t.Fatalf("%s, %s: %+v, %v", shell, step.what, o, err)
			}
		}
		if r, err := m.Apply(t.Context(), small(t, 30, 2), remote.ApplyOptions{DryRun: true}, quiet); err != nil || r.Result != protocol.ResultPlanned {
			t.Errorf("dry run: %q, %v", r.Result, err)
		}
		if list := differs(t, s, small(t, 30, 1)); len(list) > 0 {
			t.Errorf("the dry run changed %v", list)
		}
	}
}

// PowerShell passes stdin on as text, so the agent gets text once that is known.
func TestUnderPowerShellTheAgentGetsLargeContentsAsText(t *testing.T) {
	s, p := realHost(t, sshtest.Options{Settings: simulated.Settings{Shell: simulated.ShellPowerShell, Noise: "\ufeff\r\n"}})
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	m := c.AgentFor(at(s, s.Address))
	want := large(t, 9<<20)
	if r, err := m.Apply(t.Context(), want, remote.ApplyOptions{}, quiet); err != nil || r.Result != protocol.ResultApplied {
		t.Fatalf("%q, %v", r.Result, err)
	}
	if list := differs(t, s, want); len(list) > 0 {
		t.Errorf("differ: %v", list)
	}
	if o, err := m.Verify(t.Context(), want); err != nil || !o.InSync {
		t.Errorf("%+v, %v", o, err)
	}
	// First the agent is absent, then it cannot read the archive; from then on it gets text.
	first := []string{"observe", "", "version", "observe"}
	if diff := cmp.Diff(append(first, "observe --text", "apply --text", "verify --text"), words(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfirmationOverAnotherConnection(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	m := c.AgentFor(at(s, s.Address))
	want := small(t, 3, 0)
	confirm := func(e protocol.Event) {
		if e.Event == protocol.EventConfirm {
			go func() {
				if err := m.Confirm(t.Context(), want.Manifest.Digest); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	if r, err := m.Apply(t.Context(), want, remote.ApplyOptions{ConfirmWithin: time.Minute}, confirm); err != nil || r.Result != protocol.ResultApplied {
		t.Errorf("confirmed: %q, %v", r.Result, err)
	}
	other := small(t, 3, 1)
	if r, err := m.Apply(t.Context(), other, remote.ApplyOptions{ConfirmWithin: time.Second}, quiet); err != nil || r.Result != protocol.ResultRolledBack {
		t.Errorf("not confirmed: %q, %v", r.Result, err)
	}
	if list := differs(t, s, want); len(list) > 0 {
		t.Errorf("not restored: %v", list)
	}
}

// The connection is cut at random bytes, in uploads, observations and archives.
func TestAHostConvergesWhereverTheConnectionIsCut(t *testing.T) {
	for _, way := range []struct {
		name  string
		shell simulated.Shell
		// versions are how many are applied with allCuts.
		versions int
		// each returns the client of a run: a new one, or one for all runs.
		each func(func() *remote.Client) func() *remote.Client
	}{
		{"cmd", simulated.ShellCmd, 12, func(c func() *remote.Client) func() *remote.Client { return c }},
		{"PowerShell", simulated.ShellPowerShell, 4, func(c func() *remote.Client) func() *remote.Client { return c }},
		{"one client for all runs", simulated.ShellCmd, 24, sync.OnceValue[*remote.Client]},
	} {
		t.Run(way.name, func(t *testing.T) {
			if !allCuts() {
				way.versions = 3
			}
			cutAgainAndAgain(t, way.shell, way.versions, way.each)
		})
	}
}

// cutAgainAndAgain applies one version after another over a line that breaks.
func cutAgainAndAgain(t *testing.T, shell simulated.Shell, versions int, each func(func() *remote.Client) func() *remote.Client) {
	s, p := realHost(t, sshtest.Options{Settings: simulated.Settings{Shell: shell}})
	line := sshtest.NewLine(t, s.Address, sshtest.LineOptions{})
	d := dialer(t, s)
	newClient := each(func() *remote.Client {
		c := remote.NewClient(NewTransport(d), p, remote.DefaultLimits())
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	random := seed.New(t)
	cuts := 0
	for version := range versions {
		want := small(t, 30, version)
		for range 3 {
			line.CutAfter(random.Int64N(20000) >> (version % 5)) // from a few bytes to more than a new connection takes
			if version == 0 {
				line.CutAfter(random.Int64N(p.Size + 20000))
			}
			_, err := newClient().AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{}, quiet)
			line.CutAfter(-1)
			if err != nil {
				cuts++
			}
			if err != nil && !remote.IsRetryable(err) && kind(err) != "program" {
				t.Errorf("version %d: %v", version, err)
			}
		}
		r, err := newClient().AgentFor(at(s, line.Address)).Apply(t.Context(), want, remote.ApplyOptions{Wait: time.Minute}, quiet)
		if err != nil || r.Result != protocol.ResultApplied && r.Result != protocol.ResultSame {
			t.Fatalf("version %d: %q, %v", version, r.Result, err)
		}
		if list := differs(t, s, want); len(list) > 0 {
			t.Fatalf("version %d: %v", version, list)
		}
	}
	if cuts == 0 {
		t.Error("nothing was cut")
	}
	t.Log(fmt.Sprint(cuts, " cuts, ", len(s.Starts()), " programs started"))
}
