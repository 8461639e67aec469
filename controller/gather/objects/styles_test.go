package objects_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
)

// FuzzStyles writes objects in the styles of people and programs and reads them back, with the lines where they were
// written.
func FuzzStyles(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &stylist{Rand: rand.New(rand.NewPCG(seed, 1)), want: []string{}}
		for range 1 + w.IntN(4) {
			w.document()
		}
		set, err := objects.NewPathsReader([]string{"-"}, strings.NewReader(w.text.String())).Read(context.Background(), someWants())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(w.want)
		got := printed(set)
		slices.Sort(got)
		if diff := cmp.Diff(w.want, got); diff != "" {
			t.Errorf("-want +got:\n%s\n%s", diff, w.text.String())
		}
		for _, o := range set.Objects {
			if !bytes.Contains(o.JSON, []byte(`"id":"`+o.Name+`"`)) {
				t.Errorf("%s holds %s", o.Ref, o.JSON)
			}
		}
	})
}

// stylist writes documents.
type stylist struct {
	*rand.Rand
	text  strings.Builder
	count int
	// want is the wanted objects with their lines.
	want []string
}

// one picks a string.
func (w *stylist) one(of ...string) string { return of[w.IntN(len(of))] }

func (w *stylist) line() int { return strings.Count(w.text.String(), "\n") + 1 }

// thing is an object to write.
type thing struct{ version, kind, namespace, name string }

func (w *stylist) thing() thing {
	w.count++
	o := thing{"v1", w.one("Node", "Node", "Pod", "Secret", "NodePool"), "", fmt.Sprintf("n%d", w.count)}
	if o.kind == "Secret" {
		o.namespace = w.one("openshift-config", "other")
	}
	return o
}

// expect records the object if it is wanted.
func (w *stylist) expect(o thing, line int) {
	switch {
	case o.kind == "Node":
		w.want = append(w.want, fmt.Sprintf("Node/%s at -:%d", o.name, line))
	case o.kind == "Secret" && o.namespace == "openshift-config":
		w.want = append(w.want, fmt.Sprintf("Secret/%s/%s at -:%d", o.namespace, o.name, line))
	}
}

// document writes a separator and an object, or a list of some.
func (w *stylist) document() {
	w.text.WriteString(w.one("---\n", "--- # comment\n", "---\n\n# kind: Node\n", "---   \n"))
	switch w.IntN(6) {
	case 0:
		o := w.thing()
		w.expect(o, w.line())
		w.text.WriteString(w.flow(o) + "\n")
	case 1:
		o := w.thing()
		w.expect(o, w.line())
		w.text.WriteString(w.json(o, w.one("", "\n", "\n\t")) + w.one("", "\n", " # comment\n") + "\n")
	case 2:
		w.blockList(0, 0)
		w.text.WriteString("\n")
	case 3:
		w.jsonList(0)
		w.text.WriteString("\n")
	case 4:
		w.flowList()
	default:
		o := w.thing()
		w.expect(o, w.line())
		w.text.WriteString(strings.Join(w.block(o), "\n") + "\n")
	}
}

// block writes an object as a block mapping, with text that looks like the list that it may be in.
func (w *stylist) block(o thing) []string {
	id := "id: " + o.name
	entries := []string{
		w.one("apiVersion: v1", `"apiVersion": v1`), "kind: " + w.one(o.kind, o.kind+" # comment", "!!str "+o.kind),
		"metadata:" + w.metadata(o),
		w.one(
			"spec:\n  "+id, "spec: {"+id+"}", "spec:\n- x\n- "+id, "spec:\n  - "+id+"\n  - kind: Node", "spec: {\"kind\": \"Pod\",\n  "+id+"}",
			"spec:\n  text: |\n    kind: Node\n    ---\n    - kind: Node\n\n  "+id, "spec:\n  text: \"a\n  kind: Node\n  b\"\n  "+id,
		),
		w.one("status: {}", "# comment", "  # comment", "", "status:"),
	}
	w.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	for len(strings.TrimSpace(entries[0])) == 0 || strings.HasPrefix(strings.TrimSpace(entries[0]), "#") {
		entries = append(entries[1:], entries[0])
	}
	return strings.Split(strings.Join(entries, "\n"), "\n")
}

