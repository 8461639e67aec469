package rollout

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle/nodestate"
	"wmco/controller/windowsnode"
	"wmco/report/fleet"
)

// keptRows are the rows of the nodes as they were counted last, by name. A Node's event makes one row again: what a row says follows from the version
// of the Node alone, but for one whose agent does not report, which says for how long.
type keptRows map[string]keptRow

type keptRow struct {
	uid     types.UID
	version string
	row     fleet.Row
}

// rowOf returns the row of a node.
func (k keptRows) rowOf(node windowsnode.Node, silence windowsnode.Silence) fleet.Row {
	silent := silence.IsSilent(node)
	kept, known := k[node.Name]
	if known && !silent && kept.uid == node.UID && kept.version == node.ResourceVersion && node.ResourceVersion != "" {
		return kept.row
	}
	row := fleet.Of(node, silence)
	delete(k, node.Name)
	if !silent && row.State != nodestate.NotReporting {
		k[node.Name] = keptRow{node.UID, node.ResourceVersion, row}
	}
	return row
}

// differing returns the names of the nodes whose kept rows are not what their Nodes give now, sorted, and forgets those rows.
func (k keptRows) differing(nodes map[string]windowsnode.Node, silence windowsnode.Silence) []string {
	var names []string
	for name, node := range nodes {
		if _, known := k[name]; known && !reflect.DeepEqual(k.rowOf(node, silence), fleet.Of(node, silence)) {
			names = append(names, name)
			delete(k, name)
		}
	}
	slices.Sort(names)
	return names
}

// retainNodes forgets the nodes that are gone.
func (k keptRows) retainNodes(nodes map[string]windowsnode.Node) {
	maps.DeleteFunc(k, func(name string, _ keptRow) bool { _, ok := nodes[name]; return !ok })
}
