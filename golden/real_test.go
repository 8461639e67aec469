//go:build unix

package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/folderhost"
)

// simulated returns the result of the self-test on a simulated host.
func simulated(t *testing.T) result.Result {
	t.Helper()
	root := t.TempDir()
	clock := hostsim.NewClock(hostsim.Epoch())
	host, err := folderhost.Create(root, folderhost.Options{Facts: hostsim.Facts(), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	machine := folderhost.NewMachine(root, folderhost.Options{Now: clock.Now})
	r, err := selftest.Run(t.Context(), machine, selftest.Options{Now: time.Now, Tell: func(result.Outcome) {}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRealResultsAgreeWithTheSimulation compares the results of real Windows (golden/real) with the simulated host.
func TestRealResultsAgreeWithTheSimulation(t *testing.T) {
	t.Parallel()
	fake := simulated(t)
	files, err := filepath.Glob(filepath.Join("real", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var r result.Result
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if r.System.StandIn != "" {
			t.Errorf("%s: is a result of %s, not of Windows", path, r.System.StandIn)
		}
		if want := r.System.OSBuild + ".json"; filepath.Base(path) != want {
			t.Errorf("%s: its build has the name %s", path, want)
		}
		for _, d := range selftest.Compare(r, fake) {
			t.Errorf("%s: %s", path, d)
		}
	}
	// The comparison can fail: a made-up Windows does two things that the simulation does not.
	madeUp := fake
	madeUp.Clauses = slices.Clone(fake.Clauses)
	passed := slices.IndexFunc(madeUp.Clauses, func(o result.Outcome) bool { return o.Status == result.StatusPassed })
	madeUp.Clauses[passed].Status = result.StatusFailed
	madeUp.Clauses[passed].Failures = []result.Failure{{Expected: "one", Seen: "two", Code: 5}}
	madeUp.Clauses = append(madeUp.Clauses, result.Outcome{Clause: "a clause of later", Status: result.StatusPassed})
	if got := selftest.Compare(madeUp, fake); len(got) != 2 || got[0].Clause != madeUp.Clauses[passed].Clause || got[1].Clause != "a clause of later" {
		t.Errorf("the made-up result has the differences %v", got)
	}
	if got := selftest.Compare(fake, fake); len(got) > 0 {
		t.Errorf("the simulation differs from itself: %v", got)
	}
}
