package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"wmco/internal/golden"
	"wmco/render/review"
)

// reviewFile is the name of a review as JSON.
const reviewFile = "diff.json"

// transitionFile is the name of the file that makes a folder a transition.
const transitionFile = "transition.yaml"

// transition is two states of one cluster, whose difference is kept.
type transition struct {
	Before golden.Case `json:"before"`
	// Preview, in place of before, is a folder below the transition's that render --out wrote, such as one of an older
	// version of this program.
	Preview string      `json:"preview,omitempty"`
	After   golden.Case `json:"after"`
	// Nodes are names or addresses; empty means every Windows host.
	Nodes []string `json:"nodes,omitempty"`
}

func loadTransition(t testing.TB, dir string) transition {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, transitionFile))
	must(t, err)
	var x transition
	if err := yaml.UnmarshalStrict(data, &x); err != nil {
		t.Fatalf("reading transition %q: %v", dir, err)
	}
	x.Before.Nodes, x.After.Nodes = x.Nodes, x.Nodes
	return x
}

// transitionDirs returns the folders of transitions.
func transitionDirs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("transitions", "*", transitionFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transitions: %v", err)
	}
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	return files
}

func (x transition) before(t testing.TB, dir string, c change) []review.Node {
	t.Helper()
	if x.Preview == "" {
		return nodesOf(t, dir, x.Before, c)
	}
	nodes, err := golden.Previewed(filepath.Join(dir, x.Preview))
	must(t, err)
	return nodes
}

func nodesOf(t testing.TB, dir string, c golden.Case, change change) []review.Node {
	t.Helper()
	list, findings, err := c.Render(read(t, dir, c))
	if err != nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	return golden.Reviewed(change.to(t, list))
}

// TestTransitions: what changes between two states of a cluster, what it costs and which objects caused it, in all three
// formats, byte for byte.
func TestTransitions(t *testing.T) {
	for _, dir := range transitionDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			x := loadTransition(t, dir)
			r := review.Compare(x.before(t, dir, nil), nodesOf(t, dir, x.After, nil))
			compareTree(t, golden.WantDir(dir), reviewTexts(t, r))
		})
	}
}

// reviewTexts returns what want/ of a transition has.
func reviewTexts(t testing.TB, r review.Review) map[string][]byte {
	t.Helper()
	data, err := json.MarshalIndent(r, "", "  ")
	must(t, err)
	return map[string][]byte{
		"diff.txt": []byte(r.Text()), "diff.md": []byte(r.Markdown()), reviewFile: []byte(oneLineEach(t, reviewFile, string(data)+"\n")),
	}
}
