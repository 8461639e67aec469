// Package deletions finds inputs that were deleted as a whole while nodes use them. That is mostly a
// mistake, and would change every node at once.
//
//	inputs, Nodes (desired-bundle, confirm-deleted) --CompareInputs--> deleted inputs, and the nodes that keep their published bundle
//
// The inputs of a bundle are on its Node, beside its digest. So an operator that has just started decides like one that saw
// the deletion. A change that would stop all pods is held in the same way: the bundle of a node that has confirmed it is
// marked with the finding. The package makes no requests.
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

// InputsOfPublished returns the guarded inputs of the bundle that is published on a Node, for CompareInputs. They must be
// signed, except while the agent is of an older operator: then a deletion is guarded too, and inputs can only prevent an
// update.
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

// GuardedInputs returns the guarded inputs that the cluster has, sorted. Mirror sets without an entry do not count, because
// they have no effect. An empty settings object counts, because it means the defaults.
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

// BundleInputMarks returns the marks on the Node for a bundle of these inputs, sorted: the guarded inputs, and the
// confirmed findings.
func BundleInputMarks(hosts *desired.Hosts) []published.Input {
	return slices.Sorted(slices.Values(slices.Concat(GuardedInputs(hosts.Cluster),
		slices.Collect(maps.Keys(HoldingFindings(hosts.Findings))))))
}

// Found are deleted inputs and held changes.
type Found struct {
	// Waiting are the nodes that keep their published bundles, by the deleted input. For published.InputInstances they
	// are the nodes of instances: none of them is removed, and they get other changes.
	Waiting map[published.Input][]string
	// Held are the nodes that keep their published bundles because of a finding, Findings the findings. Each is about a
	// change that would stop all pods.
	Held     map[published.Input][]string
	Findings map[published.Input]bundle.Finding
	// Used are the nodes with a confirmation that is no longer needed, so that it counts for one deletion.
	Used []windowsnode.Node
}

// CompareInputs compares the inputs with those of the published bundles, which madeFrom returns. An annotation that cannot
// be read, or that the operator did not write, is ignored, because it is written again.
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

// holdNewNodes holds nodes without a bundle as long as others are held.
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

// removedInstances returns the nodes whose entry in windows-instances was removed.
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

// HeldChangesFunc returns a function that explains held changes of the inputs; its text is empty if none is held.
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

// ExplainHeld lists held changes, their causes, and what to do. It is empty if nothing is held.
func (f Found) ExplainHeld() string {
	var texts []string
	for _, input := range slices.Sorted(maps.Keys(f.Held)) {
		x := f.Findings[input]
		nodes := bundle.JoinFirst(f.Held[input], mostNamed, ", ", bundle.AndMore)
		texts = append(texts, bundle.Count(len(f.Held[input]),
			"node")+" ("+nodes+") will keep the published bundle until you confirm the change, because "+x.Message+" (fix: "+x.Fix+", or roll it out nevertheless: wmco confirm --all --input "+string(input)+")")
	}
	return strings.Join(texts, "; ")
}

// WaitingInputs returns the deleted inputs that wait for a confirmation, sorted.
func (f Found) WaitingInputs() []published.Input { return slices.Sorted(maps.Keys(f.Waiting)) }

// AsJoinedHost returns the host for rendering. The node of a removed entry stays an instance: otherwise its kubelet would
// restart with another address before its removal, or before the entry is added again.
func (f Found) AsJoinedHost(h render.Node) render.Node {
	if h.Backing == render.BackingNode && h.RemovedEntry != "" {
		h.Backing, h.Address = render.BackingInstance, h.RemovedEntry
	}
	return h
}

// selectInstances chooses the nodes that are annotated to confirm the deletion of all entries.
const selectInstances = published.InstanceLabel + "=true"

// ExplainDeletion describes a deleted input, its nodes, and what to do.
func (f Found) ExplainDeletion(input published.Input) string {
	nodes := bundle.Count(len(f.Waiting[input]), "node")
	confirm := "wmco confirm --all --input " + string(input)
	switch input {
	case published.InputMirrors:
		return "all mirror sets were deleted: " + nodes +
			" with mirrors will keep the published bundle until you confirm that (fix: restore a mirror set, or confirm with: " + confirm + ")"
	case published.InputSettings:
		return "ConfigMap windows-machine-config was deleted: " + nodes +
			" with its settings will keep the published bundle until you confirm that (fix: restore it, create it empty for the defaults, or confirm with: " + confirm + ")"
	case published.InputInstances:
		return "ConfigMap windows-instances does not exist or has no entry: " + nodes +
			" will not be removed (fix: restore it, or remove them with: oc annotate nodes -l " + selectInstances +
			" " + published.RemoveAnnotation + "=true)"
	case published.InputUnreachableImages: // ExplainHeld
	}
	return ""
}
