package jointest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/internal/test/existing"
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
	f.Back = n.back
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
		node := w.node(n.name)
		must(w.t, m.existing.FurnishHost(w.t.Context(), m.Machine, node))
		if n.drained {
			must(w.t, m.WriteFile(w.t.Context(), older, bundle.AccessUsers, []byte("containerd 1.7")))
		}
		patch, err := m.existing.NodePatch(node)
		must(w.t, err)
		must(w.t, w.Patch(w.t.Context(), node, patch))
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
	has, err := m.existing.HasAgent(context.Background(), m.Machine)
	return err == nil && has
}
