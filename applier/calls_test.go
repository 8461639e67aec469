package applier_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// allCalls reports whether every call of a command goes wrong once, and not some of them: WMCO_ALL_CALLS is set.
func allCalls() bool { return os.Getenv("WMCO_ALL_CALLS") != "" }

// sampledCalls is the number of calls of a command that go wrong otherwise.
const sampledCalls = 12

// command is what the agent does on a host.
type command struct {
	name  string
	start *machine
	do    func(*testing.T, *applier.Engine) (applier.Outcome, error)
	// done is whether the command did all that it should.
	done func(*testing.T, *machine) bool
}

// commands are all that the agent does. Each host has things that are not managed.
func commands(t *testing.T) []command {
	t.Helper()
	n := newNode()
	next := n.Changed(func(n *node) {
		changes[len(changes)-1].change(n)
		n.Secrets = map[string]string{`C:\k\bootstrap-kubeconfig`: "token: sesame-next\n"}
	})
	empty := newMachine()
	empty.edit(func(s *simulation.State) {
		s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "THEIRS", Value: "theirs", Present: true})
	})
	theirs := plan.ServiceConfig{Name: "Spooler", Start: bundle.StartAuto, CommandLine: `C:\Windows\spoolsv.exe`}
	empty.Place(`C:\Windows\spoolsv.exe`, bundle.AccessUsers, "theirs")
	empty.Place(`C:\k\theirs.txt`, bundle.AccessUsers, "theirs")
	if err := errors.Join(empty.PutService(t.Context(), theirs), empty.StartService(t.Context(), "Spooler")); err != nil {
		t.Fatal(err)
	}
	applied := empty.copy()
	applied.mustApply(t, n)
	drifted := applied.copy()
	drifted.Discard(`C:\k\kubelet.conf`)
	drifted.Place(`C:\k\containerd\containerd_conf.toml`, bundle.AccessUsers, "drift")
	interrupted := applied.interrupted(t, next)
	apply := func(n node) func(*testing.T, *applier.Engine) (applier.Outcome, error) {
		return func(t *testing.T, e *applier.Engine) (applier.Outcome, error) {
			seen, err := e.Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), false)
			if err != nil {
				return applier.Outcome{}, err
			}
			return e.Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), applier.Options{})
		}
	}
	inSync := func(n node) func(*testing.T, *machine) bool {
		return func(t *testing.T, m *machine) bool { return m.observe(t, n).InSync }
	}
	repair := func(t *testing.T, e *applier.Engine) (applier.Outcome, error) {
		return e.Repair(t.Context(), applier.Options{})
	}
	always := func(*testing.T, *machine) bool { return true }
	return []command{
		{"the first application", empty, apply(n), inSync(n)},
		{"an application over another", applied, apply(next), inSync(next)},
		{"an application over an interrupted one", interrupted, apply(next), inSync(next)},
		{"a repair", drifted, repair, inSync(n)},
		{"a repair of an interrupted application", interrupted, repair, always},
		{"a cleanup", applied, func(t *testing.T, e *applier.Engine) (applier.Outcome, error) {
			return e.Cleanup(t.Context(), applier.Options{})
		}, func(_ *testing.T, m *machine) bool { return m.secrets() == "" }},
		{"a verification", applied, func(t *testing.T, e *applier.Engine) (applier.Outcome, error) {
			_, err := e.Verify(t.Context(), n.Manifest(t), reader(t, n, nil).Contents())
			return applier.Outcome{}, err
		}, always},
		{"housekeeping", applied, func(t *testing.T, e *applier.Engine) (applier.Outcome, error) {
			return applier.Outcome{}, e.LimitGrowth(t.Context())
		}, always},
	}
}

// TestEveryCallOfEveryCommandMayGoWrong lets each call of each command fail, and kills the process before and after it.
// Whatever happens, the result is true, unmanaged entries stay, the next run does all, and a cleanup leaves no secret.
func TestEveryCallOfEveryCommandMayGoWrong(t *testing.T) {
	t.Parallel()
	for _, c := range commands(t) {
		calls := c.calls(t)
		stride := max(1, calls/sampledCalls)
		if allCalls() {
			stride = 1
		}
		for _, fault := range []hostsim.CallFault{hostsim.CallFails, hostsim.CallKills, hostsim.CallKillsAfter} {
			t.Run(fmt.Sprintf("%s, a call %s", c.name, fault), func(t *testing.T) {
				t.Parallel()
				for at := 0; at < calls; at += stride {
					c.goesWrong(t, fault, at)
				}
			})
		}
	}
}

// calls is the number of calls of the command.
func (c command) calls(t *testing.T) int {
	t.Helper()
	m := c.start.copy()
	host := &hostsim.Calls{Host: m.Memory, At: -1}
	e := m.engine()
	e.Host = host
	if o, err := c.do(t, e); err != nil || !c.done(t, m) {
		t.Fatalf("%s: %v, %+v", c.name, err, o.Event)
	}
	return host.Count()
}

// goesWrong does the command while one call goes wrong.
func (c command) goesWrong(t *testing.T, fault hostsim.CallFault, at int) {
	t.Helper()
	m := c.start.copy()
	host := &hostsim.Calls{Host: m.Memory, Fault: fault, At: at}
	e := m.engine()
	e.Host = host
	o, err := c.do(t, e)
	m.Revive()
	if o.Result == protocol.ResultRefused {
		t.Errorf("call %d: a fault of the host is refused: %v", at, err)
	}
	if err == nil && !host.Dead() && !c.done(t, m) {
		t.Errorf("call %d: no error, and it is not done: %+v", at, o.Event)
	}
	if text := fmt.Sprintf("%v %+v", err, m.events); strings.Contains(text, "sesame") {
		t.Errorf("call %d: a secret is told: %s", at, text)
	}
	m.theirs(t, at)
	n := newNode()
	if o, err := m.apply(t, n, applier.Options{}); err != nil {
		t.Errorf("call %d: the next run: %v, %+v", at, err, o.Event)
	}
	if o := m.observe(t, n); !o.InSync || o.Interrupted != "" || len(o.Notes) > 0 {
		t.Errorf("call %d: after the next run: %+v", at, o)
	}
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Errorf("call %d: the cleanup: %v", at, err)
	}
	if left := m.secrets(); left != "" {
		t.Errorf("call %d: secrets are left in %s", at, left)
	}
	m.theirs(t, at)
}

// theirs checks that unmanaged entries are as they were.
func (m *machine) theirs(t *testing.T, at int) {
	t.Helper()
	s := m.Snapshot()
	file, _ := m.Contents(`C:\k\theirs.txt`)
	if file != "theirs" || s.Services["spooler"].Status != plan.ServiceRunning || s.Settings["variable theirs"].Value != "theirs" {
		t.Errorf("call %d: what is not managed has changed", at)
	}
}

// secrets are the paths of files in which a secret is, and the settings.
func (m *machine) secrets() string {
	var found []string
	s := m.Snapshot()
	for path := range s.Files {
		if data, _ := m.Contents(path); strings.Contains(data, "sesame") {
			found = append(found, path)
		}
	}
	for name, x := range s.Settings {
		if strings.Contains(x.Value, "sesame") {
			found = append(found, name)
		}
	}
	for name, x := range s.Services {
		if strings.Contains(strings.Join(x.Environment, " "), "sesame") {
			found = append(found, name)
		}
	}
	return strings.Join(found, ", ")
}
