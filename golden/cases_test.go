package golden

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
	"wmco/render/preview"
)

// change, in a test, changes what was rendered for a node; nil changes nothing.
type change func(testing.TB, *desired.Rendered)

func (c change) to(t testing.TB, list []desired.Rendered) []desired.Rendered {
	t.Helper()
	if c == nil {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		c(t, &list[i])
	}
	return list
}

// seenNode is a node of a case.
type seenNode struct {
	dir, name string
	stage     bundle.Stage
	tree      map[string][]byte
}

// renderNodes renders the nodes of a case, which tests do not change.
func renderNodes(t testing.TB, dir string) []seenNode {
	t.Helper()
	return rendered.get(t, dir, func() []seenNode { return renderChanged(t, dir, nil) })
}

// rendered is what renderNodes returned, by folder.
var rendered memo[[]seenNode]

func renderChanged(t testing.TB, dir string, c change) []seenNode {
	t.Helper()
	list, findings, err := load(t, dir).Render(readAll(t, dir))
	if err != nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	var nodes []seenNode
	for _, r := range c.to(t, list) {
		files, err := preview.Tree(r.Bundle, r.Findings, preview.Options{})
		must(t, err)
		n := seenNode{dir: dir, name: r.Node.ID(), stage: r.Bundle.Cluster.Stage, tree: map[string][]byte{}}
		for _, f := range files {
			n.tree[f.Path] = f.Data
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// baseDir returns the folder of the case that a case is shown as differences to: the one that is named as its platform.
func baseDir(dir string) string {
	platform, _, _ := strings.Cut(filepath.Base(dir), "-")
	return filepath.Join(filepath.Dir(dir), platform)
}

// caseTexts returns what want/ of a case has: of a case that is named as its platform, the first node of each stage whole; all other nodes as
// differences to it.
func caseTexts(t testing.TB, nodes, bases []seenNode) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for _, n := range nodes {
		i := slices.IndexFunc(bases, func(b seenNode) bool { return b.stage == n.stage })
		if i < 0 || bases[i].dir == n.dir && bases[i].name == n.name {
			texts[n.name+".txt"] = wholeText(t, n.tree)
			continue
		}
		title := fmt.Sprintf("%s in %s: what differs from %s in %s", n.name, filepath.Base(n.dir), bases[i].name, filepath.Base(bases[i].dir))
		texts[n.name+".diff"] = differences(title, essentials(t, bases[i].tree), essentials(t, n.tree))
	}
	return texts
}

// TestCasesRenderToTheirGoldens: what is not in the differences of a case is as in the whole goldens of its platform.
func TestCasesRenderToTheirGoldens(t *testing.T) {
	for _, dir := range caseDirs(t, "cases") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			nodes := renderNodes(t, dir)
			for _, n := range nodes {
				checkMasked(t, dir+"/"+n.name, n.tree)
			}
			compareTree(t, golden.WantDir(dir), caseTexts(t, nodes, renderNodes(t, baseDir(dir))))
		})
	}
}

// TestEachPlatformAndStageIsWholeOnce: a file that only some platform or stage has is in a golden that has all of the bundle.
func TestEachPlatformAndStageIsWholeOnce(t *testing.T) {
	whole := map[string]int{}
	for _, dir := range caseDirs(t, "cases") {
		nodes := renderNodes(t, dir)
		for name := range caseTexts(t, nodes, renderNodes(t, baseDir(dir))) {
			node, isWhole := strings.CutSuffix(name, ".txt")
			for _, n := range nodes {
				if isWhole && n.name == node {
					whole[fmt.Sprint(readAll(t, dir).Cluster.Platform, " ", n.stage)]++
				}
			}
		}
	}
	want := map[string]int{}
	for _, p := range bundle.Platforms() {
		for _, s := range []bundle.Stage{bundle.StageJoin, bundle.StageJoined} {
			want[fmt.Sprint(p, " ", s)] = 1
		}
	}
	if diff := cmp.Diff(want, whole); diff != "" {
		t.Errorf("whole goldens (-want +got):\n%s", diff)
	}
}
