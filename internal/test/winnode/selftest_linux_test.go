package winnode

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"wmco/applier/selftest"
	"wmco/bundle/preflight"
	"wmco/internal/test/winetest"
)

// selfTest runs the self-test of the shipped program.
func (m machine) selfTest(t *testing.T) selftest.Result {
	t.Helper()
	result := m.Start(t, winetest.Command{Path: exe, Args: []string{"selftest", "-o", "json"}}).Wait(t)
	var r selftest.Result
	if err := json.Unmarshal([]byte(result.Stdout), &r); err != nil {
		t.Fatalf("%v: %+v", err, result)
	}
	return r
}

// TestTheSelfTestUnderWine runs it twice, the first time until it is killed: the second run removes what the first has left, and leaves nothing.
func TestTheSelfTestUnderWine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := m.Start(t, winetest.Command{Path: exe, Args: []string{"selftest"}})
	eventually(t, "a service of the self-test is there", func() bool { return strings.Contains(first.Output(t), "services: ") })
	first.Kill(t)
	r := m.selfTest(t)
	for _, o := range r.Clauses {
		if o.Status == selftest.StatusFailed {
			t.Errorf("%s: %+v", o.Clause, o.Failures)
		}
		if o.Status == selftest.StatusSkipped && o.Why == "" {
			t.Errorf("%s is skipped without a reason", o.Clause)
		}
	}
	if r.System.StandIn != "Wine" || r.Passed < 70 || len(r.Removed) == 0 || len(r.Left) > 0 {
		t.Errorf("%d passed, %d skipped, removed %q, left %q, of %+v", r.Passed, r.Skipped, r.Removed, r.Left, r.System)
	}
	t.Logf("%d passed, %d skipped; the killed run had left %q", r.Passed, r.Skipped, r.Removed)
	if _, err := os.Stat(m.Path(selftest.Root)); err == nil {
		t.Errorf("%s is still there", selftest.Root)
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
