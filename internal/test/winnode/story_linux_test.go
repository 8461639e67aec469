package winnode

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stub"
)

// foreign is an unmanaged file.
const foreign = `C:\k\foreign.txt`

// TestTheLifeOfANode runs the node agent for each change in the life of a node, on one host.
func TestTheLifeOfANode(t *testing.T) {
	t.Parallel()
	m, n := newMachine(t), newNode(t)
	m.Tripwires(t)
	m.WriteFile(t, foreign, []byte("not ours"))
	disk, registry := m.contents(t), m.settings(t)
	chapters := []struct {
		name string
		run  func(*testing.T, machine, bundletest.Node)
	}{
		{"the first bundle", first},
		{"services get their arguments and variables", arguments},
		{"the second run changes nothing", second},
		{"drift is found and repaired", drift},
		{"a changed mirror restarts nothing", mirror},
		{"a kubelet that does not start is rolled back", bad},
		{"a running program is replaced", upgrade},
	}
	for _, c := range chapters {
		if !t.Run(c.name, func(t *testing.T) { c.run(t, m, n) }) {
			t.FailNow()
		}
	}
	t.Run("cleanup leaves nothing", func(t *testing.T) { m.cleaned(t, disk, registry) })
	if tripped := m.Tripped(t); tripped != nil {
		t.Errorf("forbidden programs were run: %q", tripped)
	}
}

func first(t *testing.T, m machine, n bundletest.Node) {
	o := m.observe(t, n)
	if o.InSync || len(o.Actions) == 0 || len(o.Missing) == 0 || o.Applied != "" {
		t.Errorf("a new host: %+v", o)
	}
	e := m.applied(t, n)
	if e.Result != protocol.ResultApplied || e.Restarted != len(n.Services) {
		t.Errorf("%+v", e)
	}
	for _, command := range []string{"observe", "verify"} {
		r := m.wmco(t, n.Archive(t, nil), command)
		o, err := protocol.DecodeObservation([]byte(r.Stdout))
		if err != nil || r.ExitCode != 0 || !o.InSync || o.Applied != o.Bundle || len(o.Unhealthy) > 0 {
			t.Errorf("%s ended with %d, %v: %+v", command, r.ExitCode, err, o)
		}
	}
	if data := string(m.ReadFile(t, pathConfig)); data != n.Files[pathConfig] {
		t.Errorf("%s holds %q", pathConfig, data)
	}
}

