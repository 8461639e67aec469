package page

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/controller/rollout/plan"
	"wmco/internal/build/screens"
	"wmco/internal/golden"
	"wmco/render/review"
	"wmco/report/fleet"
	"wmco/report/forecast"
)

// goldens is the folder with the example clusters.
const goldens = "../../golden"

func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exampleFleet is the cluster of the pictures, in a folder: six nodes, of which the first is a canary that rolled back.
func exampleFleet(t *testing.T) (*screens.Fleet, string) {
	t.Helper()
	f, err := screens.NewFleet(t.Context(), goldens, noon())
	must(t, err)
	for _, s := range screens.Scenes() {
		if s.Name == "stopped" {
			must(t, s.Stage(context.Background(), f))
		}
	}
	dir := t.TempDir()
	must(t, f.Write(dir))
	return f, dir
}

func hostsOf(t *testing.T, sources ...string) (*desired.Hosts, []desired.Rendered) {
	t.Helper()
	hosts, err := desired.ReadHosts(t.Context(), desired.Source{Objects: objects.NewPathsReader(sources, nil), Gather: gather.Options{Complete: true}, Payload: filepath.Join(goldens, "payload")})
	must(t, err)
	list, findings, err := hosts.RenderBundles(hosts.ListJoined())
	must(t, err)
	if findings.Refused() {
		t.Fatalf("%+v", findings)
	}
	return hosts, list
}

func statusPage(t *testing.T) Page {
	t.Helper()
	_, dir := exampleFleet(t)
	f, findings, err := fleet.Read(t.Context(), objects.NewPathsReader([]string{dir}, nil), gather.OperatorNamespace, noon())
	must(t, err)
	if findings.Refused() {
		t.Fatalf("%+v", findings)
	}
	return Page{Title: "Windows nodes", At: noon(), Fleet: &f}
}

// diffPage is that of a proxy that is set, with a setting that reaches every service.
func diffPage(t *testing.T) Page {
	t.Helper()
	_, dir := exampleFleet(t)
	change := filepath.Join(t.TempDir(), "change.yaml")
	proxy, err := os.ReadFile(filepath.Join(goldens, "..", "hack", "demo-changes", "proxy.yaml"))
	must(t, err)
	must(t, os.WriteFile(change, proxy, 0o600))
	_, before := hostsOf(t, dir)
	hosts, after := hostsOf(t, dir, change)
	r := review.Compare(golden.Reviewed(before), golden.Reviewed(after))
	f, _, err := forecast.Make(t.Context(), objects.NewPathsReader([]string{dir}, nil), forecast.Change{
		Before: before, After: after, Platform: hosts.Cluster.Platform, Settings: hosts.Cluster.Settings, Namespace: gather.OperatorNamespace, Now: noon(),
	})
	must(t, err)
	return Page{Title: "Changes of Windows nodes", Review: &r, Forecast: &f, Nodes: golden.Reviewed(after)}
}

func renderPage(t *testing.T) Page {
	t.Helper()
	_, dir := exampleFleet(t)
	hosts, list := hostsOf(t, dir)
	return Page{Title: "What Windows nodes should have", Findings: hosts.Findings, Nodes: golden.Reviewed(list)}
}

func pages(t *testing.T) map[string]Page {
	t.Helper()
	return map[string]Page{"status": statusPage(t), "diff": diffPage(t), "render": renderPage(t)}
}

func htmlOf(t *testing.T, p Page) string {
	t.Helper()
	text, err := p.HTML()
	must(t, err)
	return text
}

// many are nodes like the first one with names and entries of their own.
func many(t *testing.T, n int) []review.Node {
	t.Helper()
	_, dir := exampleFleet(t)
	_, list := hostsOf(t, dir)
	like := golden.Reviewed(list)[0]
	nodes := make([]review.Node, n)
	for i := range nodes {
		nodes[i] = like
		nodes[i].Name = nodeName(i)
		nodes[i].Bundle.Node.HostName = bundle.HostName{Name: nodeName(i), Impact: bundle.ImpactReboot}
	}
	return nodes
}

func nodeName(i int) string { return "win-" + time.Duration(i).String() }

// turnsOf is a rollout in which one node goes after the other.
func turnsOf(n int) *forecast.Forecast {
	f := forecast.Forecast{Prediction: plan.Prediction{Nodes: n, Drains: n, Takes: time.Duration(n) * time.Minute}}
	for i := range n {
		begins := time.Duration(i) * time.Minute
		f.Order = append(f.Order, plan.Change{Node: nodeName(i), Impact: bundle.ImpactDrain, Begins: begins, Ends: begins + time.Minute})
	}
	return &f
}
