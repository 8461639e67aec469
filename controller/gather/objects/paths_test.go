package objects_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
)

const (
	proxy  = "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata:\n  name: cluster\n"
	node   = "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n"
	secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: pull-secret\n  namespace: openshift-config\n"
	pod    = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n"
)

// TestForms reads one file in every form that an object can have.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          []string
	}{
		{"a document alone", proxy, []string{"Proxy/cluster at f.yaml:1"}},
		{"documents of other kinds are skipped", pod + "---\n" + proxy + "---\n" + pod, []string{"Proxy/cluster at f.yaml:6"}},
		{"a separator may come first, and hold a comment", "--- # first\n" + proxy + "--- # second\n" + node, []string{"Node/a at f.yaml:7", "Proxy/cluster at f.yaml:2"}},
		{"a separator may hold the document", "--- {apiVersion: v1, kind: Node, metadata: {name: a}}\n---\t{apiVersion: v1, kind: Node, metadata: {name: b}}\n", []string{"Node/a at f.yaml:1", "Node/b at f.yaml:2"}},
		{"documents end with dots too", node + "...\n# done\n---\n" + proxy + "...\n", []string{"Node/a at f.yaml:1", "Proxy/cluster at f.yaml:8"}},
		{"an object begins after comments", "# generated\n\n" + node, []string{"Node/a at f.yaml:3"}},
		{"a directive precedes a document", "%YAML 1.1\n---\n" + node, []string{"Node/a at f.yaml:3"}},
		{"line breaks of Windows", strings.ReplaceAll("---\n"+proxy+"---\n"+node, "\n", "\r\n"), []string{"Node/a at f.yaml:7", "Proxy/cluster at f.yaml:2"}},
		{"line breaks of old Macs", strings.ReplaceAll("---\n"+proxy+"---\n"+node, "\n", "\r"), []string{"Node/a at f.yaml:7", "Proxy/cluster at f.yaml:2"}},
		{"a byte order mark", "\ufeff---\n" + proxy, []string{"Proxy/cluster at f.yaml:2"}},
		{"byte order marks of files put together", "\ufeff" + proxy + "\ufeff---\n" + node, []string{"Node/a at f.yaml:6", "Proxy/cluster at f.yaml:1"}},
		{"UTF-16 as PowerShell writes it", inUTF16(binary.LittleEndian, "---\r\n"+proxy+"# \U0001f427 \r\n"), []string{"Proxy/cluster at f.yaml:2"}},
		{"UTF-16 of the other order", inUTF16(binary.BigEndian, proxy), []string{"Proxy/cluster at f.yaml:1"}},
		{"the dashes of a certificate split nothing", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: trusted-ca\n  namespace: openshift-config\ndata:\n  a: |\n    -----BEGIN CERTIFICATE-----\n    ---\n    -----END CERTIFICATE-----\n  b: \"x\n-----END CERTIFICATE-----\n\"\n", []string{"ConfigMap/openshift-config/trusted-ca at f.yaml:1"}},
		{"the kind may be last", "metadata:\n  name: cluster\nspec: {}\napiVersion: config.openshift.io/v1\nkind: Proxy\n", []string{"Proxy/cluster at f.yaml:1"}},
		{"the kind may be quoted, and commented", "'apiVersion': \"v1\"\n\"kind\" :   'Node' # \"Pod\"\nmetadata: # {name: x}\n  name: \"a\" # b\n", []string{"Node/a at f.yaml:1"}},
		{"the kind may be on the next line", "apiVersion: v1\nkind:\n  Node\nmetadata:\n  name:\n    a\n", []string{"Node/a at f.yaml:1"}},
		{"the kind may be escaped", "apiVersion: v1\n\"kin\\x64\": Node\nmetadata: {name: a}\n---\napiVersion: v1\nkind: \"No\\u0064e\"\nmetadata: {name: b}\n---\n{apiVersion: v1, kind: \"No\\\nde\", metadata: {name: c}}\n", []string{"Node/a at f.yaml:1", "Node/b at f.yaml:5", "Node/c at f.yaml:9"}},
		{"the kind may be a block", "apiVersion: v1\nkind: >-\n  Node\nmetadata: {name: a}\n", []string{"Node/a at f.yaml:1"}},
		{"the kind may be tagged or encoded", "apiVersion: v1\nkind: !!str Node\nmetadata: {name: a}\n---\napiVersion: v1\nkind: !!binary Tm9kZQ==\nmetadata: {name: b}\n", []string{"Node/a at f.yaml:1", "Node/b at f.yaml:5"}},
		{"keys may be complex", "? apiVersion\n: v1\n? kind\n: Node\n? metadata\n: name: a\n", []string{"Node/a at f.yaml:1"}},
		{"a mapping may be indented", "  apiVersion: v1\n  kind: Node\n  metadata:\n      name: a\n", []string{"Node/a at f.yaml:1"}},
		{"a mapping in flow style", "{kind: Node, apiVersion: v1, metadata: {name: a}}\n", []string{"Node/a at f.yaml:1"}},
		{"a mapping in flow style over lines at the margin", "apiVersion: v1\nkind: Node\nmetadata: {\nname: a\n}\n", []string{"Node/a at f.yaml:1"}},
		{"JSON in a YAML file", "# comment\n{\"apiVersion\": \"v1\", \"kind\": \"Node\",\n\"metadata\": {\"name\": \"a\"}} # done\n", []string{"Node/a at f.yaml:2"}},
		{"JSON with a comma too many, which YAML allows", "{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"},}\n", []string{"Node/a at f.yaml:1"}},
		{"JSON with an escaped kind", `{"apiVersion": "v1", "k\u0069nd": "Node", "metadata": {"name": "a"}}`, []string{"Node/a at f.yaml:1"}},
		{"JSON objects after each other", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Pod"}` + "\n" + `{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`, []string{"Node/a at f.yaml:1", "Node/b at f.yaml:2"}},
		{"JSON and YAML in one file", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}` + "\n---\n" + proxy, []string{"Node/a at f.yaml:1", "Proxy/cluster at f.yaml:3"}},
		{"a line separator inside text", "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  annotations:\n    x: \"\u2028y\u0085z\"\n", []string{"Node/a at f.yaml:1"}},
		{"a word of many quotes", "apiVersion: v1\nkind: Node\nmetadata:\n  x: " + strings.Repeat(`x"'`, 1<<18) + "\n  name: a\n", []string{"Node/a at f.yaml:1"}},
		{"no object at all", "- a\n- b\n", []string{"warning DocumentSkipped at f.yaml:1"}},
		{"a list of objects that is no Kubernetes list", "- " + strings.ReplaceAll(node, "\n", "\n  ") + "\n", []string{"warning DocumentSkipped at f.yaml:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"f.yaml": c.content})
			if diff := cmp.Diff(c.want, printed(read(t, dir, []string{"f.yaml"}, nil, someWants()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func inUTF16(order binary.AppendByteOrder, text string) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

// TestLists reads lists in every form.
func TestLists(t *testing.T) {
	const list = "apiVersion: v1\nkind: List\n"
	for _, c := range []struct {
		name, content string
		want          []string
	}{
		{"a list whose kind comes last", "---\napiVersion: config.openshift.io/v1\nitems:\n- apiVersion: config.openshift.io/v1\n  kind: Proxy\n  metadata:\n    name: cluster\nkind: ProxyList\nmetadata: {}\n", []string{"Proxy/cluster at f.yaml:4"}},
		{"items are indented or not", list + "items:\n  - apiVersion: v1\n    kind: Node\n    metadata:\n      name: a\n  -   apiVersion: v1\n      kind: Node\n      metadata:\n        name: b\n", []string{"Node/a at f.yaml:4", "Node/b at f.yaml:8"}},
		{"a dash alone on its line", list + "items:\n-\n  apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n- # comment\n  kind: Node\n  apiVersion: v1\n  metadata: {name: b}\n-\n", []string{"Node/a at f.yaml:4", "Node/b at f.yaml:9"}},
		{"items take what they lack from the list", "apiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata:\n    name: b\nkind: NodeList\n", []string{"Node/a at f.yaml:3", "Node/b at f.yaml:4"}},
		{"items in flow style take it too", "items:\n- {metadata: {name: a}}\n- {metadata: {name: b}\napiVersion: v1\nkind: NodeList\n", []string{"Node/a at f.yaml:2", "error ObjectMalformed at f.yaml:3 Node"}},
		{"items of a plain list take nothing from it", list + "items:\n- metadata: {name: a}\n- kind: Node\n  metadata: {name: b}\n", []string{"error ObjectMalformed at f.yaml:5 Node/b apiVersion", "warning DocumentSkipped at f.yaml:4 a kind"}},
		{"text in an item that looks like items", list + "items:\n- apiVersion: v1\n  kind: Pod\n  text: |\n    items:\n    - apiVersion: v1\n      kind: Node\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n", []string{"Node/a at f.yaml:10"}},
		{"text at the margin that looks like items", list + "items:\n- apiVersion: v1\n  kind: ConfigMap\n  text: \"\n- kind: Node\n  x\"\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n", []string{"Node/a at f.yaml:1"}},
		{"a list in flow style", "{kind: List, apiVersion: v1, items: [\n{kind: Node, apiVersion: v1, metadata: {name: a}}]}\n", []string{"Node/a at f.yaml:1"}},
		{"items in flow style", list + "items: [{kind: Node, apiVersion: v1, metadata: {name: a}}]\n", []string{"Node/a at f.yaml:1"}},
		{"JSON items of a block list", list + "items:\n- {\"kind\": \"Node\", \"apiVersion\": \"v1\",\n   \"metadata\": {\"name\": \"a\"}} # done\n- {kind: Node, apiVersion: v1, metadata: {name: b}}\n", []string{"Node/a at f.yaml:4", "Node/b at f.yaml:6"}},
		{"a JSON list", "{\"items\": [\n  {\"kind\": \"Pod\"},\n  {\"kind\": \"Node\", \"apiVersion\": \"v1\", \"metadata\": {\"name\": \"a\"}},\n  {\"metadata\": {\"name\": \"b\"}},\n null, 1], \"kind\": \"NodeList\", \"apiVersion\": \"v1\"}", []string{"Node/a at f.yaml:3", "Node/b at f.yaml:4", "warning DocumentSkipped at f.yaml:5"}},
		{"an empty list", list + "items: []\n---\n{\"kind\": \"List\", \"items\": []}\n---\nkind: NodeList\nitems:\n---\nkind: NodeList\nitems: null\n---\n{\"kind\": \"NodeList\", \"items\": null}", []string{}},
		{"a list inside a list", list + "items:\n- apiVersion: v1\n  kind: NodeList\n  items:\n  - metadata:\n      name: a\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: List\n    items:\n    - {apiVersion: v1, kind: Node, metadata: {name: b}}\n", []string{"Node/a at f.yaml:7", "Node/b at f.yaml:15"}},
		{"anchors inside an item", list + "items:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: &n a\n    labels:\n      x: *n\n", []string{"Node/a at f.yaml:4"}},
		{"anchors across items", list + "items:\n- apiVersion: v1\n  kind: Pod\n  metadata: &m\n    name: a\n- apiVersion: v1\n  kind: Node\n  metadata: *m\n", []string{"Node/a at f.yaml:8"}},
		{"an item that merges another", list + "items:\n- &first\n  apiVersion: v1\n  kind: Node\n  metadata:\n    name: a\n- <<: *first\n  metadata:\n    name: b\n- *first\n", []string{"Node/a at f.yaml:4", "Node/b at f.yaml:9"}},
		{"an anchor above the list", "apiVersion: v1\nkind: List\nmetadata:\n  x: &k Node\nitems:\n- apiVersion: v1\n  kind: *k\n  metadata: {name: a}\n", []string{"Node/a at f.yaml:6"}},
		{"items that are an alias", "x: &i\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\napiVersion: v1\nkind: List\nitems: *i\n", []string{"Node/a at f.yaml:1"}},
		{"a list whose kind is given twice", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a}\nkind: NodeList\n", []string{"error ObjectMalformed at f.yaml:1"}},
		{"lists nested too deep", strings.Repeat(`{"kind":"List","items":[`, 10) + `{"kind":"Node"}` + strings.Repeat("]}", 10), []string{"error ListTooDeep at f.yaml:1"}},
		{"lists nested too deep in flow style", strings.Repeat(`{kind: List, apiVersion: v1, items: [`, 10) + `{kind: Node}` + strings.Repeat("]}", 10), []string{"error ListTooDeep at f.yaml:1"}},
		{"deep lists of other kinds", strings.Repeat(`{"kind":"List","items":[`, 10) + `{"kind":"Pod"}` + strings.Repeat("]}", 10), []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"f.yaml": c.content})
			if diff := cmp.Diff(c.want, printed(read(t, dir, []string{"f.yaml"}, nil, someWants()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMalformed reads invalid objects.
func TestMalformed(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: openshift-config\n"
	for _, c := range []struct {
		name, content string
		want          []string
	}{
		{"a needed document that does not parse", pod + "---\n" + proxy + "spec: [\n", []string{"error ObjectMalformed at f.yaml:6 Proxy/cluster"}},
		{"a document of another kind that does not parse", pod + "spec: [\n---\n" + proxy, []string{"Proxy/cluster at f.yaml:7"}},
		{"a document of another namespace that does not parse", config + "  name: other\n  namespace: x\ndata: {\n---\nkind: Secret\napiVersion: v1\nmetadata: {}\ndata: {\n", []string{"error ObjectMalformed at f.yaml:1 ConfigMap"}},
		{"a document of another group that does not parse", "apiVersion: example.com/v1\nkind: Proxy\nspec: {\n", []string{}},
		{"a document of another name that does not parse", config + "  name: whatever\ndata: {\n", []string{}},
		{"one item that does not parse", "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: a}\n- metadata: {name: b\n- metadata: {name: c}\n", []string{"Node/a at f.yaml:4", "Node/c at f.yaml:6", "error ObjectMalformed at f.yaml:5 Node"}},
		{"a truncated JSON list", `{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},`, []string{"error ObjectMalformed at f.yaml:1"}},
		{"a truncated JSON list of other kinds", `{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod"},`, []string{"warning DocumentSkipped at f.yaml:1"}},
		{"no name", "apiVersion: v1\nkind: Node\nmetadata: {}\n---\nkind: Node\napiVersion: v1\n", []string{"error ObjectMalformed at f.yaml:1 Node metadata.name", "error ObjectMalformed at f.yaml:5 Node metadata.name"}},
		{"no name, in another namespace", "apiVersion: v1\nkind: Secret\nmetadata: {}\n", []string{}},
		{"no apiVersion", "kind: Node\nmetadata: {name: a}\n", []string{"error ObjectMalformed at f.yaml:1 Node/a apiVersion"}},
		{"a kind that is a list", "apiVersion: v1\nkind: [Node]\nmetadata: {name: a}\n", []string{"error ObjectMalformed at f.yaml:1 kind"}},
		{"a kind that is a number", "apiVersion: v1\nkind: 1\nmetadata: {name: a}\n", []string{}},
		{"metadata that is a list", "apiVersion: v1\nkind: Node\nmetadata: [a]\n", []string{"error ObjectMalformed at f.yaml:1 Node metadata"}},
		{"a name that is a number", "apiVersion: v1\nkind: Node\nmetadata: {name: 1}\n", []string{"error ObjectMalformed at f.yaml:1 Node metadata.name"}},
		{"a label that is a boolean", "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {x: true}}\n", []string{`error ObjectMalformed at f.yaml:1 Node/a metadata.labels["x"]`}},
		{"another version", "apiVersion: config.openshift.io/v2\nkind: Proxy\nmetadata: {name: cluster}\n", []string{"error UnknownVersion at f.yaml:1 Proxy/cluster apiVersion"}},
		{"a key twice", node + "spec:\n  a: 1\n  a: 2\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"a key twice in JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","name":"a"}}`, []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"a key twice beside a merge", "x: &x {a: 1}\n" + node + "spec:\n  <<: *x\n  b: 1\n  b: 2\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"a kind twice", "kind: Pod\n" + node, []string{"error ObjectMalformed at f.yaml:1 a"}},
		{"a number that JSON does not know", node + "spec: .inf\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"an object over 4 MiB", node + "x: " + strings.Repeat("y", 4<<20) + "\n---\n" + proxy, []string{"Proxy/cluster at f.yaml:7", "error ObjectTooLarge at f.yaml:1 Node/a"}},
		{"an object over 4 MiB in JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"x":"` + strings.Repeat("y", 4<<20) + `"}`, []string{"error ObjectTooLarge at f.yaml:1 Node/a"}},
		{"an item over 4 MiB", "kind: NodeList\napiVersion: v1\nitems:\n- metadata: {name: a}\n  x: " + strings.Repeat("y", 4<<20) + "\n- metadata: {name: b}\n", []string{"Node/b at f.yaml:6", "error ObjectTooLarge at f.yaml:4 Node/a"}},
		{"a large list that cannot be read in parts", "{kind: NodeList, apiVersion: v1, x: " + strings.Repeat("y", 4<<20) + ", items: [{kind: Node}]}", []string{"error ObjectMalformed at f.yaml:1"}},
		{"a large truncated JSON list", `{"kind": "List", "x": "` + strings.Repeat("y", 4<<20) + `", "items": [{"kind": "Node"},`, []string{"error ObjectMalformed at f.yaml:1"}},
		{"a large JSON object truncated behind a key", `{"kind": "Node", "x": "` + strings.Repeat("y", 4<<20) + `", "z"`, []string{"error ObjectMalformed at f.yaml:1"}},
		{"a large text of one line without an object", strings.Repeat("{kind: Pod, ", 1<<20), []string{}},
		{"a bomb of aliases", bomb("a"), []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"a bomb of long aliases", node + "x: &x " + strings.Repeat("y", 1<<20) + "\ny: [" + strings.Repeat("*x, ", 1<<13) + "]\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"deep nesting in flow style", node + "x: " + strings.Repeat("[", 1<<20) + "\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
		{"deep nesting in JSON", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"x":` + strings.Repeat("[", 1<<20), []string{"error ObjectMalformed at f.yaml:1"}},
		{"deep nesting in JSON that ends", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}", []string{"error ObjectMalformed at f.yaml:1"}},
		{"deep nesting of dashes", node + "x:\n" + strings.Repeat("- ", 1<<20) + "\n", []string{"error ObjectMalformed at f.yaml:1 Node/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{"d/f.yaml": c.content, "d/g.yaml": "kind: Pod\n"})
			got := printed(read(t, dir, []string{"d"}, nil, someWants()))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], "d/f.yaml", "f.yaml")
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// bomb returns a Node whose aliases expand tenfold, nine times.
func bomb(name string) string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\nx0: &x0 [1]\n")
	for i := range 9 {
		from, to := string(rune('0'+i)), string(rune('1'+i))
		out.WriteString("x" + to + ": &x" + to + " [" + strings.TrimSuffix(strings.Repeat("*x"+from+", ", 10), ", ") + "]\n")
	}
	return out.String()
}

// TestPathKinds checks which files are read.
func TestPathKinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		links map[string]string
		paths []string
		stdin string
		want  []string
	}{
		{name: "a folder is searched for YAML and JSON, at any depth",
			files: map[string]string{"d/a.yaml": proxy, "d/b/c.yml": node, "d/b/d.JSON": `{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`, "d/e.txt": node, "d/README": node},
			paths: []string{"d"}, want: []string{"Node/a at d/b/c.yml:1", "Node/b at d/b/d.JSON:1", "Proxy/cluster at d/a.yaml:1"}},
		{name: "hidden folders are skipped, unless named",
			files: map[string]string{"d/.git/a.yaml": proxy, ".h/b.yaml": node}, paths: []string{"d", ".h/"}, want: []string{"Node/a at .h/b.yaml:1"}},
		{name: "a must-gather is read where it has the kind",
			files: map[string]string{"m/i/cluster-scoped-resources/core/nodes/a.yaml": node, "m/i/namespaces/n/core/events.yaml": proxy, "m/i/namespaces/n/pods/p/p.yaml": proxy,
				"m/i/cluster-scoped-resources/example.com/things.yaml": proxy, "m/i/namespaces/n/mirrors/x.yaml": proxy},
			paths: []string{"m"}, want: []string{"Node/a at m/i/cluster-scoped-resources/core/nodes/a.yaml:1", "Proxy/cluster at m/i/namespaces/n/mirrors/x.yaml:1"}},
		{name: "a folder of such a path that is no must-gather", files: map[string]string{"d/namespaces/n/core/events.yaml": proxy},
			paths: []string{"d"}, want: []string{"Proxy/cluster at d/namespaces/n/core/events.yaml:1"}},
		{name: "the working directory", files: map[string]string{"a.yaml": proxy}, paths: []string{"."}, want: []string{"Proxy/cluster at ./a.yaml:1"}},
		{name: "a path is shown as it was given", files: map[string]string{"d/e/a.yaml": proxy}, paths: []string{"./d/../d//"}, want: []string{"Proxy/cluster at ./d/../d/e/a.yaml:1"}},
		{name: "a named file may have any name", files: map[string]string{"a.txt": proxy}, paths: []string{"a.txt"}, want: []string{"Proxy/cluster at a.txt:1"}},
		{name: "standard input", paths: []string{"-"}, stdin: proxy, want: []string{"Proxy/cluster at -:1"}},
		{name: "standard input twice", paths: []string{"-", "-"}, stdin: proxy, want: []string{"Proxy/cluster at -:1", "error InputNotManifest at -:0"}},
		{name: "a path that does not exist", paths: []string{"x", ""}, want: []string{"error InputUnreadable at :0", "error InputUnreadable at x:0"}},
		{name: "a link inside the folder is followed, as in a mounted ConfigMap",
			files: map[string]string{"d/..2026/a.yaml": proxy}, links: map[string]string{"d/..data": "..2026", "d/a.yaml": "..data/a.yaml"},
			paths: []string{"d"}, want: []string{"Proxy/cluster at d/a.yaml:1"}},
		{name: "a link out of the folder, to a folder, and to nowhere is not",
			files: map[string]string{"d/x/n.yaml": pod, "out/a.yaml": proxy}, links: map[string]string{"d/a.yaml": "../out/a.yaml", "d/b.yaml": "../out", "d/c": "../out", "d/d.yaml": "none", "d/e.yaml": "x", "d/f.yaml": "f.yaml"},
			paths: []string{"d"}, want: []string{}},
		{name: "a named link is followed", files: map[string]string{"d/a.yaml": proxy, "b.yaml": node}, links: map[string]string{"l": "d", "m": "b.yaml"},
			paths: []string{"l", "m"}, want: []string{"Node/a at m:1", "Proxy/cluster at l/a.yaml:1"}},
		{name: "a named file that is no manifest",
			files: map[string]string{"a.tgz": "\x1f\x8b\x00\x00 kind: Node", "b.txt": "Hello world\n", "c.yaml": "", "d.yaml": "# nothing\n---\n", "e.yaml": "a: [\n"},
			paths: []string{"a.tgz", "b.txt", "c.yaml", "d.yaml", "e.yaml"},
			want:  []string{"error InputNotManifest at a.tgz:0", "error InputNotManifest at b.txt:0", "error InputNotManifest at c.yaml:0", "error InputNotManifest at d.yaml:0", "error ObjectMalformed at e.yaml:1"}},
		{name: "the same files in a folder",
			files: map[string]string{"d/a.yaml": "\x1f\x8b\x00\x00", "d/b.yaml": "Hello world\n", "d/c.yaml": "", "d/d.yaml": "# nothing\n---\n", "d/e.json": "{", "d/f.yaml": "{{ template }}\n"},
			paths: []string{"d"}, want: []string{"warning DocumentSkipped at d/e.json:1"}},
		{name: "a named file of other things", files: map[string]string{"a.yaml": "a: b\n", "b.json": "[]", "c.yaml": "- a\n", "d.yaml": "{a: b}\n"}, paths: []string{"a.yaml", "b.json", "c.yaml", "d.yaml"}, want: []string{"warning DocumentSkipped at c.yaml:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, c.files)
			for name, target := range c.links {
				if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
					t.Skip("this system has no symbolic links:", err)
				}
			}
			if diff := cmp.Diff(c.want, printed(read(t, dir, c.paths, strings.NewReader(c.stdin), someWants()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestCopies reads objects that exist more than once.
func TestCopies(t *testing.T) {
	version := func(uid, resourceVersion, extra string) string {
		return node + "  uid: '" + uid + "'\n  resourceVersion: '" + resourceVersion + "'\n" + extra
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		paths []string
		want  []string
	}{
		{"equal copies are one, however they are written",
			map[string]string{"d/b.yaml": node + "spec: {a: 1, b: 2}\n", "d/a.json": `{"kind":"Node","spec":{"b":2,"a":1},"metadata":{"managedFields":[1],"name":"a"},"apiVersion":"v1"}`},
			[]string{"d"}, []string{"Node/a at d/a.json:1"}},
		{"of two states of one object the newer counts", map[string]string{"d/a.yaml": version("u", "9", ""), "d/b.yaml": version("u", "10", ""), "d/c.yaml": version("u", "008", "")},
			[]string{"d"}, []string{"Node/a at d/b.yaml:1"}},
		{"two objects of one name", map[string]string{"d/a.yaml": version("u", "9", ""), "d/b.yaml": version("v", "10", "")},
			[]string{"d"}, []string{"Node/a at d/a.yaml:1", "error DuplicateObject at d/a.yaml:1 Node/a"}},
		{"two contents of one state", map[string]string{"d/a.yaml": version("u", "9", "") + "---\n" + version("u", "9", "spec: {}\n")},
			[]string{"d"}, []string{"Node/a at d/a.yaml:1", "error DuplicateObject at d/a.yaml:1 Node/a"}},
		{"states without numbers", map[string]string{"d/a.yaml": version("u", "9", ""), "d/b.yaml": version("u", "x", "")},
			[]string{"d"}, []string{"Node/a at d/a.yaml:1", "error DuplicateObject at d/a.yaml:1 Node/a"}},
		{"two contents without uid", map[string]string{"d/a.yaml": version("", "9", ""), "d/b.yaml": version("", "10", "")},
			[]string{"d"}, []string{"Node/a at d/a.yaml:1", "error DuplicateObject at d/a.yaml:1 Node/a"}},
		{"a later path replaces", map[string]string{"a.yaml": version("u", "9", ""), "b.yaml": version("u", "8", ""), "c.yaml": version("u", "8", "")},
			[]string{"a.yaml", "b.yaml", "c.yaml"}, []string{"Node/a at c.yaml:1", "info Replaced at b.yaml:1 Node/a"}},
		{"namespaces tell objects apart", map[string]string{"d/a.yaml": secret + "---\n" + strings.ReplaceAll(secret, "openshift-config", "x")},
			[]string{"d"}, []string{"Secret/openshift-config/pull-secret at d/a.yaml:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, printed(read(t, folder(t, c.files), c.paths, nil, someWants()))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMessages checks whole messages, and that findings about Secrets quote nothing.
func TestMessages(t *testing.T) {
	const value = "c2VjcmV0"
	broken := []string{
		"data:\n  a: " + value + "\n  a: " + value + "\n",
		"data:\n  " + value + ": 1\n  " + value + ": 2\n",
		"data: *" + value + "\n",
		"data: !!int " + value + "\n",
		"data: {? {" + value + ": 1} : 2}\n",
		"data: {" + value + "\n",
		"data:\n\t" + value + "\n",
		"stringData: " + value + ": " + value + "\n",
	}
	for _, b := range broken {
		for _, text := range []string{secret + b, "kind: List\nitems:\n- x: 1\n  " + strings.ReplaceAll(secret+b, "\n", "\n  "), strings.Replace(secret, "Secret", `"\u0053ecret"`, 1) + b} {
			set := read(t, folder(t, map[string]string{"f.yaml": text}), []string{"f.yaml"}, nil, someWants())
			if len(set.Objects) > 0 || len(set.Findings) == 0 {
				t.Errorf("%q is read as %v", text, printed(set))
			}
			for _, f := range set.Findings {
				if strings.Contains(f.Message+f.Fix+f.Field+f.Object.String(), value) {
					t.Errorf("the finding about\n%s\nrepeats a value: %v", text, f)
				}
			}
		}
	}
	set := read(t, folder(t, map[string]string{"f.yaml": "---\n" + node + "spec:\n  a: 1\n  a: 2\n---\n" + proxy + "spec: {\n---\n" + secret + "data: {\n"}), []string{"f.yaml"}, nil, someWants())
	var got []string
	for _, f := range set.Findings {
		got = append(got, f.Message)
	}
	want := []string{
		`cannot be read: line 8: key "a" is given twice; line 14: did not find expected node content; line 21: it is not valid YAML or JSON`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestContents checks the JSON of an object.
func TestContents(t *testing.T) {
	text := lines(
		"apiVersion: config.openshift.io/v1",
		"kind: Proxy",
		"metadata:",
		"  name: cluster",
		"  creationTimestamp: 2026-06-02T08:14:05Z",
		"  managedFields: [{manager: x}]",
		"spec:",
		"  html: <a&b>",
		"  large: 9007199254740993",
		"  text: |",
		"    one",
		"    two",
		"  yes: on",
	)
	set := read(t, folder(t, map[string]string{"f.yaml": text}), []string{"f.yaml"}, nil, someWants())
	want := `{"apiVersion":"config.openshift.io/v1","kind":"Proxy","metadata":{"creationTimestamp":"2026-06-02T08:14:05Z","name":"cluster"},` +
		`"spec":{"html":"<a&b>","large":9007199254740993,"text":"one\ntwo\n","true":true}}`
	if len(set.Objects) != 1 {
		t.Fatal(printed(set))
	}
	if diff := cmp.Diff(want, string(set.Objects[0].JSON)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := set.Objects[0].Group + " " + set.Objects[0].Version; got != "config.openshift.io v1" {
		t.Errorf("group and version are %q", got)
	}
}

// TestUnreadable needs an unprivileged user.
func TestUnreadable(t *testing.T) {
	if asNobody(t) {
		return
	}
	dir := folder(t, map[string]string{"d/a.yaml": proxy, "d/b/c.yaml": node})
	allow := func(mode os.FileMode) {
		for _, name := range []string{"d/a.yaml", "d/b"} {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	allow(0)
	defer allow(0o755)
	want := []string{"error InputUnreadable at d/a.yaml:0", "error InputUnreadable at d/b:0"}
	if diff := cmp.Diff(want, printed(read(t, dir, []string{"d"}, nil, someWants()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHugeFiles uses sparse files.
func TestHugeFiles(t *testing.T) {
	dir := folder(t, map[string]string{"d/a.yaml": proxy, "d/b.yaml": ""})
	if err := os.Truncate(filepath.Join(dir, "d/b.yaml"), 1<<30+1); err != nil {
		t.Skip("this file system has no sparse files:", err)
	}
	want := []string{"Proxy/cluster at d/a.yaml:1", "error InputTooLarge at d/b.yaml:0"}
	if diff := cmp.Diff(want, printed(read(t, dir, []string{"d"}, nil, someWants()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadingStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := objects.NewPathsReader([]string{t.TempDir()}, nil).Read(ctx, someWants())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