func (w *stylist) metadata(o thing) string {
	if o.namespace == "" || w.IntN(4) == 0 {
		return fmt.Sprintf(" {name: %s, namespace: %q}", o.name, o.namespace)
	}
	return w.one("", " # comment") + "\n  name: " + o.name + "\n  namespace: " + o.namespace
}

func (w *stylist) flow(o thing) string {
	return fmt.Sprintf("{kind: %s, %s, metadata: {name: %s, namespace: '%s'}, id: '%s'}", o.kind, w.one("apiVersion: "+o.version, `"apiVersion": "`+o.version+`"`), o.name, o.namespace, o.name)
}

func (w *stylist) json(o thing, gap string) string {
	entries := []string{
		fmt.Sprintf(`"apiVersion":%s %q`, gap, o.version),
		fmt.Sprintf(`%s: %q`, w.one(`"kind"`, `"k\u0069nd"`), o.kind),
		fmt.Sprintf(`"metadata": {%s"name": %q, "labels": {"name": "x"}, "namespace": %q}`, gap, o.name, o.namespace),
		fmt.Sprintf(`"id": %q`, o.name),
		w.one(`"x": {}`, `"x": []`, `"x": "\"kind\": \"Node\" \\"`, `"x": [{"kind": "Node"}, -1.5e3, true, null]`),
	}
	w.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return "{" + strings.Join(entries, gap+","+gap) + "}"
}

// blockList writes a list as a block, after so many blanks.
func (w *stylist) blockList(indent, depth int) {
	kind, own := w.one("List", "NodeList", "SecretList", "PodList"), w.IntN(2) == 0
	pad := strings.Repeat(" ", indent)
	head := "apiVersion: v1\n" + pad + "kind: " + kind + "\n"
	if own {
		w.text.WriteString(head + pad)
	}
	w.text.WriteString("items:" + w.one("", " # comment") + "\n")
	inner := pad + w.one("", "  ", "   ")
	for range 1 + w.IntN(4) {
		w.item(inner, depth)
	}
	if !own {
		w.text.WriteString(pad + head)
	}
}

// item writes an item of a block list.
func (w *stylist) item(pad string, depth int) {
	dash := w.one("- ", "-   ", "- # comment\n"+pad+"  ", "-\n"+pad+"    ")
	begin, step := w.line(), len(dash)
	if n := strings.LastIndexByte(dash, '\n'); n >= 0 {
		step = len(dash) - n - 1 - len(pad)
	}
	w.text.WriteString(pad + dash)
	if depth < 3 && w.IntN(5) == 0 {
		w.blockList(len(pad)+step, depth+1)
		return
	}
	o := w.thing()
	w.expect(o, begin)
	switch w.IntN(4) {
	case 0:
		w.text.WriteString(w.flow(o) + "\n")
	case 1:
		w.text.WriteString(w.json(o, w.one("", "\n"+pad+"     ")) + "\n")
	default:
		for i, line := range w.block(o) {
			if i > 0 && line != "" {
				w.text.WriteString(pad + strings.Repeat(" ", step))
			}
			w.text.WriteString(line + "\n")
		}
	}
}

// jsonList writes a list as JSON.
func (w *stylist) jsonList(depth int) {
	const kind = `"kind": "List"`
	first := w.IntN(2) == 0
	if w.text.WriteString(w.one("{", "{\n")); first {
		w.text.WriteString(kind + ", ")
	}
	w.text.WriteString(`"items": [`)
	for i := range w.IntN(4) {
		if i > 0 {
			w.text.WriteString(",")
		}
		w.text.WriteString(w.one("", "\n", " "))
		if depth < 3 && w.IntN(5) == 0 {
			w.jsonList(depth + 1)
			continue
		}
		o := w.thing()
		w.expect(o, w.line())
		w.text.WriteString(w.json(o, w.one("", "\n")))
	}
	if w.text.WriteString(w.one(`]`, "], \"apiVersion\": \"v1\"")); !first {
		w.text.WriteString(",\n" + kind)
	}
	w.text.WriteString("}")
}

