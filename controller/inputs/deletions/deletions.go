// Package deletions finds inputs that were deleted as a whole while nodes use them. That is mostly a
// mistake, and would change every node at once.
//
//	inputs, Nodes (desired-bundle, confirm-deleted) --CompareInputs--> deleted inputs, and the nodes that keep their published bundle
//
// The inputs of a bundle are on its Node, beside its digest. So an operator that has just started decides as
// one that saw the inputs go. A change that would stop all pods is held in the same way: the bundle of a node that has
// confirmed it is marked with the finding. The package makes no requests.
package deletions

import (
	"context"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// InputsOfPublished returns the guarded inputs of the bundle that is published on a Node, for CompareInputs, as who has
// told the Node has signed. Unsigned ones count while the agent is of an older operator: a deletion at that time is
// guarded too, and inputs only keep a node from getting another bundle.
func InputsOfPublished(told windowsnode.DesiredReader, n windowsnode.Node) []published.Input {
	d, err := told(n)
	if err != nil && n.ReportError == nil && !n.Report.Has(published.FeatureSigned) {
		d, err = n.Desired, n.DesiredError
	}
	if err != nil {
		return nil
	}
	return d.Inputs
}

// GuardedInputs returns the inputs that bundles are made from now, of those that are guarded, sorted. Mirror sets
// without an entry do not count: they say the same as none. A settings object that is empty does: whoever leaves it
// there asks for the defaults.
func GuardedInputs(c render.Cluster) []published.Input {
	var list []published.Input
	if len(c.Mirrors.Sets) > 0 {
		list = append(list, published.InputMirrors)
	}
	if _, ok := c.Origins[render.FromSettings]; ok {
		list = append(list, published.InputSettings)
	}
	return list
}

// holdingReasons are the findings that hold a change, by their reasons: with it, no pod could start on any node.
func holdingReasons() []published.Input { return []published.Input{published.InputUnreachableImages} }

// HoldingFindings returns the findings that hold a change of the inputs, by their reasons.
func HoldingFindings(findings bundle.Findings) map[published.Input]bundle.Finding {
	all := map[published.Input]bundle.Finding{}
	for _, f := range findings {
		if r := published.Input(f.Reason); slices.Contains(holdingReasons(), r) {
			all[r] = f
		}
	}
	return all
}

// BundleInputMarks returns the marks on the Node of a bundle that is made from these inputs now: the guarded inputs,
// and the findings that were confirmed. Sorted.
func BundleInputMarks(hosts *desired.Hosts) []published.Input {
	return slices.Sorted(slices.Values(slices.Concat(GuardedInputs(hosts.Cluster),
		slices.Collect(maps.Keys(HoldingFindings(hosts.Findings))))))
}

// Found is what was deleted, or is held.
type Found struct {
	// Waiting are the nodes that keep what they have, by the input that is gone. For published.InputInstances they are
	// the nodes of instances, none of which is removed; they get other changes.
	Waiting map[published.Input][]string
	// Held are the nodes that keep what they have because of a finding about the inputs that would stop all pods, and
	// Findings what was found.
	Held     map[published.Input][]string
	Findings map[published.Input]bundle.Finding
	// Used are the nodes with a confirmation that nothing waits for any longer, so that it counts for one deletion.
	Used []windowsnode.Node
}

// CompareInputs compares the inputs with those of the bundles that are published on the Windows nodes, which madeFrom
// returns. An annotation that cannot be read, or that the operator did not write, is ignored: it is written again.
func CompareInputs(hosts *desired.Hosts, nodes []windowsnode.Node,
	madeFrom func(windowsnode.Node) []published.Input) Found {
	f := Found{Waiting: map[published.Input][]string{}, Held: map[published.Input][]string{},
		Findings: HoldingFindings(hosts.Findings)}
	has, instances := GuardedInputs(hosts.Cluster), removedInstances(hosts)
	for _, n := range nodes {
		confirmed, used := annotationValues(n, published.ConfirmAnnotation), true
		from := madeFrom(n)
		for _, input := range from {
			if slices.Contains(has, input) || slices.Contains(holdingReasons(), input) {
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
		if f.holdNode(n, from) {
			used = false
		}
		if (len(confirmed) > 0 || n.Annotations[published.ConfirmFindingAnnotation] != "") && used {
			f.Used = append(f.Used, n)
		}
	}
	f.holdNewNodes(nodes)
	for _, list := range f.Waiting {
		slices.Sort(list)
	}
	return f
}

// holdNode holds a node for which a bundle without the findings is published. It reports whether a confirmation of the
// node is needed.
func (f Found) holdNode(n windowsnode.Node, from []published.Input) (needed bool) {
	for _, input := range slices.Sorted(maps.Keys(f.Findings)) {
		switch {
		case slices.Contains(from, input) || n.Annotations[published.DesiredAnnotation] == "":
		case slices.Contains(annotationValues(n, published.ConfirmFindingAnnotation), string(input)):
			needed = true
		default:
			f.Held[input] = append(f.Held[input], n.Name)
		}
	}
	return needed
}

// holdNewNodes holds nodes that have nothing yet, as long as others keep what they have.
func (f Found) holdNewNodes(nodes []windowsnode.Node) {
	for input, list := range f.Held {
		for _, n := range nodes {
			if n.Annotations[published.DesiredAnnotation] == "" &&
				!slices.Contains(annotationValues(n, published.ConfirmFindingAnnotation), string(input)) {
				list = append(list, n.Name)
			}
		}
		slices.Sort(list)
		f.Held[input] = list
	}
}

// annotationValues returns the values of an annotation.
func annotationValues(n windowsnode.Node, annotation string) []string {
	return published.ConfirmedNames(n.Annotations[annotation])
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

// KeepsPublished reports whether the node keeps its published bundle.
func (f Found) KeepsPublished(node string) bool {
	return slices.Contains(f.Waiting[published.InputMirrors], node) ||
		slices.Contains(f.Waiting[published.InputSettings], node) ||
		slices.ContainsFunc(holdingReasons(), func(input published.Input) bool {
			return slices.Contains(f.Held[input], node)
		})
}

// HeldChangesFunc returns a function that explains why a change of the inputs waits for a confirmation; empty when none does.
func HeldChangesFunc(nodes func(context.Context) ([]windowsnode.Node, error),
	told windowsnode.DesiredReader) func(context.Context, *desired.Hosts) (string, error) {
	return func(ctx context.Context, inputs *desired.Hosts) (string, error) {
		list, err := nodes(ctx)
		if err != nil {
			return "", err
		}
		return CompareInputs(inputs, list, func(n windowsnode.Node) []published.Input {
			return InputsOfPublished(told, n)
		}).ExplainHeld(), nil
	}
}

// mostNamed is how many nodes a message names.
const mostNamed = 3

// ExplainHeld lists held changes, the causes, and what to do, for people. It is empty if nothing is held.
func (f Found) ExplainHeld() string {
	var texts []string
	for _, input := range slices.Sorted(maps.Keys(f.Held)) {
		x := f.Findings[input]
		nodes := bundle.JoinFirst(f.Held[input], mostNamed, ", ", bundle.AndMore)
		texts = append(texts, bundle.Count(len(f.Held[input]),
			"node")+" will get no other bundle ("+nodes+"), because "+x.Message+" (fix: "+x.Fix+", or roll it out nevertheless: wmco confirm --all --input "+string(input)+")")
	}
	return strings.Join(texts, "; ")
}

// WaitingInputs returns the inputs that are gone and waited for, sorted.
func (f Found) WaitingInputs() []published.Input { return slices.Sorted(maps.Keys(f.Waiting)) }

// AsJoinedHost returns the host as its bundle is rendered: the node of an instance stays one when its entry is gone.
// Otherwise its kubelet would restart with another address, only to be removed, or to be as before when the entry is
// back.
func (f Found) AsJoinedHost(h render.Node) render.Node {
	if h.Backing == render.BackingNode && h.RemovedEntry != "" {
		h.Backing, h.Address = render.BackingInstance, h.RemovedEntry
	}
	return h
}

// selectInstances chooses the nodes that are annotated to confirm the deletion of all entries.
const selectInstances = published.InstanceLabel + "=true"

// ExplainDeletion names the deleted input, what its nodes keep, and what to do, for people.
func (f Found) ExplainDeletion(input published.Input) string {
	nodes := bundle.Count(len(f.Waiting[input]), "node")
	confirm := "wmco confirm --all --input " + string(input)
	switch input {
	case published.InputMirrors:
		return "all mirror sets were deleted: " + nodes +
			" with mirrors will get no other bundle (fix: restore a mirror set, or confirm with: " + confirm + ")"
	case published.InputSettings:
		return "ConfigMap windows-machine-config was deleted: " + nodes +
			" with its settings will get no other bundle (fix: restore it, create it empty for the defaults, or confirm with: " + confirm + ")"
	case published.InputInstances:
		return "ConfigMap windows-instances does not exist or has no entry: " + nodes +
			" will not be removed (fix: restore it, or remove them with: oc annotate nodes -l " + selectInstances +
			" " + published.RemoveAnnotation + "=true)"
	case published.InputUnreachableImages: // ExplainHeld
	}
	return ""
}
