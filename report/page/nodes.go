package page

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/render/review"
)

// Limits of what a page shows of nodes.
const (
	mostFiles   = 500
	mostText    = 64 << 10
	mostOthers  = 20 // nodes of a group whose differences from the first one are shown
	mostDiffers = 50 // entries of one of them
)

// nodeGroup is nodes that have the same but for their own names and addresses. The first one is shown.
type nodeGroup struct {
	Anchor, Title, First, Stage string
	Nodes                       []string
	Services                    diagram
	Commands                    []serviceView
	Files                       []fileView
	MoreFiles                   int
	Rest                        []restView
	Others                      []otherNode

	provenance bundle.Provenance
	anchors    map[bundle.EntryID]string
	kinds      map[string]string // where entries of other kinds are
}

// serviceView is one service in words.
type serviceView struct {
	Anchor, Name, Description, Command, Definition string
	Causes                                         []string
}

// fileView is one file. Note says why there is no text.
type fileView struct {
	Anchor, Path, Access, Impact, Text, Note string
	Causes                                   []string
}

// restView is the entries of another kind, as YAML.
type restView struct {
	Anchor, Kind, Text string
	Entries            int
}

// otherNode is what one node has that the first one has not.
type otherNode struct {
	Name    string
	Changes []changeView
	More    int
}

func nodeGroups(p Page) ([]nodeGroup, error) {
	if p.Review != nil { // a review says what changes; with everything else, that could not be found
		return nil, nil
	}
	var groups [][]review.Node
	at := map[string]int{}
	for _, n := range p.Nodes {
		key, err := kinship(n.Bundle)
		if err != nil {
			return nil, err
		}
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], n)
	}
	var list []nodeGroup
	for i, nodes := range groups {
		g, err := groupOf(fmt.Sprintf("n%d", i), nodes)
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// kinship is equal for nodes with the same cluster layer, and with as many entries of each kind, services and files of the same names, in
// the node layer.
func kinship(b bundle.Bundle) (string, error) {
	cluster, err := json.Marshal(b.Cluster)
	if err != nil {
		return "", fmt.Errorf("comparing nodes: %w", err)
	}
	own := bundle.Bundle{Node: b.Node}
	parts := []string{string(cluster)}
	for _, k := range bundle.Kinds() {
		parts = append(parts, fmt.Sprint(k.Kind, listEntries(own.Values(k.Kind))))
	}
	for _, s := range own.Services() {
		parts = append(parts, s.Name)
	}
	for _, f := range own.Files() {
		parts = append(parts, f.Path)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\n")))), nil
}

// listEntries is the length of a list of entries of any type.
func listEntries(list any) int {
	if list == nil {
		return 0
	}
	return reflect.ValueOf(list).Len()
}

func groupOf(anchor string, nodes []review.Node) (nodeGroup, error) {
	first := nodes[0]
	g := nodeGroup{Anchor: anchor, First: first.Name, Stage: string(first.Bundle.Node.Stage), provenance: first.Bundle.Provenance, anchors: map[bundle.EntryID]string{}, kinds: map[string]string{}}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, n.Name)
	}
	g.Title = someOf(g.Nodes)
	g.Services = servicesDiagram(anchor, first.Bundle.Services(), nil)
	g.addFiles(first.Bundle)
	for _, add := range []func(bundle.Bundle) error{g.addServices, g.addRest} {
		if err := add(first.Bundle); err != nil {
			return nodeGroup{}, err
		}
	}
	for _, n := range nodes[1:min(1+mostOthers, len(nodes))] {
		g.Others = append(g.Others, differenceOf(first, n))
	}
	return g, nil
}

// noteNode keeps where an entry stands on the page.
func (g *nodeGroup) noteNode(id bundle.EntryID) (anchor string, causes []string) {
	anchor = fmt.Sprintf("%s-e%d", g.Anchor, len(g.anchors))
	g.anchors[id] = anchor
	for _, r := range g.provenance[id] {
		causes = append(causes, r.String())
	}
	return anchor, causes
}

func (g *nodeGroup) addServices(b bundle.Bundle) error {
	for _, s := range b.Services() {
		definition, err := yaml.Marshal(s)
		if err != nil {
			return fmt.Errorf("showing service %s: %w", s.Name, err)
		}
		v := serviceView{Name: s.Name, Description: s.Description, Command: bundle.CommandLine(s.Argv), Definition: string(definition)}
		v.Anchor, v.Causes = g.noteNode(bundle.KindService.ID(s.Name))
		g.Commands = append(g.Commands, v)
	}
	return nil
}

func (g *nodeGroup) addFiles(b bundle.Bundle) {
	files := b.Files()
	g.MoreFiles = max(0, len(files)-mostFiles)
	for _, f := range files[:min(mostFiles, len(files))] {
		v := fileView{Path: f.Path, Access: string(f.Access), Impact: review.Cost(f.Impact, nil)}
		v.Anchor, v.Causes = g.noteNode(bundle.KindFile.ID(f.Path))
		v.Text, v.Note = shownText(f.Content.Shown())
		g.Files = append(g.Files, v)
	}
}

// shownText is the text of a file as far as it is one for people.
func shownText(data []byte) (text, note string) {
	switch {
	case len(data) == 0:
		return "", "empty"
	case !utf8.Valid(data):
		return "", fmt.Sprintf("no text, %s", bundle.Count(len(data), "byte"))
	case len(data) > mostText:
		return strings.ToValidUTF8(string(data[:mostText]), ""), fmt.Sprintf("the first %d of %d bytes", mostText, len(data))
	}
	return string(data), ""
}

// addRest adds what is neither a file nor a service. Entries have no contents of secrets: those are beside them.
func (g *nodeGroup) addRest(b bundle.Bundle) error {
	for _, k := range bundle.Kinds() {
		values := b.Values(k.Kind)
		if k.Kind == bundle.KindFile || k.Kind == bundle.KindService || listEntries(values) == 0 {
			continue
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			return fmt.Errorf("showing entries of kind %s: %w", k.Kind, err)
		}
		shown, _ := shownText(text)
		g.kinds[string(k.Kind)] = fmt.Sprintf("%s-k%d", g.Anchor, len(g.Rest))
		g.Rest = append(g.Rest, restView{Anchor: g.kinds[string(k.Kind)], Kind: string(k.Kind), Text: shown, Entries: listEntries(values)})
	}
	return nil
}

// differenceOf is what a node has of its own. Their cluster layers are the same.
func differenceOf(first, n review.Node) otherNode {
	o := otherNode{Name: n.Name}
	changes := bundle.Diff(bundle.Bundle{Node: first.Bundle.Node}, bundle.Bundle{Node: n.Bundle.Node})
	o.More = max(0, len(changes)-mostDiffers)
	for _, c := range changes[:min(mostDiffers, len(changes))] {
		o.Changes = append(o.Changes, changeOf("", c))
	}
	return o
}
