package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/gather"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
)

// liveHost is a node of an operator, which has what that has published for it, behind an SSH server.
type liveHost struct {
	*overSSH
	cluster *liveCluster
}

func newLiveHost(t *testing.T) *liveHost {
	t.Helper()
	o := newOverSSH(t, 1)
	o.authorize()
	file, err := os.Open(filepath.Join(o.folder, "win-0.json"))
	must(t, err)
	defer file.Close()
	facts, err := bundle.DecodeFacts(file)
	must(t, err)
	h := &liveHost{overSSH: o, cluster: newLiveCluster(t, facts[0])}
	h.operate(t)
	return h
}

// operate gives the host its published bundle, as its agent would.
func (h *liveHost) operate(t *testing.T) {
	t.Helper()
	contents, err := desired.PayloadContents(goldenPayload)
	must(t, err)
	request, err := h.cluster.published.ArchiveRequest(contents)
	must(t, err)
	var sent bytes.Buffer
	must(t, archive.Send(t.Context(), &sent, request))
	cmd := exec.CommandContext(t.Context(), h.node, "--root", h.servers[0].Root, "apply")
	cmd.Stdin = &sent
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// wmco runs a command line for the host.
func (h *liveHost) wmco(t *testing.T, args ...string) answer {
	t.Helper()
	s := h.servers[0]
	return h.cluster.wmco(t, append(args, "--identity", s.KeyFile, "--known-hosts", filepath.Join(h.folder, "known_hosts"), "--node-program", h.node, "--host", s.User+"@"+s.Address)...)
}

func (h *liveHost) keys(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(h.servers[0].Path(bundle.SigningKeysFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// agent is the command of the service of the node agent.
func (h *liveHost) agent(t *testing.T) string {
	t.Helper()
	b := h.cluster.published.Bundle.Bundle
	i := slices.IndexFunc(b.Services(), func(s bundle.Service) bool { return s.Name == bundle.AgentService })
	return b.Services()[i].Argv[0]
}

// TestAHealthyNodeOfTheOperatorIsInSync: the three commands say the same as the operator, and change nothing.
func TestAHealthyNodeOfTheOperatorIsInSync(t *testing.T) {
	h := newLiveHost(t)
	for _, payload := range [][]string{nil, {"--payload", goldenPayload}} {
		for _, command := range [][]string{{"verify", "--install"}, {"diff", "--install"}, {"apply", "--dry-run"}, {"apply"}, {"verify"}} {
			args := slices.Concat(command, []string{"--from", "cluster"}, payload)
			got := h.wmco(t, args...)
			if got.status != cli.ExitDone || strings.Contains(got.stdout, "remove ") || strings.Contains(got.stderr, "Unknown") {
				t.Errorf("%v: status %d\n%s%s", args, got.status, got.stdout, got.stderr)
			}
			if command[0] != "apply" && !strings.Contains(got.stdout, h.servers[0].Address+"  win-0  has its desired state") {
				t.Errorf("%v:\n%s", args, got.stdout)
			}
			if h.keys(t) != string(h.cluster.publicKeys) || !exists(h.servers[0].Path(h.agent(t))) {
				t.Errorf("%v: keys %q", args, h.keys(t))
			}
		}
	}
}

// TestWhatTheInputsDoNotKnowIsNotRemoved: files know neither the keys of the operator nor its executables.
func TestWhatTheInputsDoNotKnowIsNotRemoved(t *testing.T) {
	h := newLiveHost(t)
	files := []string{"--from", h.cluster.files}
	for _, c := range []struct {
		name   string
		args   []string
		change func()
		status int
		// output is a part of the output.
		output string
	}{
		{"verify lists what apply refuses", slices.Concat([]string{"verify", "--install", "--payload", goldenPayload}, files), nil, cli.ExitDiffers, "note: apply refuses this: the bundle has no signing keys"},
		{"diff too", slices.Concat([]string{"diff", "--payload", goldenPayload}, files), nil, cli.ExitDiffers, "note: apply refuses this: the bundle has no signing keys"},
		{"apply refuses it", slices.Concat([]string{"apply", "--payload", goldenPayload}, files), nil, cli.ExitUsage, "or allow the removal with --remove-signing-keys"},
		{"so does a dry run", slices.Concat([]string{"apply", "--dry-run", "--payload", goldenPayload}, files), nil, cli.ExitUsage, "or allow the removal with --remove-signing-keys"},
		{"without a payload, the agent is not set to a program that is not there", slices.Concat([]string{"apply", "--remove-signing-keys"}, files),
			func() { must(t, os.Remove(h.servers[0].Path(`C:\k\agent\wmco-node.exe`))) }, cli.ExitUsage, `would run C:\k\agent\wmco-node.exe, which is neither on the host nor in the bundle`},
		{"verify reports it", slices.Concat([]string{"verify"}, files), nil, cli.ExitDiffers, `would run C:\k\agent\wmco-node.exe, which is neither on the host nor in the bundle`},
		{"nor by a user who may not read what is published", []string{"apply", "--from", "cluster"},
			func() { h.cluster.api.Refuses = []string{"list secrets " + gather.OperatorNamespace} }, cli.ExitUsage, "ExecutablesUnknown"},
		{"nor where no operator has signed anything", []string{"apply", "--from", "cluster", "--payload", goldenPayload}, h.cluster.forgetKeys, cli.ExitUsage, "SigningKeysUnknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change()
			}
			got := h.wmco(t, c.args...)
			if all := got.stdout + got.stderr; got.status != c.status || !strings.Contains(all, c.output) {
				t.Errorf("status %d\n%s", got.status, all)
			}
			if h.keys(t) != string(h.cluster.publicKeys) || !exists(h.servers[0].Path(h.agent(t))) {
				t.Errorf("keys %q", h.keys(t))
			}
		})
	}
	if got := h.wmco(t, slices.Concat([]string{"apply", "--remove-signing-keys", "--payload", goldenPayload}, files)...); got.status != cli.ExitDone || h.keys(t) != "" {
		t.Errorf("asked for: status %d, keys %q\n%s%s", got.status, h.keys(t), got.stdout, got.stderr)
	}
}
