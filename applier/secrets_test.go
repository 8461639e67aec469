package applier_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim/simulation"
)

// secretSums are the plain digests of the node's secrets: with one of them a password can be guessed.
func secretSums(n node) []string {
	texts := []string{n.SecretProxy}
	for _, text := range n.Secrets {
		texts = append(texts, text)
	}
	var sums []string
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	return sums
}

// placesOf returns the files with a secret: as it is, compressed as the applier keeps contents, or with its digest as their name.
func (m *machine) placesOf(secret string) []string {
	var list []string
	stored, sum := string(archive.Compress([]byte(secret))), plan.ContentOf([]byte(secret)).SHA256
	for path := range m.Snapshot().Files {
		data, _ := m.Contents(path)
		if strings.Contains(data, secret) || strings.Contains(data, stored) || strings.Contains(path, sum) {
			list = append(list, path)
		}
	}
	return list
}

// TestAReplacedSecretIsNowhereOnTheHost: neither in its file nor in what is kept for repairs and rollbacks, also if the run was interrupted at any step.
func TestAReplacedSecretIsNowhereOnTheHost(t *testing.T) {
	t.Parallel()
	const path, before = `C:\k\bootstrap-kubeconfig`, "auth: sesame-before\n"
	old := newNode().Changed(func(n *node) { n.Secrets[path] = before })
	next := old.Changed(func(n *node) { n.Secrets[path] = "auth: sesame-after\n" })
	start := newMachine()
	start.mustApply(t, old)
	if found := start.placesOf(before); len(found) < 2 {
		t.Fatalf("before: only in %q", found)
	}
	for step := 0; ; step++ {
		m := start.copy()
		m.CutAt(step)
		_, err := m.apply(t, next, applier.Options{})
		cut := m.Cut() // what is removed at last may fail, which is no error
		if !cut && err != nil {
			t.Fatal(err)
		}
		m.Revive()
		if cut {
			m.mustApply(t, next)
			m.clock.Pass(2 * time.Hour) // a content that no run needs may be part of an upload for an hour (abandonedAfter)
			m.mustApply(t, next)
		}
		if found := m.placesOf(before); len(found) > 0 {
			t.Errorf("cut at %d: still in %q", step, found)
		}
		if !cut {
			return
		}
	}
}

// tells fails the test if the error or an event of the last run tells a plain digest of a secret.
func tells(t *testing.T, what string, m *machine, n node, err error) {
	t.Helper()
	said, failed := json.Marshal(m.events)
	if failed != nil {
		t.Fatal(failed)
	}
	text := string(said)
	if err != nil {
		text += err.Error()
	}
	for _, sum := range secretSums(n) {
		if strings.Contains(strings.ToLower(text), sum) {
			t.Errorf("%s: %v\n%s", what, err, said)
		}
	}
}

// TestNoErrorTellsThePlainDigestOfASecret fails every operation on a stored content, in a first run, in one that replaces secrets, in a
// repair and in a cleanup.
func TestNoErrorTellsThePlainDigestOfASecret(t *testing.T) {
	t.Parallel()
	old := newNode()
	next := old.Changed(func(n *node) {
		n.SecretProxy = "http://user:sesame-next@proxy:3128"
		n.Secrets = map[string]string{`C:\k\bootstrap-kubeconfig`: "token: sesame-next\n"}
	})
	configured := newMachine()
	configured.mustApply(t, old)
	runs := map[string]struct {
		start *machine
		run   func(*machine) error
	}{
		"first run":     {newMachine(), func(m *machine) error { _, err := m.apply(t, old, applier.Options{}); return err }},
		"other secrets": {configured, func(m *machine) error { _, err := m.apply(t, next, applier.Options{}); return err }},
		"repair": {configured, func(m *machine) error {
			m.Place(`C:\k\bootstrap-kubeconfig`, bundle.AccessAdmins, "x")
			_, err := m.repair(t.Context())
			return err
		}},
		"secrets go": {configured, func(m *machine) error {
			_, err := m.apply(t, old.Changed(func(n *node) { n.Secrets, n.SecretProxy = nil, "" }), applier.Options{})
			return err
		}},
		"cleanup of a run": {configured, func(m *machine) error { _, err := m.engine().Cleanup(t.Context(), applier.Options{}); return err }},
	}
	for name, r := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures := 0
			for n := 0; n < 1000; n++ {
				m := r.start.copy()
				seen := 0
				m.Faults.Before = func(o simulation.Operation) error {
					if !strings.Contains(o.Target, plan.StateFolder) {
						return nil
					}
					if seen++; seen-1 != n {
						return nil
					}
					failures++
					return &applier.FileError{Path: o.Target, Reason: applier.FileDiskFull, Err: errors.New("writing " + o.Target + ": " + io.ErrShortWrite.Error())}
				}
				err := r.run(m)
				tells(t, name, m, old, err)
				tells(t, name, m, next, err)
				if seen <= n {
					break
				}
			}
			if failures < 3 {
				t.Errorf("only %d operations failed", failures)
			}
		})
	}
}
