package world

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/world/api"
)

// counts are what was asked of the API server, and done on hosts.
type counts struct {
	// operator and agents are the writes that were taken, by verb and resource, without those that go by the clock: Leases, and the
	// status of the operator.
	operator, agents map[string]int
	// foreign is what node agents have asked for that is not of their own node.
	foreign map[string]bool
	// done are the operations on each host, without the records of the node agent.
	done map[string][]simulation.Operation
}

func newCounts() counts {
	return counts{operator: map[string]int{}, agents: map[string]int{}, foreign: map[string]bool{}, done: map[string][]simulation.Operation{}}
}

// tally has the counts since they were read last.
type tally struct {
	mu sync.Mutex
	counts
}

// counted is for rest.Config.Wrap, of an operator or of the agent of a node.
func (w *world) counted(node string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && w.tally != nil {
				if info, wrong := api.Resolver().NewRequestInfo(r); wrong == nil {
					w.tally.note(node, *info, answer.StatusCode)
				}
			}
			return answer, err
		})
	}
}

func (y *tally) note(node string, i request.RequestInfo, status int) {
	y.mu.Lock()
	defer y.mu.Unlock()
	what := i.Verb + " " + strings.TrimSuffix(i.Resource+"/"+i.Subresource, "/")
	writes := y.operator
	if node != "" {
		writes = y.agents
		isOwn := i.Name == node || i.Resource == "secrets" && i.Namespace == gather.OperatorNamespace && strings.HasPrefix(i.Name, "windows-layer-") || i.Resource == "events"
		if !isOwn {
			y.foreign[what+" "+i.Namespace+"/"+i.Name] = true
		}
	}
	isWrite := slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, i.Verb)
	byClock := slices.Contains([]string{"leases", "windowsnodesstatuses", operatorCondition().Resource}, i.Resource)
	if isWrite && !byClock && status < http.StatusMultipleChoices {
		writes[what]++
	}
}

// operated notes an operation on a host.
func (y *tally) operated(name string, o simulation.Operation) {
	if y == nil || strings.HasPrefix(bundle.FoldPath(o.Target), bundle.FoldPath(plan.StateFolder)) || bundle.Base(o.Target) == bundle.LedgerCopy {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.done[name] = append(y.done[name], o)
}

// read returns the counts, and begins again.
func (y *tally) read() counts {
	y.mu.Lock()
	defer y.mu.Unlock()
	was := y.counts
	y.counts = newCounts()
	return was
}

// price is what a change costs.
type price struct {
	Operator, Agents map[string]int
	// Files are operations on the files of each node, Services those on services and settings, both in their order; Starts are
	// how often each service is started.
	Files, Services []string
	Starts          map[string]int
}

// priced is a change of an object, with its price, and what is on each host then.
type priced struct {
	name string
	// apply is the object, unless change does it.
	apply  string
	change func(testing.TB, *world)
	want   price
	see    func(*machine) bool
}

// fleetOf is the number of nodes of which a change is counted.
const fleetOf = 5

// publishes are the writes of the operator for a bundle with another layer of the cluster: its Secret and the access to it, the
// Nodes, the canary also when it is confirmed, and then the old Secret, noted as replaced and deleted, and its place in the
// Role. Two events are about the whole rollout.
func publishes(more map[string]int) map[string]int {
	all := map[string]int{"create secrets": 1, "update roles": 2, "patch nodes": fleetOf + 1, "patch secrets": 1, "delete secrets": 1, "create events": 2}
	for what, n := range more {
		all[what] += n
	}
	return all
}

// reports are the writes of all node agents for a bundle: an agent that restarts services also says when it begins.
func reports(restarts bool) map[string]int {
	n := fleetOf
	if restarts {
		n *= 2
	}
	return map[string]int{"patch nodes/status": n, "create events": fleetOf}
}

// each puts a verb before every name.
func each(verb string, names ...string) []string {
	var list []string
	for _, n := range names {
		list = append(list, verb+" "+n)
	}
	return list
}

func hasText(path, text string) func(*machine) bool {
	return func(m *machine) bool {
		data, err := m.Host.ReadFile(path)
		return err == nil && strings.Contains(string(data), text)
	}
}

// isRunWith is for hosts whose kubelet was started with an argument, or a variable of its environment.
func isRunWith(want string) func(*machine) bool {
	return func(m *machine) (is bool) {
		err := m.Host.Look(context.Background(), func(s *simulation.State) {
			kubelet := s.Services["kubelet"]
			is = slices.Contains(kubelet.Argv, want) || slices.Contains(kubelet.Delivered, want)
		})
		return err == nil && is
	}
}

// TestWhatChangesCost: what is written to the API server for each kind of change, to the files and services of each node, and
// what is restarted. No node is drained, no host boots, and no node agent asks for what is another node's.
func TestWhatChangesCost(t *testing.T) {
	o := options{nodes: fleetOf, counts: true, seed: 1, patience: time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		w.settings.maxUnavailable, w.settings.maxParallel = 1, 1
		w.write(t)
		w.rest(t)
		boots := w.boots
		for _, c := range pricedChanges(w.settings) {
			w.tally.read()
			starts := w.starts(t)
			if c.change == nil {
				c.change = func(t testing.TB, w *world) { w.put(t, c.apply) }
			}
			c.change(t, w)
			w.rest(t)
			got := w.tally.read()
			if diff := cmp.Diff([]any{c.want.Operator, c.want.Agents}, []any{got.operator, got.agents}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: writes of the operator and of the node agents (-want +got):\n%s", c.name, diff)
			}
			for name, before := range starts {
				want, m := c.want, w.machines[name]
				want.Operator, want.Agents = nil, nil
				if diff := cmp.Diff(want, priceOf(got.done[name], before, w.starts(t)[name]), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", c.name, name, diff)
				}
				if c.see != nil && !c.see(m) {
					t.Errorf("%s: %s does not have it", c.name, name)
				}
			}
			if len(got.foreign) > 0 {
				t.Errorf("%s: node agents ask for %v", c.name, slices.Sorted(maps.Keys(got.foreign)))
			}
		}
		if w.boots != boots {
			t.Errorf("%d boots", w.boots-boots)
		}
		w.print(t)
	})
}

