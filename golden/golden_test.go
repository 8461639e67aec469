package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
	"wmco/render"
	"wmco/render/preview"
)

var update = flag.Bool("update", false, "rewrite the goldens, then fail")

// caseDirs returns the folders of a kind that have a case.
func caseDirs(t testing.TB, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(kind, "*", golden.CaseFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", kind, err)
	}
	dirs := make([]string, len(files))
	for i, f := range files {
		dirs[i] = filepath.Dir(f)
	}
	return dirs
}

// read reads the inputs of a case and masks secrets, once for all that have the same.
func read(t testing.TB, dir string, c golden.Case) *desired.Hosts {
	t.Helper()
	return inputs.get(t, inputsName(dir, c), func() *desired.Hosts {
		h, err := c.Read(t.Context(), dir, nil)
		must(t, err)
		return h
	})
}

// inputs are those of cases, by inputsName.
var inputs memo[*desired.Hosts]

func load(t testing.TB, dir string) golden.Case {
	t.Helper()
	c, err := golden.Load(dir)
	must(t, err)
	return c
}

// readAll reads the inputs of a case.
func readAll(t testing.TB, dir string) *desired.Hosts {
	t.Helper()
	return read(t, dir, load(t, dir))
}

// memo keeps what several tests need, by a name. What makes a value may end its test.
type memo[V any] struct{ made sync.Map }

type made[V any] struct {
	once  sync.Once
	value V
	whole bool
}

func (m *memo[V]) get(t testing.TB, name string, makeValue func() V) V {
	t.Helper()
	entry, _ := m.made.LoadOrStore(name, &made[V]{})
	x := entry.(*made[V])
	x.once.Do(func() { x.value, x.whole = makeValue(), true })
	if !x.whole {
		t.Fatalf("%s has failed in another test", name)
	}
	return x.value
}

// renderTree renders a case as wmco render writes it.
func renderTree(t testing.TB, dir string, c golden.Case) (map[string][]byte, bundle.Findings) {
	t.Helper()
	h, err := c.Read(t.Context(), dir, nil)
	must(t, err)
	list, findings, err := c.Render(h)
	if err != nil {
		t.Fatalf("%v: %+v", err, findings)
	}
	files, err := golden.Files(list, preview.Options{})
	must(t, err)
	return golden.Tree(files), findings
}

func renderCase(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	tree, _ := renderTree(t, dir, load(t, dir))
	if len(tree) == 0 {
		t.Fatal("the case has no Windows host")
	}
	return tree
}

// compareTree compares a whole tree, byte for byte: line endings are content.
func compareTree(t *testing.T, want string, got map[string][]byte) {
	t.Helper()
	old, err := golden.ReadTree(want)
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

func TestRefusedInputsListEveryError(t *testing.T) {
	for _, dir := range caseDirs(t, "errors") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := load(t, dir)
			_, findings, err := c.Render(read(t, dir, c))
			if !errors.Is(err, golden.ErrRefused) {
				t.Errorf("error %v, want ErrRefused", err)
			}
			data, err := json.MarshalIndent(findings, "", "  ")
			must(t, err)
			compareTree(t, golden.WantDir(dir), map[string][]byte{"findings.json": append(data, '\n')})
		})
	}
}

// TestEveryCatalogRowIsRendered: a row that no case renders has no golden that anyone has reviewed.
func TestEveryCatalogRowIsRendered(t *testing.T) {
	seen := map[render.RowID]bool{}
	for _, dir := range caseDirs(t, "cases") {
		for _, b := range bundles(t, readAll(t, dir)) {
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
		if row.ID == "desired-state-keys.pem" || row.ID == "authorized-key" {
			continue // only the operator has these keys (render, TestTheKeysOfTheOperatorAreAFileOfTheBundle and TestAuthorizedKeysOfAHost)
		}
		if row.ID == "policy/updates" {
			continue // it depends on a setting (render, TestWindowsDoesNotBootByItself)
		}
		if !seen[row.ID] {
			t.Errorf("no case renders row %s", row.ID)
		}
	}
}

// bundles renders every host of the inputs, by name or address.
func bundles(t *testing.T, h *desired.Hosts) map[string]render.Bundle {
	t.Helper()
	list, findings, err := h.RenderBundles(h.All)
	if err != nil || len(list) != len(h.All) {
		t.Fatalf("%v %+v", err, findings)
	}
	all := map[string]render.Bundle{}
	for _, r := range list {
		all[r.Node.ID()] = r.Bundle
	}
	return all
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
		want := digests(t, readAll(t, dir))
		for seed := range uint64(5) {
			shuffled := shuffle(t, dir, rand.New(rand.NewPCG(seed, seed)))
			if diff := cmp.Diff(want, digests(t, shuffled)); diff != "" {
				t.Errorf("%s, seed %d (-want +got):\n%s", name, seed, diff)
			}
		}
	}
}

func digests(t *testing.T, h *desired.Hosts) map[string]bundle.Digest {
	t.Helper()
	found := map[string]bundle.Digest{}
	for name, b := range bundles(t, h) {
		found[name] = b.Digest
	}
	return found
}

// shuffle reads the inputs of a case from a folder in which each object is a file.
func shuffle(t *testing.T, dir string, random *rand.Rand) *desired.Hosts {
	t.Helper()
	docs := map[string]string{}
	for _, from := range load(t, dir).From {
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
	var facts []bundle.Facts
	for _, n := range readAll(t, dir).All {
		if !n.Facts.IsZero() {
			facts = append(facts, n.Facts)
		}
	}
	random.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	h, err := desired.ReadHosts(t.Context(), desired.Source{Objects: objects.NewPathsReader([]string{folder}, nil), Gather: gather.Options{Facts: facts}})
	must(t, err)
	return h
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

// TestNoGoldenHoldsASecret: none of the texts that the example clusters mark as secret is in a golden. The tests of cases and hosts check all that is
// rendered, also what is not kept.
func TestNoGoldenHoldsASecret(t *testing.T) {
	for _, kind := range []string{"cases/*/want", "errors/*/want", "transitions/*/want", "machines/*/want", "hosts/*/want", "published"} {
		dirs, err := filepath.Glob(kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			tree, err := golden.ReadTree(dir)
			if err != nil {
				t.Fatal(err)
			}
			checkMasked(t, dir, tree)
		}
	}
}

func checkMasked(t testing.TB, dir string, tree map[string][]byte) {
	t.Helper()
	for path, data := range tree {
		for _, secret := range []string{"not-a-secret", "example-password", "example%25password", "example%password", "not a key", "PRIVATE KEY"} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s/%s has %q", dir, path, secret)
			}
		}
	}
}
