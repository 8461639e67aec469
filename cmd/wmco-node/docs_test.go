//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/cli"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/nodecli"
)

// docFile is the page about the program for its callers.
var docFile = filepath.Join("..", "..", "docs", "node-program.md")

// fenced is a block of JSON in docFile, whose second word names it.
var fenced = regexp.MustCompile("(?s)```json (\\S+)\n(.*?)```\n")

// docHost is the host of docFile, and what was printed on it.
type docHost struct {
	root   string
	clock  *hostsim.Clock
	blocks map[string]string
}

// TestDocumentedExamples runs the examples of docs/node-program.md; -update rewrites them.
func TestDocumentedExamples(t *testing.T) {
	text, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	m := newDocHost(t)
	m.play(t)
	seen := map[string]string{}
	now := fenced.ReplaceAllStringFunc(string(text), func(block string) string {
		name := fenced.FindStringSubmatch(block)
		seen[name[1]] = name[2]
		return "```json " + name[1] + "\n" + m.blocks[name[1]] + "```\n"
	})
	if diff := cmp.Diff(m.blocks, seen); diff != "" {
		t.Errorf("examples (-printed +documented):\n%s", diff)
	}
	if t.Failed() && *update {
		if err := os.WriteFile(docFile, []byte(now), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}

// TestDocumentedExamplesDecode: strictly, as those who call the program could.
func TestDocumentedExamplesDecode(t *testing.T) {
	text, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]func() any{
		"facts":   func() any { return &bundle.Facts{} },
		"observe": func() any { return &protocol.Observation{} },
		"dry-run": func() any { return &protocol.Event{} },
		"apply":   func() any { return &protocol.Event{} },
		"refused": func() any { return &protocol.Event{} },
	}
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		decode := json.NewDecoder(strings.NewReader(block[2]))
		decode.DisallowUnknownFields()
		if block[1] == "manifest" {
			if _, err := bundle.DecodeManifest([]byte(block[2])); err != nil {
				t.Errorf("manifest: %v", err)
			}
			continue
		}
		for decode.More() {
			if err := decode.Decode(into[block[1]]()); err != nil {
				t.Errorf("%s: %v", block[1], err)
				break
			}
		}
	}
}

func TestEveryExitStatusIsDocumented(t *testing.T) {
	text, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{cli.ExitDone, cli.ExitDiffers, cli.ExitUsage, cli.ExitPartial, cli.ExitRolledBack, cli.ExitDamaged, cli.ExitInterrupted} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d |", status)) {
			t.Errorf("%s does not have exit status %d", docFile, status)
		}
	}
}

// TestEveryCommandIsDocumented: with all of its flags.
func TestEveryCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot(nodecli.Program{}).Commands() {
		if c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		if !strings.Contains(string(text), "`"+c.Name()) {
			t.Errorf("%s does not have %s", docFile, c.Name())
		}
	}
}

func newDocHost(t *testing.T) *docHost {
	t.Helper()
	m := &docHost{root: t.TempDir(), clock: hostsim.NewClock(hostsim.Epoch()), blocks: map[string]string{}}
	facts := bundle.Facts{
		Schema: bundle.FactsSchema, HostName: "win-a", Addresses: []string{"10.0.140.21"}, OSBuild: "10.0.20348",
		DefaultRoute: bundle.DefaultRoute{Address: "10.0.140.21", Gateway: "10.0.0.1"}, Features: []string{"Containers"},
	}
	host, err := folderhost.Create(m.root, folderhost.Options{Facts: facts, Now: m.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

// docBundle is a small bundle: a program, its configuration, the service.
func docBundle(configuration string) (bundle.Bundle, archive.Source, error) {
	const program = "MZ, and so on\n"
	file := func(path, text string) bundle.File {
		return bundle.File{
			Path: path, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: bundle.ImpactRestart,
			Content: bundle.Content{Data: []byte(text)},
		}
	}
	conf, exe := file(`C:\k\csi-proxy.conf`, configuration), file(`C:\k\csi-proxy.exe`, program)
	b := bundle.Bundle{
		Cluster: bundle.Layer{
			Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined,
			Directories: []bundle.Directory{{Path: `C:\k`, Access: bundle.AccessUsers}},
			Files:       []bundle.File{conf},
			Payload:     []bundle.Payload{{Path: exe.Path, Component: "csi-proxy", Version: "v1.0.0", Digest: exe.Digest, Size: exe.Size, Impact: bundle.ImpactRestart}},
			Services: []bundle.Service{{
				Name: "csi-proxy", Description: "OpenShift managed csi-proxy", Start: bundle.StartAuto, Argv: []string{exe.Path, "--config", conf.Path},
				Reads: []string{conf.Path, exe.Path}, Recovery: bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 300},
				Probe: bundle.Probe{Kind: bundle.ProbeTCP, Target: "127.0.0.1:9182", DeadlineSeconds: 60}, Impact: bundle.ImpactRestart,
			}},
		},
		Node: bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined},
	}
	source, err := archive.FromBundle(bundle.Bundle{Cluster: bundle.Layer{Files: []bundle.File{conf, exe}}})
	return b, source, err
}

// play runs the commands of the document, in its order.
func (m *docHost) play(t *testing.T) {
	t.Helper()
	first, sent := m.bundle(t, "level: 1\n")
	second, resent := m.bundle(t, "level: 2\n")
	m.blocks["manifest"] = string(first)
	m.blocks["facts"] = m.run(t, cli.ExitDone, nil, "facts")
	m.blocks["observe"] = m.run(t, cli.ExitDiffers, first, "observe")
	m.blocks["apply"] = m.run(t, cli.ExitDone, sent, "apply")
	m.blocks["dry-run"] = m.run(t, cli.ExitDone, resent, "apply", "--dry-run")
	m.blocks["refused"] = m.run(t, cli.ExitUsage, second, "apply")
}

// bundle is a bundle as its manifest, and as an archive with all contents.
func (m *docHost) bundle(t *testing.T, configuration string) (manifest, stream []byte) {
	t.Helper()
	b, source, err := docBundle(configuration)
	if err != nil {
		t.Fatal(err)
	}
	index, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.Encode(); err != nil {
		t.Fatal(err)
	}
	missing := map[bundle.Digest][]int{}
	for _, d := range archive.Needs(index) {
		missing[d] = nil
	}
	var out bytes.Buffer
	if err := archive.Send(t.Context(), &out, archive.Request{Manifest: index, Source: source, Missing: missing}); err != nil {
		t.Fatal(err)
	}
	return manifest, out.Bytes()
}

// run is one process, on the machine's own clock.
func (m *docHost) run(t *testing.T, want int, stdin []byte, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := nodecli.Program{Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: io.Discard, Clock: m.clock, Version: "v1.0.0"}
	if got := nodecli.Execute(t.Context(), newRoot(p), append([]string{"--root", m.root}, args...)); got != want {
		t.Errorf("%v: exit status %d, want %d", args, got, want)
	}
	return out.String()
}