// renderConfig gives the worker pool another rendered MachineConfig, as the machine-config-operator does.
func (w *world) renderConfig(t testing.TB, old, replaced string) {
	t.Helper()
	object := func(kind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("machineconfiguration.openshift.io/v1")
		u.SetKind(kind)
		u.SetName(name)
		return u
	}
	pool := object("MachineConfigPool", "worker")
	must(t, w.Get(w.ctx, client.ObjectKeyFromObject(pool), pool))
	current, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
	config := object("MachineConfig", current)
	must(t, w.Get(w.ctx, client.ObjectKeyFromObject(config), config))
	spec, err := json.Marshal(config.Object["spec"])
	must(t, err)
	if !strings.Contains(string(spec), old) {
		t.Fatalf("MachineConfig %s has no %q", current, old)
	}
	next := object("MachineConfig", current+"-next")
	var changed map[string]any
	must(t, json.Unmarshal([]byte(strings.Replace(string(spec), old, replaced, 1)), &changed))
	next.Object["spec"] = changed
	must(t, w.Create(w.ctx, next))
	must(t, w.Status().Patch(w.ctx, pool, mergePatch(fmt.Sprintf(`{"status":{"configuration":{"name":%q}}}`, next.GetName()))))
}

// starts returns how often the services of each host were started.
func (w *world) starts(t testing.TB) map[string]map[string]int {
	t.Helper()
	all := map[string]map[string]int{}
	for name, m := range w.machines {
		all[name] = map[string]int{}
		must(t, m.Host.Look(w.ctx, func(s *simulation.State) {
			for _, x := range s.Services {
				all[name][x.Name] = x.Starts
			}
		}))
	}
	return all
}

func priceOf(done []simulation.Operation, before, after map[string]int) price {
	p := price{Starts: map[string]int{}}
	for _, o := range done {
		text := string(o.Verb) + " " + o.Target
		switch o.Verb {
		case simulation.VerbWrite, simulation.VerbMake, simulation.VerbLink, simulation.VerbMove, simulation.VerbRemove, simulation.VerbTruncate:
			p.Files = append(p.Files, text)
		case simulation.VerbPut, simulation.VerbDelete, simulation.VerbStart, simulation.VerbStop, simulation.VerbRetire, simulation.VerbSet, simulation.VerbUnset, simulation.VerbReboot:
			p.Services = append(p.Services, text)
		}
	}
	for name, n := range after {
		if n != before[name] {
			p.Starts[name] = n - before[name]
		}
	}
	return p
}

