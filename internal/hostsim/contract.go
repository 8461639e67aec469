package hostsim

import (
	"testing"

	"wmco/applier/selftest"
)

// Maker returns the fixture of one clause of the contract: a new host, or one on which Folder is empty and the services
// and settings of earlier clauses are gone. It leaves cleaning up to t.Cleanup.
type Maker func(t *testing.T) selftest.Fixture

// Contract tests everything that applier.Host promises, each clause on a fixture of maker. skips has the reasons for
// which clauses are skipped, by their names. An unknown name and an empty reason fail.
func Contract(t *testing.T, maker Maker, skips map[string]string) {
	t.Helper()
	unknown := map[string]bool{}
	for name := range skips {
		unknown[name] = true
	}
	for _, part := range selftest.Parts() {
		t.Run(part.Name, func(t *testing.T) {
			for _, c := range part.Clauses {
				delete(unknown, c.Name)
				reason, skip := skips[c.Name]
				t.Run(c.Name, func(t *testing.T) {
					if skip {
						skipFor(t, reason)
					}
					c.Test(t, maker(t))
				})
			}
		})
	}
	for name := range unknown {
		t.Errorf("no clause of the contract has the name %q, which is to be skipped", name)
	}
}

func skipFor(t *testing.T, reason string) {
	t.Helper()
	if reason == "" {
		t.Fatal("skipped without a reason")
	}
	t.Skip(reason)
}