// flowList writes a list in flow style; its items have the line of the document.
func (w *stylist) flowList() {
	begin := w.line()
	w.text.WriteString("{kind: List, apiVersion: v1, items: [")
	for range w.IntN(3) {
		o := w.thing()
		w.expect(o, begin)
		w.text.WriteString("\n " + w.flow(o) + ",")
	}
	w.text.WriteString("]}\n")
}

// FuzzBentStyles breaks some of what FuzzStyles writes, and looks for objects that a parser of the whole file finds
// and the reader does not.
func FuzzBentStyles(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &stylist{Rand: rand.New(rand.NewPCG(seed, 2))}
		for range 1 + w.IntN(3) {
			w.document()
		}
		text := w.text.String()
		for range 1 + w.IntN(3) {
			text = w.bend(text)
		}
		checkNothingIsMissed(t, readBytes(t, []byte(text)), []byte(text))
	})
}

// bend changes the text in one place.
func (w *stylist) bend(text string) string {
	lines := strings.SplitAfter(text, "\n")
	a, b, at := w.IntN(len(lines)), w.IntN(len(lines)), w.IntN(len(text)+1)
	switch w.IntN(5) {
	case 0:
		return text[:at] + w.splinter() + text[at:]
	case 1:
		return text[:at] + text[min(len(text), at+1+w.IntN(4)):]
	case 2:
		lines[a] = w.splinter() + lines[a]
	case 3:
		lines[a], lines[b] = lines[b], lines[a]
	case 4:
		lines[a] = strings.TrimPrefix(lines[a], w.one(" ", "  ", "    "))
	}
	return strings.Join(lines, "")
}

// splinter is a piece of YAML.
func (w *stylist) splinter() string {
	return w.one("\n", " ", "  ", "- ", "\n- ", ": ", "kind: Node", "\nkind: Node", `"`, "'", "{", "}", "[", "]", ",", "#", " # ", "&a ",
		"*a", "<<: *a", "|", ">", "\t", "? ", "!!str ", "---\n", "\n---\n", "...\n", "items:\n", "metadata:\n  name: z\n",
		"apiVersion: v1\n", "kind: NodeList\n", "kind: List\n", `\`, "\r", "null", "~", `"kind": "Node"`, "\u2028", "name: q", "@", "`",
		"%", "-", "\n  ", "\n    ")
}

// TestOrderOfFilesDoesNotMatter puts the same documents into files of other names and order.
func TestOrderOfFilesDoesNotMatter(t *testing.T) {
	version := func(uid, resourceVersion string) string {
		return node + "  uid: " + uid + "\n  resourceVersion: '" + resourceVersion + "'\n"
	}
	documents := []string{
		proxy, proxy, secret, version("u", "1"), version("u", "3"), version("u", "2"), pod,
		strings.Replace(secret, "pull-secret", "one", 1), strings.Replace(secret, "pull-secret", "one", 1) + "data: {}\n",
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var first []string
	for round := range 50 {
		rng.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
		files, next := map[string]string{}, 0
		for next < len(documents) {
			end := next + 1 + rng.IntN(len(documents)-next)
			files[fmt.Sprintf("%c/%d.yaml", 'a'+rng.IntN(3), next)] = strings.Join(documents[next:end], "---\n")
			next = end
		}
		set, err := objects.NewPathsReader([]string{folder(t, files)}, nil).Read(context.Background(), someWants())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range set.Objects {
			if o.Name != "one" {
				got = append(got, string(o.JSON))
			}
		}
		for _, f := range set.Findings {
			got = append(got, f.Reason+" "+f.Object.String())
		}
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatalf("round %d: -first +this:\n%s", round, diff)
		}
	}
	if len(first) != 4 {
		t.Errorf("%q", first)
	}
}
