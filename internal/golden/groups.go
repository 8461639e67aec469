package golden

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/render/preview"
	"wmco/render/review"
)

// Nodes that share their cluster layer are one group, so that a change of it is in git once:
//
//	want/nodes_joined/             what all nodes of the group have; no node has a name with _
//	want/nodes_joined/nodes/win-a/ what win-a alone has
//	want/win-b/                    a node that shares it with no other, whole
const (
	groupPrefix = "nodes_"
	nodesFolder = "nodes"
)

// group is the nodes with one cluster layer.
type group struct {
	shared []preview.File
	nodes  []desired.Rendered
}

// WantFiles returns the wanted output of a golden folder: each group of nodes once.
func WantFiles(list []desired.Rendered) ([]preview.File, error) {
	groups, err := groupsOf(list)
	if err != nil {
		return nil, err
	}
	var all []preview.File
	names := map[string]int{}
	for _, g := range groups {
		if len(g.nodes) == 1 {
			files, err := Files(g.nodes, preview.Options{})
			if err != nil {
				return nil, err
			}
			all = append(all, files...)
			continue
		}
		name := groupPrefix + string(g.nodes[0].Bundle.Cluster.Stage)
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s_%d", name, names[name])
		}
		files, err := g.files(name)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// groupsOf returns the groups in the order of their first nodes.
func groupsOf(list []desired.Rendered) ([]*group, error) {
	var groups []*group
	at := map[[sha256.Size]byte]*group{}
	for _, r := range list {
		shared, err := preview.LayerTree(r.Bundle, bundle.LayerCluster, sharedFindings(r), preview.Options{})
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		for _, f := range shared {
			fmt.Fprintf(sum, "%s %d\n%s", f.Path, len(f.Data), f.Data)
		}
		key := [sha256.Size]byte(sum.Sum(nil))
		if at[key] == nil {
			at[key] = &group{shared: shared}
			groups = append(groups, at[key])
		}
		at[key].nodes = append(at[key].nodes, r)
	}
	return groups, nil
}

// sharedFindings are those that are not about the node alone.
func sharedFindings(r desired.Rendered) bundle.Findings {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f bundle.Finding) bool { return slices.Contains(r.Own, f) })
}

func (g *group) files(name string) ([]preview.File, error) {
	all := below(name, g.shared)
	for _, r := range g.nodes {
		files, err := preview.LayerTree(r.Bundle, bundle.LayerNode, r.Own, preview.Options{})
		if err != nil {
			return nil, err
		}
		all = append(all, below(path.Join(name, nodesFolder, r.Node.ID()), files)...)
	}
	return all, nil
}

// below returns the files in a folder.
func below(folder string, files []preview.File) []preview.File {
	out := slices.Clone(files)
	for i := range out {
		out[i].Path = folder + "/" + out[i].Path
	}
	return out
}

// HasGroups reports whether a tree has nodes that share files. Earlier versions wrote each node whole.
func HasGroups(tree map[string][]byte) bool { return len(groupFolders(tree)) > 0 }

// groupFolders returns the names of the folders with what a group shares.
func groupFolders(tree map[string][]byte) []string {
	var folders []string
	for name := range tree {
		if folder, file, _ := strings.Cut(name, "/"); file == preview.LayerFile {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}

// groupedNodes returns the nodes of all groups of a tree.
func groupedNodes(tree map[string][]byte) ([]review.Node, error) {
	var nodes []review.Node
	for _, folder := range groupFolders(tree) {
		shared, own := map[string][]byte{}, map[string]map[string][]byte{}
		for name, data := range tree {
			rest, ok := strings.CutPrefix(name, folder+"/")
			if !ok {
				continue
			}
			inside, isOwn := strings.CutPrefix(rest, nodesFolder+"/")
			if !isOwn {
				shared[rest] = data
				continue
			}
			node, file, _ := strings.Cut(inside, "/")
			if own[node] == nil {
				own[node] = map[string][]byte{}
			}
			own[node][file] = data
		}
		for _, name := range slices.Sorted(maps.Keys(own)) {
			b, findings, err := preview.Join(shared, own[name])
			if err != nil {
				return nil, fmt.Errorf("reading the preview of %q: %w", name, err)
			}
			nodes = append(nodes, review.Node{Name: name, Bundle: b, Findings: findings})
		}
	}
	return nodes, nil
}
