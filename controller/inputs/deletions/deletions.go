// Package deletions finds inputs that were deleted as a whole while nodes have bundles that were made from them. That is more often a
// mistake than meant, and would change every node at once.
//
//	inputs, Nodes (desired-bundle, confirm-deleted) --Find--> which inputs are gone, and which nodes keep what is published for them
//
// What a bundle was made from stands on its Node, beside its digest. So an operator that has just started decides as one that saw the
// inputs go. The package makes no requests.
package deletions

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// Inputs returns the inputs that bundles are made from now, of those that are guarded, sorted. Mirror sets without an entry do not count:
// they say the same as none. A settings object that is empty does: whoever leaves it there asks for the defaults.
func Inputs(c render.Cluster) []published.Input {
	var list []published.Input
	if len(c.Mirrors.Sets) > 0 {
		list = append(list, published.InputMirrors)
	}
	if _, ok := c.Origins[render.FromSettings]; ok {
		list = append(list, published.InputSettings)
	}
	return list
}

// Found is what was deleted.
type Found struct {
	// Waiting are the nodes that keep what they have, by the input that is gone. For published.InputInstances they are the nodes of
	// instances, none of which is removed; they get other changes.
	Waiting map[published.Input][]string
	// Used are the nodes with a confirmation that nothing waits for any longer, so that it counts for one deletion.
	Used []windowsnode.Node
}

// Find compares the inputs with those of the bundles that are published on the Windows nodes, which madeFrom returns. An annotation that cannot
// be read, or that the operator did not write, says nothing: it is written again.
func Find(hosts *desired.Hosts, nodes []windowsnode.Node, madeFrom func(windowsnode.Node) []published.Input) Found {
	f := Found{Waiting: map[published.Input][]string{}}
	has, instances := Inputs(hosts.Cluster), removedInstances(hosts)
	for _, n := range nodes {
		confirmed, used := confirmations(n), true
		for _, input := range madeFrom(n) {
			if slices.Contains(has, input) {
				continue
			}
			if slices.Contains(confirmed, string(input)) {
				used = false
				continue
			}
			f.Waiting[input] = append(f.Waiting[input], n.Name)
		}
		if len(hosts.Instances) == 0 && instances[n.Name] && n.Annotations[published.RemoveAnnotation] == "" {
			f.Waiting[published.InputInstances] = append(f.Waiting[published.InputInstances], n.Name)
		}
		if len(confirmed) > 0 && used {
			f.Used = append(f.Used, n)
		}
	}
	for _, list := range f.Waiting {
		slices.Sort(list)
	}
	return f
}

// confirmations returns the inputs that may be gone for a node.
func confirmations(n windowsnode.Node) []string {
	return strings.FieldsFunc(n.Annotations[published.ConfirmAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// removedInstances are the nodes that joined by an entry of windows-instances which is not there any longer.
func removedInstances(hosts *desired.Hosts) map[string]bool {
	all := map[string]bool{}
	for _, h := range hosts.All {
		if h.RemovedEntry != "" {
			all[h.Name] = true
		}
	}
	return all
}

// Keeps reports whether the node keeps what is published for it.
func (f Found) Keeps(node string) bool {
	return slices.Contains(f.Waiting[published.InputMirrors], node) || slices.Contains(f.Waiting[published.InputSettings], node)
}

// Inputs returns the inputs that are gone and waited for, sorted.
func (f Found) Inputs() []published.Input { return slices.Sorted(maps.Keys(f.Waiting)) }

// AsJoined returns the host as its bundle is rendered: the node of an instance stays one when its entry is gone. Otherwise its kubelet
// would restart with another address, only to be removed, or to be as before when the entry is back.
func (f Found) AsJoined(h render.Node) render.Node {
	if h.Backing == render.BackingNode && h.RemovedEntry != "" {
		h.Backing, h.Address = render.BackingInstance, h.RemovedEntry
	}
	return h
}

// selectors choose the nodes that are annotated to confirm a deletion.
const (
	selectWindows   = corev1.LabelOSStable + "=" + windowsnode.Windows
	selectInstances = published.InstanceLabel + "=true"
)

// Explain says what was deleted, what its nodes keep, and what to do, for people.
func (f Found) Explain(input published.Input) string {
	nodes := bundle.Count(len(f.Waiting[input]), "node")
	confirm := "oc annotate nodes -l " + selectWindows + " " + published.ConfirmAnnotation + "=" + string(input)
	switch input {
	case published.InputMirrors:
		return "all mirror sets are gone: " + nodes + " with mirrors will get no other bundle (fix: restore a mirror set, or confirm with: " + confirm + ")"
	case published.InputSettings:
		return "ConfigMap windows-machine-config is gone: " + nodes + " with its settings will get no other bundle (fix: restore it, create it empty for the defaults, or confirm with: " + confirm + ")"
	case published.InputInstances:
		return "ConfigMap windows-instances does not exist or has no entry: " + nodes + " will not be removed (fix: restore it, or remove them with: oc annotate nodes -l " + selectInstances + " " + published.RemoveAnnotation + "=true)"
	}
	return ""
}
