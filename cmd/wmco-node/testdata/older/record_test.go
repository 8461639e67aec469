package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

// This file is copied to the worktree of an older commit, and compiled and run there: see ../../older_linux_test.go.

// TestRecord writes what an operator and an agent of this commit write.
func TestRecord(t *testing.T) {
	out := os.Getenv("OLDER_OUT")
	if out == "" {
		t.Skip("not asked for")
	}
	keep := func(name string, data []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(out, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n := bundletest.New()
	b := n.Bundle(t)
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Encode()
	keep("manifest.json", text, err)

	c, err := published.Pack(b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	own, err := published.Pack(b.Node)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := published.Desired{Bundle: m.Digest, MaxImpact: bundle.ImpactRestart, Namespace: "openshift-windows-machine-config-operator", Cluster: c.Layer, Node: own.Layer}.Encode()
	keep("desired.json", []byte(desired), err)
	for _, state := range published.States() {
		r := published.Report{Program: "older", State: state, Desired: m.Digest, Layers: []bundle.Digest{c.Layer.Digest, own.Layer.Digest}, Message: "what happened", Retry: "again", Repaired: 3}
		switch state {
		case published.StateApplied:
			r.Applied = m.Digest
		case published.StateNeedsPermission:
			r.Impact = bundle.ImpactReboot
		case published.StatePayloadMissing:
			r.Missing = []string{`C:\k\kubelet.exe`}
		case published.StateRebootPending:
			r.RebootPending = []bundle.EntryID{"feature Containers"}
		}
		report, err := r.Encode()
		keep("report-"+string(state)+".json", []byte(report), err)
	}

	// What an agent writes on its host: when it is done, and in each phase.
	host := newSimulated(t, program(t))
	state := filepath.Join(host.root, "C", "ProgramData", "wmco")
	apply := func(n bundletest.Node) {
		if r := host.run(t, n.Archive(t, host.missing(t, n)), "apply"); r.status != 0 {
			t.Fatal(r.stdout, r.stderr)
		}
	}
	apply(n)
	data, err := os.ReadFile(filepath.Join(state, "ledger.json"))
	keep("ledger.json", data, err)
	other := n.Changed(func(n *bundletest.Node) { n.Files[`C:\k\kubelet.conf`], n.CAs = "another", []string{"third CA"} })
	if r := host.run(t, other.Archive(t, host.missing(t, other)), "stage"); r.status == 0 {
		data, err := os.ReadFile(filepath.Join(state, "staged.json"))
		keep("staged.json", data, err)
	}
	phases := map[string]bool{}
	for i := 0; i < 40 && len(phases) < 4; i++ {
		next := []bundletest.Node{other, n}[i%2]
		args := []string{"apply"}
		if i%4 > 1 {
			args = append(args, "--confirm-within=1s") // it waits for a confirmation that does not come
		}
		cmd := host.command(t, next.Archive(t, host.missing(t, next)), args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		for running := true; running; {
			select {
			case <-ended:
				running = false
			default:
			}
			if data, err := os.ReadFile(filepath.Join(state, "journal.json")); err == nil {
				if phase := phaseOf(string(data)); phase != "" && !phases[phase] {
					phases[phase] = true
					keep("journal-"+phase+".json", data, nil)
				}
			}
		}
	}
	if len(phases) < 4 {
		t.Fatal(phases)
	}
}

func phaseOf(journal string) string {
	for _, p := range []records.Phase{records.PhaseApplying, records.PhaseReboot, records.PhaseConfirming, records.PhaseRecording, records.PhaseRollback} {
		if strings.Contains(journal, `"phase":"`+string(p)+`"`) || strings.Contains(journal, `"phase": "`+string(p)+`"`) {
			return strings.ReplaceAll(string(p), " ", "-")
		}
	}
	return ""
}

// TestRead reads what a newer operator publishes, as the agent of this commit does, and prints what it makes of each.
func TestRead(t *testing.T) {
	in := os.Getenv("OLDER_IN")
	if in == "" {
		t.Skip("not asked for")
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(in, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	verdict := func(name string, err error) {
		var newer *bundle.SchemaError
		switch {
		case err == nil:
			t.Logf("VERDICT %s understood", name)
		case errors.As(err, &newer):
			t.Logf("VERDICT %s refused as newer: %v", name, err)
		default:
			t.Logf("VERDICT %s refused: %v", name, err)
		}
	}
	d, err := published.DecodeDesired(string(read("desired.json")))
	verdict("desired", err)
	if err == nil {
		for name, l := range map[string]published.Layer{"cluster": d.Cluster, "node": d.Node} {
			var parts [][]byte
			for i := range l.Parts {
				parts = append(parts, read(name+"-"+string(rune('0'+i))))
			}
			_, err := l.Open(parts)
			verdict(name, err)
		}
	}
	_, err = bundle.DecodeManifest(read("manifest.json"))
	verdict("manifest", err)
	_, err = published.DecodeDesired(string(read("desired-next.json")))
	verdict("desired of the next schema", err)
	_, err = bundle.DecodeManifest(read("manifest-next.json"))
	verdict("manifest of the next schema", err)
}
