package render_test

import (
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/internal/golden"
	"wmco/layout"
	"wmco/render/preview"
)

// portSetting is a setting of a configuration by which a service would listen on another port than its default.
var portSetting = regexp.MustCompile(`(?im)^\s*"?(?:port|healthzPort|readOnlyPort|[a-z]*BindAddress|tcp_address|stream_server_port)"?\s*[:=].*$`)

// TestThePortsOfTheTableAreThoseOfBundles: what the services of rendered bundles listen on, by their probes, by the firewall and by their
// configuration.
func TestThePortsOfTheTableAreThoseOfBundles(t *testing.T) {
	tree := exampleNode(t)
	read := func(name string, into any) {
		if err := yaml.Unmarshal(tree[name], into); err != nil || tree[name] == nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var services struct {
		Services []struct {
			Name  string       `json:"name"`
			Probe bundle.Probe `json:"probe"`
		} `json:"services"`
	}
	read("services.yaml", &services)
	var host struct {
		Firewall []bundle.FirewallRule `json:"firewall"`
	}
	read("host.yaml", &host)
	found := []string{ // no probe and no rule has it
		layout.KubeProxy + " " + strconv.Itoa(layout.PortKubeProxyMetrics),
	}
	for _, s := range services.Services {
		target := s.Probe.Target
		if s.Probe.Kind == bundle.ProbeTCP {
			target = "tcp://" + target
		}
		if u, err := url.Parse(target); err == nil && u.Port() != "" {
			found = append(found, s.Name+" "+u.Port())
		}
	}
	for _, r := range host.Firewall {
		if service := map[string]string{layout.RuleKubelet: layout.Kubelet, layout.RuleExporter: layout.Exporter}[r.Name]; service != "" {
			found = append(found, service+" "+strconv.Itoa(r.Port))
		}
	}
	var table []string
	for _, p := range layout.Ports() {
		table = append(table, p.Service+" "+strconv.Itoa(p.Number))
	}
	slices.Sort(found)
	slices.Sort(table)
	if diff := cmp.Diff(table, slices.Compact(found)); diff != "" {
		t.Errorf("(-layout.Ports +bundle):\n%s", diff)
	}
	for file, settings := range map[string][]string{
		`kubelet.conf`: nil, `kube-proxy.conf`: nil, `containerd/containerd_conf.toml`: {`  stream_server_port = "0"`},
	} {
		text := tree["C/k/"+file]
		if text == nil {
			t.Fatalf("no %s", file)
		}
		if diff := cmp.Diff(settings, portSetting.FindAllString(string(text), -1)); diff != "" {
			t.Errorf("%s sets a port (-want +got):\n%s", file, diff)
		}
	}
}

// exampleNode returns the preview of a node that has mirrors.
func exampleNode(t *testing.T) map[string][]byte {
	t.Helper()
	dir := filepath.Join("..", "golden", "cases", "none-mirrors")
	c, err := golden.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := c.Read(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, findings, err := c.Render(hosts)
	if err != nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	files, err := golden.Files(list, preview.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return preview.Roots(golden.Tree(files))["win-a"]
}
