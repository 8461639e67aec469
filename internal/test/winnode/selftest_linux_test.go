package winnode

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/internal/test/winetest"
	"wmco/preflight"
)

// selfTest runs the self-test of the shipped program.
func (m machine) selfTest(t *testing.T) result.Result {
	t.Helper()
	ended := m.Start(t, winetest.Command{Path: exe, Args: []string{"selftest", "-o", "json"}}).Wait(t)
	var r result.Result
	if err := json.Unmarshal([]byte(ended.Stdout), &r); err != nil {
		t.Fatalf("%v: %+v", err, ended)
	}
	return r
}

// changedBySelfTest is what a self-test could leave: files, services, variables, trusted roots, the computer's name and its own key.
func (m machine) changedBySelfTest(t *testing.T) map[string]string {
	t.Helper()
	// The registry first: Wine removes a folder whose removal was begun when the handles of a killed process are closed, a moment after its end.
	all := map[string]string{
		"services, variables, roots": m.settings(t),
		"name":                       m.registry(t, `HKLM\SYSTEM\CurrentControlSet\Control\ComputerName`, `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`),
		"own key":                    m.registry(t, `HKLM\`+selftest.RegistryKey),
	}
	maps.Copy(all, m.contents(t))
	return all
}

// killedAfter starts the self-test, which removes what was left before, and kills it when a line is printed and something of it is in the
// registry.
func (m machine) killedAfter(t *testing.T, line, something string) {
	t.Helper()
	run := m.Start(t, winetest.Command{Path: exe, Args: []string{"selftest"}})
	in := func() bool { return strings.Contains(run.Output(t), line) }
	has := func() bool {
		return something == "" || strings.Contains(m.registry(t, keyServices, keyVariables), something)
	}
	for deadline := time.Now().Add(5 * time.Minute); !in() || !has(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-run.Ended():
			t.Fatalf("the self-test ended before it was killed after %q: %s", line, run.Output(t))
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within five minutes: %s", line)
		}
	}
	run.Kill(t)
}

// TestTheSelfTestUnderWine kills it in one part after the other, each time in a run that has removed what the one before left. After the last
// run, which is not killed, files and registry are as they were before the first.
func TestTheSelfTestUnderWine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := m.changedBySelfTest(t)
	type place struct{ line, something string }
	places := []place{
		{"  writing: ", ""},
		{"  services: ", ""},
		// The next clause waits half a minute for a service that does not start.
		{"a service whose program exits at once does not start", selftest.ServiceA},
	}
	if os.Getenv("WMCO_PROCESS_KILLS") != "" {
		for _, part := range selftest.Parts() {
			places = append(places, place{"  " + part.Name + ": ", ""})
		}
		places = append(places, places[2])
	}
	for _, p := range places {
		m.killedAfter(t, p.line, p.something)
		t.Logf("killed after %q", p.line)
		left := m.changedBySelfTest(t)
		if cmp.Equal(before, left) || !strings.Contains(left["services, variables, roots"], p.something) {
			t.Errorf("the run that was killed after %q left nothing, so that nothing is tested", p.line)
		}
	}
	r := m.selfTest(t)
	for _, o := range r.Clauses {
		if o.Status == result.StatusFailed {
			t.Errorf("%s: %+v", o.Clause, o.Failures)
		}
		if o.Status == result.StatusSkipped && o.Why == "" {
			t.Errorf("%s is skipped without a reason", o.Clause)
		}
	}
	if r.System.StandIn != "Wine" || r.Passed < 70 || len(r.Removed) < 2 || len(r.Left) > 0 {
		t.Errorf("%d passed, %d skipped, removed %q, left %q, of %+v", r.Passed, r.Skipped, r.Removed, r.Left, r.System)
	}
	t.Logf("%d passed, %d skipped; the last killed run had left %q", r.Passed, r.Skipped, r.Removed)
	if diff := cmp.Diff(before, m.changedBySelfTest(t)); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// TestAPreflightOfWine: all parts of this host can be read.
func TestAPreflightOfWine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := m.wmco(t, nil, "preflight", "-o", "json")
	a, err := preflight.DecodeAnswer([]byte(r.Stdout))
	if err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if a.Facts.Build() != 20348 || a.Machine.FreeBytes <= 0 || a.Machine.Locale == "" || len(a.Machine.Ports) != len(preflight.Ports()) {
		t.Errorf("got %+v", a)
	}
	for _, unread := range a.Unread {
		// Wine has no code integrity.
		if !strings.HasPrefix(unread, "code integrity") {
			t.Errorf("not read: %s", unread)
		}
	}
	for _, port := range a.Machine.Ports {
		if port.State != preflight.PortFree {
			t.Errorf("port %d is %s", port.Number, port.State)
		}
	}
}
