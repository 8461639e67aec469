package jointest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/existing"
	"wmco/internal/test/simnode/overlay"
)

// existingNode is a host that the existing operator has joined.
type existingNode struct {
	name, address string
	// generation is that of the operator; empty is the newest one.
	generation string
	// drained has an older containerd, whose exchange needs a drain.
	drained bool
	// back has what this operator has left: the existing one knows nothing of that, and exchanges services and files alone.
	back bool
	// spoil changes the host in the end; nil changes nothing.
	spoil func(m *joinedMachine)
}

// furnishing is what the generation leaves.
func (n existingNode) furnishing(t testing.TB) existing.Furnishing {
	t.Helper()
	f, err := existing.ReadGeneration(cmp.Or(n.generation, newestExisting))
	must(t, err)
	return f
}

// newestExisting is the newest generation of the existing operator.
const newestExisting = "main"

// older is an executable of the existing operator whose exchange needs a drain: its containerd is 1.7.
const older = `C:\k\containerd\containerd.exe`

// becomeExisting turns joined nodes, whose operator has ended, into those of the existing operator, which has ended too: with its agent and its files
// on the host, with its annotations on the Node, and without anything that only this operator knows, but for nodes that go back to it.
func (w *world) becomeExisting(nodes ...existingNode) {
	w.t.Helper()
	for _, n := range nodes {
		m := w.machines[n.name]
		m.existing = n.furnishing(w.t)
		must(w.t, m.StopService(w.t.Context(), bundle.AgentService))
		w.furnishFiles(m, n)
		w.furnishServices(n.name, m)
		must(w.t, m.StartService(w.t.Context(), bundle.AgentService))
		w.annotateExisting(n)
		if n.spoil != nil {
			n.spoil(m)
		}
	}
	if slices.ContainsFunc(nodes, func(n existingNode) bool { return n.back }) {
		return
	}
	must(w.t, w.DeleteAllOf(w.t.Context(), &corev1.ConfigMap{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{hosts.RecordsLabel}))
	must(w.t, w.DeleteAllOf(w.t.Context(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}))
}

// furnishFiles leaves the files of the existing operator, and none of this one's own, but where they are left.
func (w *world) furnishFiles(m *joinedMachine, n existingNode) {
	w.t.Helper()
	all, err := m.Snapshot(w.t.Context())
	must(w.t, err)
	absent := map[string]bool{}
	for _, f := range m.existing.Absent {
		absent[strings.ToLower(f.Name)] = true
	}
	for path := range all.Files {
		p := strings.ToLower(path)
		own := strings.HasPrefix(p, strings.ToLower(plan.StateFolder)+`\`) || strings.HasPrefix(p, `c:\windows\wmco\`) || strings.HasPrefix(p, `c:\k\agent\`) || strings.HasSuffix(p, bundle.LedgerCopy)
		if (own && !n.back || absent[p]) && all.Files[path].Kind == plan.FileRegular {
			must(w.t, m.RemoveFile(path))
		}
	}
	for _, f := range m.existing.Files {
		must(w.t, m.WriteFile(w.t.Context(), f.Name, bundle.AccessUsers, []byte(f.Text)))
	}
	if n.drained {
		must(w.t, m.WriteFile(w.t.Context(), older, bundle.AccessUsers, []byte("containerd 1.7")))
	}
}

// furnishServices leaves the services of the existing operator, and its variables.
func (w *world) furnishServices(name string, m *joinedMachine) {
	w.t.Helper()
	values := strings.NewReplacer("NODE_NAME", name, "NODE_SUBNET", w.node(name).Annotations[overlay.SubnetAnnotation], "ENDPOINT_IP", "10.132.0.3")
	must(w.t, m.Edit(w.t.Context(), func(s *simulation.State) {
		for key, svc := range s.Services {
			if command := m.existing.Command(svc.Name); command != "" {
				svc.CommandLine = values.Replace(command)
			}
			svc.Environment = nil // pkg/daemon/envvar/envvar.go:32: it sets the variables of the machine
			s.Services[key] = svc
		}
		s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "NO_PROXY", Value: ".existing.example.com", Present: true})
	}))
}

// annotateExisting leaves the annotations of the existing operator on a Node, with the values that it would write.
func (w *world) annotateExisting(n existingNode) {
	w.t.Helper()
	kept, version := map[string]bool{}, w.machines[n.name].existing.Version
	for _, a := range w.machines[n.name].existing.Annotations {
		kept[a.Name] = true
	}
	values := map[string]any{}
	for key := range w.node(n.name).Annotations {
		if !n.back && strings.HasPrefix(key, published.Domain) && !kept[key] {
			values[key] = nil
		}
	}
	values[published.VersionAnnotation], values[published.DesiredVersionAnnotation] = version, version
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	must(w.t, err)
	must(w.t, w.Patch(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name}}, client.RawPatch(types.MergePatchType, patch)))
}

// existingNodes are hosts of Machines and instances, by their names, that the newest generation of the existing operator has joined. Those whose
// names are in drained have an older containerd.
func (w *world) existingNodes(nodes map[string]string, drained ...string) {
	w.t.Helper()
	var list []existingNode
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		list = append(list, existingNode{name: name, address: nodes[name], drained: slices.Contains(drained, name)})
	}
	w.existingFleet(list...)
}

// existingFleet are hosts of Machines and instances that the existing operator has joined.
func (w *world) existingFleet(nodes ...existingNode) {
	w.t.Helper()
	var names, entries []string
	for _, n := range nodes {
		names = append(names, n.name)
		w.machine(n.name, n.address)
		if strings.HasPrefix(n.name, "machine-") {
			w.machineObject(n.name, n.address)
		} else {
			entries = append(entries, n.address)
		}
	}
	w.instances(entries...)
	stop := w.operate()
	w.allJoin(names)
	for _, name := range names {
		eventually(w.t, "the copy of the ledger of "+name, func() bool { return w.machines[name].Text(ledgerCopy) != "" })
	}
	stop()
	w.becomeExisting(nodes...)
}

// hasExistingAgent reports whether the service of the existing agent runs as its operator has left it.
func (m *joinedMachine) hasExistingAgent() bool {
	all, err := m.Services(context.Background(), []string{bundle.AgentService})
	return err == nil && len(all) == 1 && all[0].CommandLine == m.existing.Command(bundle.AgentService) && all[0].Status == plan.ServiceRunning
}