// pricedChanges are made one after the other, with these settings.
func pricedChanges(s settings) []priced {
	const registries, credentials = `C:\k\containerd\registries\`, `C:\var\lib\kubelet\config.json`
	stopped, started := each("stop", "kube-proxy", "hybrid-overlay-node", "kubelet"), each("start", "kubelet", "hybrid-overlay-node", "kube-proxy")
	kubelet := map[string]int{"kubelet": 1, "hybrid-overlay-node": 1, "kube-proxy": 1}
	s.maxPods = 100
	return []priced{
		{
			name: "ImageDigestMirrorSet",
			apply: `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: digests},
  spec: {imageDigestMirrors: [{source: quay.io/example, mirrors: ["mirror.example.com:5000/example"]}]}}`,
			// Kubelets lose the entry of a registry that has a mirror.
			want: price{Operator: publishes(nil), Agents: reports(false), Files: []string{`make ` + registries + `quay.io`, `write ` + registries + `quay.io\hosts.toml`, `write ` + credentials}},
			see:  hasText(registries+`quay.io\hosts.toml`, "mirror.example.com:5000"),
		},
		{
			name: "ImageTagMirrorSet",
			apply: `{apiVersion: config.openshift.io/v1, kind: ImageTagMirrorSet, metadata: {name: tags},
  spec: {imageTagMirrors: [{source: mcr.microsoft.com/oss, mirrors: ["tags.example.com/oss"]}]}}`,
			// An event has the new warning, that a mirror of a part of a registry is asked for all of it.
			want: price{Operator: publishes(map[string]int{"create events": 1}), Agents: reports(false), Files: []string{`make ` + registries + `mcr.microsoft.com`, `write ` + registries + `mcr.microsoft.com\hosts.toml`}},
			see:  hasText(registries+`mcr.microsoft.com\hosts.toml`, "tags.example.com"),
		},
		{
			name: "pull secret",
			apply: `{apiVersion: v1, kind: Secret, type: kubernetes.io/dockerconfigjson, metadata: {namespace: openshift-config, name: pull-secret},
  stringData: {.dockerconfigjson: '{"auths":{"tags.example.com":{"auth":"bmV3LXVzZXI6bmV3LXBhc3N3b3Jk"}}}'}}`,
			// One registry has gained credentials, the other one has lost them.
			want: price{Operator: publishes(nil), Agents: reports(false), Files: []string{`write ` + registries + `mcr.microsoft.com\hosts.toml`, `write ` + registries + `quay.io\hosts.toml`, `write ` + credentials}},
			see:  hasText(registries+`mcr.microsoft.com\hosts.toml`, "bmV3LXVzZXI6bmV3LXBhc3N3b3Jk"),
		},
		{
			name: "proxy",
			apply: `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {httpProxy: "http://proxy.example.com:3128", noProxy: .example.com},
  status: {httpProxy: "http://proxy.example.com:3128", noProxy: ".cluster.local,.svc,.example.com,127.0.0.0/8,localhost"}}`,
			// The CAs of a cluster are for its proxy. The agent's own service is started by the service control manager, when the agent has ended.
			want: price{
				Operator: publishes(map[string]int{"patch nodes": 1}), Agents: reports(true), Files: []string{`write C:\k\ca-bundle.crt`},
				Services: slices.Concat(
					each("set", "variable HTTP_PROXY", "variable NO_PROXY", "trusted-ca sha256:ba41d4ae6c3f204f4599239b26e0498c390fb4e77a81072cac28519bedf15337",
						"trusted-ca sha256:df2bb0dfdd8185a8355a83a8c52e048b2e08a421e2b9ea25d91e049b0e8231fe"),
					each("stop", "windows_exporter", "kube-proxy", "hybrid-overlay-node", "kubelet", "csi-proxy", "containerd"),
					each("put", "containerd", "csi-proxy", "hybrid-overlay-node", "kube-proxy", "kubelet", bundle.AgentService, "windows_exporter"),
					each("start", "containerd", "csi-proxy", "kubelet", "hybrid-overlay-node", "kube-proxy", "windows_exporter"),
				),
				Starts: map[string]int{"containerd": 1, "csi-proxy": 1, "kubelet": 1, "hybrid-overlay-node": 1, "kube-proxy": 1, "windows_exporter": 1, bundle.AgentService: 1},
			},
			see: isRunWith("HTTP_PROXY=http://proxy.example.com:3128"),
		},
		{
			name: "flag of kubelets in a MachineConfig", change: func(t testing.TB, w *world) { w.renderConfig(t, "--cloud-provider=", "--cloud-provider=external") },
			// The flags of a kubelet are in the layer of its node, which is on the Node: no Secret changes.
			want: price{Operator: map[string]int{"patch nodes": fleetOf + 2, "create events": 2}, Agents: reports(true),
				Services: slices.Concat(stopped, each("put", "kubelet"), started), Starts: kubelet},
			see: isRunWith("--cloud-provider=external"),
		},
		{
			name: "MachineConfig for Linux alone", change: func(t testing.TB, w *world) { w.renderConfig(t, "Example node agent", "Another description") },
		},
		{
			name:  "settings of kubelets",
			apply: fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: windows-machine-config}, data: {config.yaml: %q}}", gather.OperatorNamespace, s),
			want: price{Operator: publishes(map[string]int{"patch nodes": 1}), Agents: reports(true),
				Files: []string{`write C:\k\kubelet.conf`}, Services: slices.Concat(stopped, started), Starts: kubelet},
			see: hasText(`C:\k\kubelet.conf`, "maxPods: 100"),
		},
	}
}
