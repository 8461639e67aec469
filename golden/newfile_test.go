package golden

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
	"wmco/render/review"
)

// newFile is one that no bundle has.
const newFile = `C:\k\new-file.conf`

// TestANewFileOfEveryNodeChangesFewGoldens: a reviewer sees it once for each platform and stage, and where a host gets all of its files. Scripts of
// cli, which are not in this count, change where they print a whole bundle: three of them.
func TestANewFileOfEveryNodeChangesFewGoldens(t *testing.T) {
	if *update {
		t.Skip("skipped: goldens are being rewritten")
	}
	changed := changedGoldens(t, addFile)
	t.Logf("%d goldens change:\n%s", len(changed), strings.Join(changed, "\n"))
	if most := 27; len(changed) > most || len(changed) < 12 {
		t.Errorf("%d goldens change, want at most %d and one for each platform and stage", len(changed), most)
	}
	for _, name := range changed {
		if strings.HasPrefix(name, "cases") && filepath.Ext(name) != ".txt" {
			t.Errorf("%s changes, although all nodes have the file", name)
		}
	}
}

// addFile adds a file of one line to a bundle.
func addFile(t testing.TB, r *desired.Rendered) {
	t.Helper()
	data := []byte("new: true\n")
	layer := &r.Bundle.Cluster
	layer.Files = append(slices.Clone(layer.Files), bundle.File{
		Path: newFile, Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactRestart, Content: bundle.Content{Data: data},
	})
	layer.Normalize()
	r.Bundle.Provenance = maps.Clone(r.Bundle.Provenance)
	r.Bundle.Provenance["file "+newFile] = []bundle.Ref{{Kind: "ConfigMap", Namespace: "openshift-windows-machine-config-operator", Name: "windows-machine-config"}}
	var err error
	r.Bundle.ClusterDigest, err = layer.Digest()
	must(t, err)
	r.Bundle.Digest, err = r.Bundle.Bundle.Digest()
	must(t, err)
}

// changedGoldens returns the goldens that are not as they are kept when every bundle is changed.
func changedGoldens(t *testing.T, c change) []string {
	t.Helper()
	var changed []string
	compare := func(dir string, texts map[string][]byte) {
		for name, text := range texts {
			kept, err := golden.ReadTree(dir)
			must(t, err)
			if !bytes.Equal(kept[name], text) {
				changed = append(changed, filepath.Join(dir, name))
			}
		}
	}
	var rendered memo[[]seenNode]
	nodes := func(dir string) []seenNode {
		return rendered.get(t, dir, func() []seenNode { return renderChanged(t, dir, c) })
	}
	for _, dir := range caseDirs(t, "cases") {
		compare(golden.WantDir(dir), caseTexts(t, nodes(dir), nodes(baseDir(dir))))
	}
	hosts := hostTrees{change: c}
	for _, dir := range caseDirs(t, "hosts") {
		compare(golden.WantDir(dir), hosts.texts(t, dir))
	}
	compare("published", publishedTexts(t, c))
	for _, dir := range transitionDirs(t) {
		x := loadTransition(t, dir)
		compare(golden.WantDir(dir), reviewTexts(t, review.Compare(x.before(t, dir, c), nodesOf(t, dir, x.After, c))))
	}
	slices.Sort(changed)
	return changed
}