// arguments checks that each service was started once, with the arguments of the bundle. Wine ignores the variables of a
// service, so those are read from the registry.
func arguments(t *testing.T, m machine, n bundletest.Node) {
	want := map[string][]string{
		"containerd": {pathContainerd, "--run-service"}, "windows_exporter": {pathExporter}, "csi-proxy": {pathCSIProxy},
		"kubelet": n.Services[1].Argv[2:],
	}
	got := map[string][]string{}
	for name, lines := range m.argvs(t) {
		if len(lines) != 1 {
			t.Errorf("%s was started %d times", name, len(lines))
		}
		var argv []string
		if err := json.Unmarshal([]byte(lines[0]), &argv); err != nil {
			t.Fatal(err)
		}
		got[name] = argv
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const variables = `Environment    REG_MULTI_SZ    HTTP_PROXY=http://user:sesame-proxy@proxy:3128\0NO_PROXY=.svc`
	for name := range want {
		if text := m.registry(t, keyServices+`\`+name); !strings.Contains(text, variables) {
			t.Errorf("%s has other variables:\n%s", name, text)
		}
	}
}

func second(t *testing.T, m machine, n bundletest.Node) {
	before, starts := m.writes(t), m.starts(t)
	e := m.applied(t, n)
	if e.Result != protocol.ResultSame || e.Written != 0 || e.Restarted != 0 {
		t.Errorf("%+v", e)
	}
	if diff := cmp.Diff(before, m.writes(t)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, m.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
}

// drift changes every kind of entry that Wine supports.
func drift(t *testing.T, m machine, n bundletest.Node) {
	want, registry := m.contents(t), m.settings(t)
	m.WriteFile(t, pathConfig, []byte("maxPods: 1\n"))
	if err := os.Remove(m.Path(pathMirror)); err != nil {
		t.Fatal(err)
	}
	m.reg(t, "add", keyVariables, "/v", "NO_PROXY", "/d", "everything")
	m.reg(t, "delete", keyRoots)
	m.reg(t, "add", keyServices+`\containerd`, "/v", "Environment", "/t", "REG_MULTI_SZ", "/d", "NO_PROXY=x")
	m.kill(t, "windows_exporter.exe")
	o := m.observe(t, n)
	var seen []bundle.EntryID
	for _, a := range o.Actions {
		seen = append(seen, a.Entry)
	}
	for _, id := range []bundle.EntryID{
		bundle.KindFile.ID(pathConfig), bundle.KindFile.ID(pathMirror), bundle.KindVariable.ID("NO_PROXY"),
		bundle.KindTrustedCA.ID(string(bundle.Of([]byte(n.CAs[0])))), bundle.KindTrustedCA.ID(string(bundle.Of([]byte(n.CAs[1])))),
		bundle.KindService.ID("containerd"), bundle.KindService.ID("windows_exporter"),
	} {
		if !slices.Contains(seen, id) {
			t.Errorf("no action for %s", id)
		}
	}
	if o.InSync || len(o.Missing) != 0 {
		t.Errorf("in sync: %v, missing %v", o.InSync, o.Missing)
	}
	if r := m.wmco(t, nil, "repair"); r.ExitCode != 0 || last(t, r).Result != protocol.ResultApplied {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(without(want, "ProgramData"), without(m.contents(t), "ProgramData")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(registry, m.settings(t)); diff != "" {
		t.Errorf("registry (-want +got):\n%s", diff)
	}
	m.healthy(t, n)
}

// kill kills all processes of a program.
func (m machine) kill(t *testing.T, name string) {
	t.Helper()
	if r := m.Run(t, winetest.Command{Path: tool, Args: []string{"kill", name}}); r.ExitCode != 0 || r.Stdout == "0\n" {
		t.Fatalf("%+v", r)
	}
}

// healthy fails the test if the host differs from the bundle or a service is unhealthy.
func (m machine) healthy(t *testing.T, n bundletest.Node) {
	t.Helper()
	if r := m.wmco(t, n.Archive(t, nil), "verify"); r.ExitCode != 0 {
		t.Errorf("the host differs from the bundle: %+v", r)
	}
	if string(m.ReadFile(t, foreign)) != "not ours" {
		t.Error("an unmanaged file was changed")
	}
}

func mirror(t *testing.T, m machine, n bundletest.Node) {
	before, starts := m.writes(t), m.starts(t)
	changed := n.Changed(func(n *bundletest.Node) { n.Files[pathMirror] = "server = \"https://b.io\"\n" })
	e := m.applied(t, changed)
	if e.Written != 1 || e.Restarted != 0 {
		t.Errorf("%+v", e)
	}
	after := without(m.writes(t), "ProgramData")
	delete(after, "k/containerd/registries/a.io/hosts.toml")
	before = without(before, "ProgramData")
	delete(before, "k/containerd/registries/a.io/hosts.toml")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("something else was written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(starts, m.starts(t)); diff != "" {
		t.Errorf("started (-before +after):\n%s", diff)
	}
	m.applied(t, n)
}

func bad(t *testing.T, m machine, n bundletest.Node) {
	files, registry := m.contents(t), m.settings(t)
	worse := n.Changed(func(n *bundletest.Node) {
		n.Files[pathConfig] = badConfig
		n.Files[pathMirror] = "server = \"https://c.io\"\n"
		n.Proxy = map[string]string{"NO_PROXY": ".other"}
		n.CAs = append(slices.Clone(n.CAs), authority(t, "third"))
		const added = `C:\k\hybrid-overlay-node.exe`
		n.Programs = maps.Clone(n.Programs)
		n.Programs[added] = n.Programs[pathExporter]
		n.Services = append(n.Services, service("hybrid-overlay-node", bundle.ProbeTCP, addressMetrics, []string{added, "--added"}, added))
	})
	e, status := m.apply(t, worse)
	if status != 5 || e.Result != protocol.ResultRolledBack {
		t.Fatalf("status %d: %+v", status, e)
	}
	if diff := cmp.Diff(without(files, "ProgramData"), without(m.contents(t), "ProgramData")); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(registry, m.settings(t)); diff != "" {
		t.Errorf("registry (-before +after):\n%s", diff)
	}
	m.healthy(t, n)
}

func upgrade(t *testing.T, m machine, n bundletest.Node) {
	newer := n.Changed(func(n *bundletest.Node) { n.Programs[pathKubelet] = kubelet(t, "v2") })
	// A process outside of the service has the program open: it cannot be removed even after the service has stopped.
	other := m.Start(t, winetest.Command{Path: pathKubelet, Args: []string{"--wait"}})
	eventually(t, "the other process runs", func() bool { return strings.Contains(other.Output(t), "waits") })
	before := m.starts(t)
	m.applied(t, newer)
	if string(m.ReadFile(t, pathKubelet)) != newer.Programs[pathKubelet] {
		t.Error("the program is the old one")
	}
	want := before
	want["kubelet"]++
	if diff := cmp.Diff(want, m.starts(t)); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	m.healthy(t, newer)
	if left := m.leftovers(t); len(left) != 1 {
		t.Errorf("%d files were moved aside: %q", len(left), left)
	}
	other.Kill(t)
	m.applied(t, newer)
	if left := m.leftovers(t); len(left) != 0 {
		t.Errorf("leftovers: %q", left)
	}
	m.healthy(t, newer)
}

// leftovers returns the files that were moved aside or not completed.
func (m machine) leftovers(t *testing.T) []string {
	t.Helper()
	var left []string
	for path := range m.contents(t) {
		if plan.IsLeftover(`C:\` + strings.ReplaceAll(path, "/", `\`)) {
			left = append(left, path)
		}
	}
	return left
}

// cleaned checks that everything except logs is as it was before the first bundle.
func (m machine) cleaned(t *testing.T, disk map[string]string, registry string) {
	if r := m.wmco(t, nil, "cleanup"); r.ExitCode != 0 || last(t, r).Result != protocol.ResultApplied {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(disk, m.contents(t)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(registry, m.settings(t)); diff != "" {
		t.Errorf("registry (-before +after):\n%s", diff)
	}
}

// TestAServiceThatDoesNotStopIsKilled waits for the default limits.
func TestAServiceThatDoesNotStopIsKilled(t *testing.T) {
	if os.Getenv("WMCO_KILLS") == "" {
		t.Skip("it takes two minutes: set WMCO_KILLS")
	}
	t.Parallel()
	m, n := newMachine(t), newNode(t)
	n.Programs[pathExporter] = stand(t, stub.Behaviour{TCP: []string{addressMetrics}, Hangs: true})
	m.WriteFile(t, foreign, []byte("not ours"))
	m.applied(t, n)
	other := n.Changed(func(n *bundletest.Node) {
		n.Programs[pathExporter] = stand(t, stub.Behaviour{TCP: []string{addressMetrics}})
	})
	if e := m.applied(t, other); e.Restarted != 1 {
		t.Errorf("%+v", e)
	}
	m.healthy(t, other)
}
