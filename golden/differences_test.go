package golden

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/render/preview"
)

// TestDifferences of two trees, as a reviewer reads them.
func TestDifferences(t *testing.T) {
	base := map[string]string{
		"same": "a\n", "old.conf": "gone\n", "services.yaml": "services:\n- argv:\n  - one\n  - two\n  name: first\n- argv:\n  - one\n  - two\n  - three\n  name: second\n",
		"plan.txt": "1\n2\n3\n4\n", "short": "a\n",
	}
	got := map[string]string{
		"same": "a\n", "new.conf": "here\n", "services.yaml": "services:\n- argv:\n  - one\n  - two\n  name: first\n- argv:\n  - one\n  - 2\n  - three\n  name: second\n",
		"plan.txt": "1\n2\n4\n5\n", "short": "b",
	}
	want := `# title
=== new.conf (new)
+here
=== old.conf (absent)
=== plan.txt
@@
-3
+5
=== services.yaml
@@ services: second
 - argv:
   - one
-  - two
+  - 2
   - three
   name: second
=== short (whole)
+b
`
	if diff := cmp.Diff(want, string(differences("title", base, got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("# title\n# nothing\n", string(differences("title", base, base))); diff != "" {
		t.Errorf("of equal trees (-want +got):\n%s", diff)
	}
}

// TestADifferenceShowsEveryLine that changes: each line of each file is changed alone. Lists of the manifest that are left out are compared below.
func TestADifferenceShowsEveryLine(t *testing.T) {
	for _, name := range []string{"azure", "none-proxy"} {
		for _, n := range renderNodes(t, filepath.Join("cases", name))[:1] {
			for file, data := range n.tree {
				checkEveryLine(t, n.dir+" "+n.name, file, string(data))
			}
		}
	}
}

func checkEveryLine(t *testing.T, node, file, text string) {
	t.Helper()
	had := essentials(t, map[string][]byte{file: []byte(text)})
	lines := strings.SplitAfter(text, "\n")
	shown := 0
	for i, line := range lines {
		lines[i] = otherLine(line)
		has := essentials(t, map[string][]byte{file: []byte(strings.Join(lines, ""))})
		isShown := strings.Contains(string(differences("", had, has)), "\n+")
		if isShown {
			shown++
		}
		if lines[i] != line && !isShown && file != preview.ManifestFile {
			t.Errorf("%s: %s: no difference shows a change of %q", node, file, line)
		}
		lines[i] = line
	}
	if file == preview.ManifestFile && shown < 20 {
		t.Errorf("%s: a change of %d lines of the manifest is shown", node, shown)
	}
}

// otherLine returns a line of a document with another value.
func otherLine(line string) string {
	at := strings.LastIndexAny(line, "abcdefghijklmnopqrstuvwxyz0123456789")
	switch {
	case at < 0:
		return line
	case strings.Contains(line, ": true"):
		return strings.Replace(line, ": true", ": false", 1)
	case line[at] <= '9':
		return line[:at] + string('9'-line[at]+'0') + line[at+1:]
	}
	return line[:at] + "Q" + line[at:]
}

// TestOtherDocumentsHaveTheListsOfTheManifest that differences leave out.
func TestOtherDocumentsHaveTheListsOfTheManifest(t *testing.T) {
	for _, dir := range caseDirs(t, "cases") {
		for _, n := range renderNodes(t, dir) {
			for list, file := range listsElsewhere() {
				var document map[string]any
				must(t, yaml.Unmarshal(n.tree[file], &document))
				entries, _ := document[list].([]any)
				for _, e := range entries {
					delete(e.(map[string]any), "commandLine") // made from argv
				}
				if diff := cmp.Diff(sortedEntries(t, manifestEntries(t, n, list)), sortedEntries(t, entries)); diff != "" {
					t.Errorf("%s %s: %s (-manifest +%s):\n%s", dir, n.name, list, file, diff)
				}
			}
		}
	}
}

// manifestEntries returns a list of both layers of a manifest.
func manifestEntries(t *testing.T, n seenNode, list string) []any {
	t.Helper()
	var manifest struct {
		Layers []struct {
			Layer map[string]any `json:"layer"`
		} `json:"layers"`
	}
	must(t, json.Unmarshal(n.tree[preview.ManifestFile], &manifest))
	var all []any
	for _, l := range manifest.Layers {
		entries, _ := l.Layer[list].([]any)
		all = append(all, entries...)
	}
	return all
}

func sortedEntries(t *testing.T, entries []any) []string {
	t.Helper()
	texts := map[string]bool{}
	for _, e := range entries {
		data, err := json.Marshal(e)
		must(t, err)
		texts[string(data)] = true
	}
	return slices.Sorted(maps.Keys(texts))
}

// TestThePlanAsTextHasAllFields of an observation, of which differences of hosts have plan.txt alone.
func TestThePlanAsTextHasAllFields(t *testing.T) {
	o := protocol.Observation{
		Applied: bundle.Of([]byte("a")), Interrupted: bundle.Of([]byte("b")), Impact: bundle.ImpactDrain, Restarts: []string{"kubelet"},
		Actions: []protocol.Action{{Verb: protocol.VerbWrite, Entry: "file x", Reason: protocol.ReasonAbsent, Impact: bundle.ImpactRestart, Size: 7}},
		Missing: []protocol.Missing{{Digest: bundle.Of([]byte("c"))}, {Digest: bundle.Of([]byte("d")), Parts: []int{2, 3}}},
		Foreign: []string{"file y"}, Adopt: []bundle.EntryID{"feature z"}, RebootPending: []bundle.EntryID{"feature u"}, Waiting: []bundle.EntryID{"endpoint v"},
		Unhealthy: []protocol.Unhealthy{{Service: "containerd", Reason: "no pipe"}}, Notes: []string{"a note"},
	}
	value := reflect.ValueOf(o)
	for i := range value.NumField() {
		name := value.Type().Field(i).Name
		constant := slices.Contains([]string{"Schema", "Program", "Bundle", "InSync", "Facts"}, name)
		if value.Field(i).IsZero() != constant {
			t.Errorf("the test has no value for %s, or plan.txt none", name)
		}
	}
	want := `write   file x                                                                      absent      restart, 7 bytes

impact drain
applied         ` + o.Applied.Short() + `
interrupted     ` + o.Interrupted.Short() + `
restarts        kubelet
missing         ` + o.Missing[0].Digest.Short() + `
missing         ` + o.Missing[1].Digest.Short() + ` parts [2 3]
foreign         file y
adopted         feature z
reboot pending  feature u
waiting         endpoint v
note            a note
unhealthy       containerd: no pipe
`
	if diff := cmp.Diff(want, planText(o)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
