package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/bundletest"
	"wmco/layout"
)

// TestTheProgramRunsNothingButThePayload: the real program, with bundles that are complete and consistent, by each of its commands. This is
// what a user who may patch Nodes put into a node layer.
func TestTheProgramRunsNothingButThePayload(t *testing.T) {
	const powershell = `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`
	s := newSimulated(t, program(t))
	before := s.files(t)
	for name, service := range map[string]bundle.Service{
		"a foreign service": bundletest.Service("WinDefend", []string{`C:\k\kubelet.exe`}, nil),
		"a script":          bundletest.Service("kubelet", []string{`C:\k\kube-log-runner.exe`, `-log-file=C:\var\log\x.log`, powershell, "-File", `C:\k\x.conf`}, nil),
	} {
		n := bundletest.New().Changed(func(n *bundletest.Node) { n.Services = []bundle.Service{service} })
		for _, command := range [][]string{{"apply"}, {"apply", "--dry-run"}, {"observe"}, {"verify"}, {"stage"}} {
			r := s.run(t, n.Archive(t, n.Needs(t)), command...)
			if r.status != cli.ExitUsage || !strings.Contains(r.stderr+r.stdout, layout.ErrForeign.Error()) {
				t.Errorf("%s, %q: %d, %s%s", name, command, r.status, r.stdout, r.stderr)
			}
			if diff := cmp.Diff(before, s.files(t)); diff != "" {
				t.Errorf("%s, %q: the host changed (-before +after):\n%s", name, command, diff)
			}
		}
	}
}

// TestBundlesOfOlderVersionsArePermitted: this version goes on with what older ones applied. Only the HNS network is not of a release: the
// bundles of tests had one of their own.
func TestBundlesOfOlderVersionsArePermitted(t *testing.T) {
	for _, commit := range older {
		data, err := os.ReadFile(filepath.Join(olderData(commit), "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := bundle.DecodeManifest(data)
		if err != nil {
			t.Fatal(err)
		}
		cluster, node := m.Layers[0].Layer, m.Layers[1].Layer
		if len(cluster.Networks) != 1 || cluster.Networks[0].Name != "TestOverlay" {
			t.Errorf("%s: %+v", commit[:8], cluster.Networks)
		}
		cluster.Networks[0].Name = layout.OverlayNetwork
		if err := layout.Check(bundle.Bundle{Cluster: cluster, Node: node}); err != nil {
			t.Errorf("%s: %v", commit[:8], err)
		}
	}
}
