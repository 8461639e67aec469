//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/nodecli"
	"wmco/layout"
)

// selftested runs the command on a new simulated host, which prepare changes first.
func selftested(t *testing.T, prepare func(*folderhost.Host), args ...string) (status int, stdout, stderr string) {
	t.Helper()
	root := t.TempDir()
	var out, failed bytes.Buffer
	p := nodecli.Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &failed, Clock: clock{}, Version: "test"}
	if status := nodecli.Execute(t.Context(), newRoot(p), []string{"--root", root, "machine", "create"}); status != cli.ExitDone {
		t.Fatal(failed.String())
	}
	host, err := (&folder{root: root}).openFolder()
	if err != nil {
		t.Fatal(err)
	}
	prepare(host)
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	return nodecli.Execute(t.Context(), newRoot(p), append([]string{"--root", root, "selftest"}, args...)), out.String(), failed.String()
}

func TestSelfTestPrintsALineForEachClauseAndOneResult(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := selftested(t, func(*folderhost.Host) {}, "-o", "json")
	if status != cli.ExitDone {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var r result.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Failed != 0 || r.Passed == 0 || r.System.StandIn == "" || r.Program != "test" {
		t.Errorf("got %+v", r)
	}
	if lines := strings.Count(stderr, "\n"); lines != len(r.Clauses)+1 {
		t.Errorf("%d lines for %d clauses", lines, len(r.Clauses))
	}
}

func TestSelfTestRefusesANode(t *testing.T) {
	t.Parallel()
	node := func(h *folderhost.Host) {
		if err := h.PutService(t.Context(), plan.ServiceConfig{Name: layout.Kubelet, Start: bundle.StartAuto, CommandLine: `C:\k\kubelet.exe`}); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, stderr := selftested(t, node)
	if status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "service kubelet") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

func TestSelfTestSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	broken := func(h *folderhost.Host) {
		// The clauses write this file first of all.
		if err := h.Edit(t.Context(), func(s *simulation.State) { s.Script.Full = []string{selftest.Root + `\work\file`} }); err != nil {
			t.Fatal(err)
		}
	}
	status, stdout, stderr := selftested(t, broken, "-o", "json")
	var r result.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if status != cli.ExitDiffers || r.Failed == 0 {
		t.Errorf("status %d, %d failed: %s", status, r.Failed, stderr)
	}
}
