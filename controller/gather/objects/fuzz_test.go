package objects_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v2"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
)

// FuzzPaths reads any bytes. Reading must not panic, must be deterministic, must give every object and finding a place, and
// must find every object that a parser of the whole file finds.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		proxy + "---\n" + node, "{kind: Node, apiVersion: v1, metadata: {name: a}}",
		"apiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata:\n    name: b\nkind: NodeList\n",
		"kind: List\nitems:\n- &a\n  apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n- <<: *a\n  metadata: {name: b}\n",
		`{"items": [{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}}], "kind": "List"}`,
		"? kind\n: Node\n? apiVersion\n: v1\n? metadata\n: name: a\n", "kind: \"No\\x64e\"\napiVersion: v1\nmetadata: {name: a}\n",
		"\"kind\" : 'Node' # x\napiVersion: v1\nmetadata: {\nname: a\n}\n", "a: \"\n- kind: Node\"\nkind: |-\n  Node\napiVersion: v1\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: node\nmetadata: {name: a}\n---\n- kind: Node\n---\nkind: List\nitems:\n- a\n- metadata: {name: a}\n", `{"kind": "List", "items": ["a", null, {"kind": "NODE"}]}`,
		"kind: List\nitems:\n  -\n    kind: Node\n    apiVersion: v1\n    metadata:\n      # c\n      name: a\n",
	} {
		f.Add([]byte(seed))
		f.Add([]byte(strings.ReplaceAll(seed, "\n", "\r\n")))
	}
	for seed := range uint64(30) {
		w := &stylist{Rand: rand.New(rand.NewPCG(seed, 3))}
		w.document()
		f.Add([]byte(w.text.String()))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set := readBytes(t, data)
		if diff := cmp.Diff(set, readBytes(t, data)); diff != "" {
			t.Errorf("the second result differs from the first:\n%s", diff)
		}
		checkPlaces(t, set, data)
		checkNothingIsMissed(t, set, data)
	})
}

// checkNothingIsMissed checks that every object that a parser of the whole file finds is found, or that there is an error.
func checkNothingIsMissed(t *testing.T, set objects.Set, data []byte) {
	t.Helper()
	for _, id := range wantedIn(data) {
		if !slices.ContainsFunc(set.Objects, func(o objects.Object) bool { return nameOf(o) == id }) && len(errorsOf(set)) == 0 {
			t.Errorf("%s was missed in\n%s", id, data)
		}
	}
}

func readBytes(t *testing.T, data []byte) objects.Set {
	t.Helper()
	set, err := objects.NewPathsReader([]string{"-"}, bytes.NewReader(data)).Read(context.Background(), someWants())
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// checkPlaces checks the places of all objects and findings of standard input.
func checkPlaces(t *testing.T, set objects.Set, data []byte) {
	t.Helper()
	last := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	for _, o := range set.Objects {
		if o.Source != "-" || o.Line < 1 || o.Line > last || o.Kind == "" || o.Name == "" || o.Version == "" || !json.Valid(o.JSON) {
			t.Errorf("the object %+v is not complete", o)
		}
	}
	for _, f := range set.Findings {
		skipped := f.Reason == reason.DocumentSkipped && f.Severity == bundle.SeverityWarning
		if f.Object.Source != "-" || f.Object.Line > last || f.Message == "" || f.Fix == "" || f.Severity != bundle.SeverityError && !skipped {
			t.Errorf("the finding %+v is not complete", f)
		}
	}
	if !slices.IsSortedFunc(set.Objects, func(a, b objects.Object) int {
		return strings.Compare(path.Join(a.Group, a.Kind, a.Namespace, a.Name), path.Join(b.Group, b.Kind, b.Namespace, b.Name))
	}) && !bytes.ContainsAny(data, "./") {
		t.Errorf("the objects are not sorted: %v", printed(set))
	}
}

func nameOf(o objects.Object) string {
	return strings.Join([]string{o.Group, o.Version, o.Kind, o.Namespace, o.Name}, " ")
}

// wantedIn names the wanted objects that a parser of the whole file finds, up to the first document it does not
// understand. Text with characters that only YAML 1.1 treats as line breaks is left out.
func wantedIn(data []byte) []string {
	if bytes.ContainsAny(data, "\ufeff\u0085\u2028\u2029") || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil
	}
	var found []string
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.SetStrict(true)
	for {
		var document any
		if err := decoder.Decode(&document); err != nil {
			return found
		}
		if isJSON(document) {
			found = append(found, wantedAmong(document, "", "", 0)...)
		}
	}
}

// isJSON reports whether JSON can represent the value.
func isJSON(value any) bool {
	switch v := value.(type) {
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isJSON(item) })
	case map[any]any:
		for key, item := range v {
			if key == nil || !isJSON(key) || !isJSON(item) {
				return false
			}
		}
	}
	return true
}

// wantedAmong names the wanted objects in a document; kind and version are those of its list.
func wantedAmong(document any, kind, version string, depth int) []string {
	object, ok := document.(map[any]any)
	if !ok || depth > 8 {
		return nil
	}
	own, isText := object["kind"].(string)
	switch {
	case object["kind"] != nil && !isText:
		return nil
	case own != "":
		kind = own
	}
	if own, ok := object["apiVersion"].(string); ok && own != "" {
		version = own
	}
	if listed, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		if kind = strings.TrimSuffix(kind, "List"); kind == "" {
			version = ""
		}
		var found []string
		for _, item := range listed {
			found = append(found, wantedAmong(item, kind, version, depth+1)...)
		}
		return found
	}
	metadata, _ := object["metadata"].(map[any]any)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	group, version, ok := strings.Cut(version, "/")
	if !ok {
		group, version = "", group
	}
	for _, w := range someWants() {
		if name != "" && w.Group == group && w.Version == version && w.Kind == kind && (w.Namespace == "" || w.Namespace == namespace) && (len(w.Names) == 0 || slices.Contains(w.Names, name)) {
			return []string{strings.Join([]string{group, version, kind, namespace, name}, " ")}
		}
	}
	return nil
}

// TestFuzzReferenceFindsObjects checks that the reference of the fuzz targets can fail them.
func TestFuzzReferenceFindsObjects(t *testing.T) {
	text := "kind: NodeList\napiVersion: v1\nitems:\n- metadata: {name: a}\n---\n" + proxy + "---\n" + secret
	want := []string{" v1 Node  a", "config.openshift.io v1 Proxy  cluster", " v1 Secret openshift-config pull-secret"}
	if diff := cmp.Diff(want, wantedIn([]byte(text))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// oneByteAtATime makes reads short.
type oneByteAtATime struct{ io.Reader }

// Read implements io.Reader.
func (r oneByteAtATime) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

func TestStandardInputInPieces(t *testing.T) {
	set, err := objects.NewPathsReader([]string{"-"}, oneByteAtATime{strings.NewReader(proxy)}).Read(context.Background(), someWants())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Proxy/cluster at -:1"}, printed(set)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
