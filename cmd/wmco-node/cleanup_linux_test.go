package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"wmco/internal/cli"
	"wmco/internal/nodecli"
)

// TestTheServiceOfARemovalEnds where no removal is under way. The rest of it is tested with hosts in memory (applier/agent).
func TestTheServiceOfARemovalEnds(t *testing.T) {
	root := filepath.Join(t.TempDir(), "machine")
	var out, complaints bytes.Buffer
	p := nodecli.Program{Stdout: &out, Stderr: &complaints, Clock: clock{}}
	if status := nodecli.Execute(t.Context(), newRoot(p), []string{"--root", root, "machine", "create"}); status != 0 {
		t.Fatal(complaints.String())
	}
	for range 2 { // another process has ended it
		if status := nodecli.Execute(t.Context(), newRoot(p), []string{"--root", root, "cleanup", "--service"}); status != 0 {
			t.Fatalf("status %d: %s", status, complaints.String())
		}
	}
	if status := nodecli.Execute(t.Context(), newRoot(p), []string{"--root", root, "cleanup", "--service", "--log-dir", filepath.Join(root, "missing", "\x00")}); status != cli.ExitUsage {
		t.Errorf("without a folder for logs: status %d", status)
	}
}
