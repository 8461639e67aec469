package golden

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/render"
)

var update = flag.Bool("update", false, "rewrite the goldens, then fail")

// caseDirs are the folders of a kind that hold a case.
func caseDirs(t testing.TB, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kind, "*", CaseFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", kind, err)
	}
	dirs := make([]string, len(files))
	for i, f := range files {
		dirs[i] = filepath.Dir(f)
	}
	return dirs
}

func loadCase(t testing.TB, dir string) (Case, gather.Result) {
	t.Helper()
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Gather(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c, r
}

func options(t testing.TB, c Case, dir string) render.Options {
	t.Helper()
	o, err := c.Options(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func renderCase(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	c, r := loadCase(t, dir)
	list, findings, err := c.Render(r, options(t, c, dir))
	if err != nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	tree, err := Tree(list)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree) == 0 {
		t.Fatal("the case has no Windows machine")
	}
	return tree
}

func TestCasesRenderToTheirGoldens(t *testing.T) {
	for _, dir := range caseDirs(t, "cases") {
		t.Run(filepath.Base(dir), func(t *testing.T) { compareTree(t, filepath.Join(dir, "want"), renderCase(t, dir)) })
	}
}

// compareTree compares a whole tree, byte for byte: line endings are content.
func compareTree(t *testing.T, want string, got map[string][]byte) {
	t.Helper()
	old, err := ReadTree(want)
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Sorted(maps.Keys(old))
	for path := range got {
		if _, ok := old[path]; !ok {
			paths = append(paths, path)
		}
	}
	changed := false
	for _, path := range slices.Sorted(slices.Values(paths)) {
		a, had := old[path]
		b, has := got[path]
		if had && has && string(a) == string(b) {
			continue
		}
		changed = true
		t.Errorf("%s\n%s", path, diff.Diff("want", a, "got", b))
	}
	if changed && *update {
		rewriteTree(t, want, got)
	}
}

func rewriteTree(t *testing.T, dir string, tree map[string][]byte) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for path, data := range tree {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedInputsTellEveryError(t *testing.T) {
	for _, dir := range caseDirs(t, "errors") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c, r := loadCase(t, dir)
			_, findings, err := c.Render(r, options(t, c, dir))
			if !errors.Is(err, ErrRefused) {
				t.Errorf("error %v, want ErrRefused", err)
			}
			data, err := json.MarshalIndent(findings, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			compareTree(t, filepath.Join(dir, "want"), map[string][]byte{"findings.json": append(data, '\n')})
		})
	}
}

// TestTransitionsTellEachChange: what changes between two states of a cluster, what it costs and who caused it, in all
// three formats, byte for byte.
func TestTransitionsTellEachChange(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("transitions", "*", TransitionFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transitions: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			transition, err := LoadTransition(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, err := transition.Review(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			compareTree(t, filepath.Join(dir, "want"), map[string][]byte{"diff.txt": []byte(r.Text()), "diff.md": []byte(r.Markdown()), "diff.json": append(data, '\n')})
		})
	}
}

// TestEveryCatalogRowIsRendered: a row that no case produces has no golden that anyone has looked at.
func TestEveryCatalogRowIsRendered(t *testing.T) {
	seen := map[render.RowID]bool{}
	for _, dir := range caseDirs(t, "cases") {
		c, r := loadCase(t, dir)
		fleet, _, err := render.NewFleet(r.Cluster, options(t, c, dir))
		if err != nil || fleet == nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, n := range r.Nodes {
			b, _, err := fleet.Node(n)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range b.Layers() {
				for _, id := range l.IDs() {
					row, ok := render.FindRow(id)
					if !ok {
						t.Fatalf("%s: %q has no row in the catalog", dir, id)
					}
					seen[row.ID] = true
				}
			}
		}
	}
	for _, row := range render.Catalog() {
		if !seen[row.ID] {
			t.Errorf("no case renders row %s", row.ID)
		}
	}
}

func TestFiftyRendersGiveTheSameBytes(t *testing.T) {
	dir := filepath.Join("cases", "none-proxy")
	want := renderCase(t, dir)
	for range 50 {
		if diff := cmp.Diff(want, renderCase(t, dir)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestShuffledInputsGiveTheSameBundles writes every object of a case into a file of its own, in any order and name.
func TestShuffledInputsGiveTheSameBundles(t *testing.T) {
	for _, name := range []string{"aws", "none-trusted-ca", "none-overrides"} {
		dir := filepath.Join("cases", name)
		c, r := loadCase(t, dir)
		want := digests(t, r)
		for seed := range uint64(5) {
			shuffled := shuffle(t, dir, c, rand.New(rand.NewPCG(seed, seed)))
			if diff := cmp.Diff(want, digests(t, shuffled)); diff != "" {
				t.Errorf("%s, seed %d (-want +got):\n%s", name, seed, diff)
			}
		}
	}
}

func digests(t *testing.T, r gather.Result) map[string]bundle.Digest {
	t.Helper()
	fleet, findings, err := render.NewFleet(r.Cluster, render.Options{})
	if err != nil || fleet == nil {
		t.Fatalf("%v %+v", err, findings)
	}
	found := map[string]bundle.Digest{}
	for _, n := range r.Nodes {
		b, _, err := fleet.Node(n)
		if err != nil {
			t.Fatal(err)
		}
		found[n.ID()] = b.Digest
	}
	return found
}

// everything is a reader that hands out what another reader found, each object as a file.
func shuffle(t *testing.T, dir string, c Case, random *rand.Rand) gather.Result {
	t.Helper()
	docs := map[string]string{}
	for _, from := range c.From {
		err := filepath.WalkDir(filepath.Join(dir, from), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			for doc := range strings.SplitSeq("\n"+string(data), "\n---\n") {
				addDocument(t, docs, doc)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	for i, key := range random.Perm(len(docs)) {
		doc := docs[slices.Sorted(maps.Keys(docs))[key]]
		path := filepath.Join(folder, string(rune('a'+random.IntN(26)))+string(rune('a'+i%26))+string(rune('a'+i/26))+".yaml")
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader := objects.Paths([]string{folder}, nil)
	_, original := loadCase(t, dir)
	var facts []bundle.Facts
	for _, n := range original.Nodes {
		if !n.Facts.IsZero() {
			facts = append(facts, n.Facts)
		}
	}
	random.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	r, err := gather.Gather(t.Context(), reader, gather.Options{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// addDocument keeps the last object of each name, as --from does.
func addDocument(t *testing.T, docs map[string]string, doc string) {
	t.Helper()
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
		t.Fatal(err)
	}
	for _, item := range object.Items {
		data, err := yaml.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		addDocument(t, docs, string(data))
	}
	if object.Kind == "" || object.Items != nil {
		return
	}
	docs[strings.Join([]string{object.APIVersion, object.Kind, object.Metadata.Namespace, object.Metadata.Name}, "/")] = doc
}

// secretTexts are what the example clusters mark as secret; none of it may stand in any golden.
func TestNoGoldenHoldsASecret(t *testing.T) {
	for _, kind := range []string{"cases", "errors", "transitions", "machines", "hosts"} {
		dirs, err := filepath.Glob(filepath.Join(kind, "*", "want"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			tree, err := ReadTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			for path, data := range tree {
				for _, secret := range []string{"not-a-secret", "example-password", "example%25password", "example%password", "not a key", "PRIVATE KEY"} {
					if strings.Contains(string(data), secret) {
						t.Errorf("%s/%s holds %q", dir, path, secret)
					}
				}
			}
		}
	}
}
