package golden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"wmco/bundle"
	"wmco/render/preview"
)

// A rendered node is kept as one text. A whole one has every file of its preview, byte for byte, JSON indexes with one entry in a line:
//
//	-- C/k/kubelet.conf --
//	apiVersion: kubelet.config.k8s.io/v1beta1
//
// All others have what differs from a whole one (differences), so that what all nodes have is in few files.

// wholeText returns a tree as one text, which holds every byte of it.
func wholeText(t testing.TB, tree map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		text := oneLineEach(t, name, string(tree[name]))
		if regexp.MustCompile(`(?m)^-- .* --$`).MatchString(text) {
			t.Fatalf("%s has a line that is the heading of a file here", name)
		}
		fmt.Fprintf(&out, "-- %s --\n%s", name, text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			out.WriteString("\n\\ no newline at the end\n")
		}
	}
	return out.Bytes()
}

// oneLineEach joins the lines of each entry of an index: an object or a list that has no other in it. Other files stay as they are.
func oneLineEach(t testing.TB, name, text string) string {
	t.Helper()
	if !slices.Contains([]string{preview.ManifestFile, preview.ProvenanceFile, planFile, reviewFile}, name) {
		return text
	}
	var lines []string
	innermost := -1 // the line with the last bracket that has none inside
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line)
		switch inner := strings.TrimLeft(line, " "); {
		case strings.HasSuffix(line, "{"), strings.HasSuffix(line, "["):
			innermost = len(lines) - 1
		case strings.HasPrefix(inner, "}"), strings.HasPrefix(inner, "]"):
			if innermost >= 0 {
				entry := lines[innermost]
				for _, l := range lines[innermost+1 : len(lines)-1] {
					entry += strings.TrimLeft(l, " ") + " "
				}
				lines = append(lines[:innermost], strings.TrimSuffix(entry, " ")+inner)
			}
			innermost = -1
		}
	}
	short := strings.Join(lines, "\n") + "\n"
	var long bytes.Buffer
	if err := json.Indent(&long, []byte(short), "", "  "); err != nil || long.String() != text {
		t.Fatalf("%s is not JSON with an indentation of two spaces: %v", name, err)
	}
	return short
}

// essentials returns what a difference compares of the preview of a node, or of a host: all but what follows from the rest. In the manifest these are
// digests and sizes of files that are shown, and the entries that another document has.
func essentials(t testing.TB, tree map[string][]byte) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, data := range tree {
		if name == planFile {
			continue // plan.txt has the same
		}
		texts[name] = oneLineEach(t, name, string(data))
	}
	if manifest, ok := texts[preview.ManifestFile]; ok {
		texts[preview.ManifestFile] = ownEntries(manifest)
	}
	if causes, ok := texts[preview.ProvenanceFile]; ok {
		texts[preview.ProvenanceFile] = causeLines(causes)
	}
	return texts
}

var followingDigest = regexp.MustCompile(`"digest": "(?:sha256:[0-9a-f]{64}|masked)", ?(?:"size": \d+, )?`)

// ownEntries returns the manifest with what it alone has, without brackets and commas at the ends of lines.
func ownEntries(manifest string) string {
	elsewhere := map[string]bool{}
	for list := range listsElsewhere() {
		elsewhere[fmt.Sprintf("%q: [", list)] = true
	}
	var out strings.Builder
	const ofLayer = "        " // the indentation of a layer's lists
	leaving := false
	for line := range strings.Lines(followingDigest.ReplaceAllString(manifest, "")) {
		line = strings.TrimSuffix(line, "\n")
		inner, isInner := strings.CutPrefix(line, ofLayer)
		switch {
		case leaving:
			leaving = !isInner || !strings.HasPrefix(inner, "]")
		case isInner && elsewhere[inner]:
			leaving = true
		case strings.Trim(line, " {}[],") != "":
			fmt.Fprintln(&out, strings.TrimSuffix(line, ","))
		}
	}
	return out.String()
}

// listsElsewhere are the lists of layers that another document has (TestOtherDocumentsHaveTheListsOfTheManifest), which is their value.
func listsElsewhere() map[string]string {
	lists := map[string]string{"services": preview.ServicesFile, "payload": preview.PayloadFile}
	for _, k := range bundle.Kinds() {
		if k.Key != "" {
			lists[k.Key] = preview.HostFile
		}
	}
	return lists
}

// causeLines returns the provenance with the entry and one cause in each line.
func causeLines(provenance string) string {
	var out strings.Builder
	entry := ""
	for line := range strings.Lines(provenance) {
		line = strings.Trim(line, " ,\n")
		if name, ok := strings.CutSuffix(line, ": ["); ok {
			entry = name
		} else if strings.Trim(line, "{}[]") != "" {
			fmt.Fprintf(&out, "%s: %s\n", entry, line)
		}
	}
	return out.String()
}

// differences shows what the documents of got have differently than those of base, below a title. Lines have no numbers, so that what changes in both
// changes no difference.
//
//	=== C/k/kubelet.conf
//	@@ authentication:
//	 a line of both
//	-a line of base
//	+a line of got
//	=== C/k/new.conf (new)
//	+its only line
//	=== C/k/old.conf (absent)
func differences(title string, base, got map[string]string) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n", title)
	nothing := out.Len()
	all := maps.Clone(base)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, had := base[name]
		text, has := got[name]
		whole := "+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n"
		switch {
		case !has:
			fmt.Fprintf(&out, "=== %s (absent)\n", name)
		case !had:
			fmt.Fprintf(&out, "=== %s (new)\n%s", name, whole)
		case old != text:
			if parts := hunks(name, old, text); len(parts) < len(whole) {
				fmt.Fprintf(&out, "=== %s\n%s", name, parts)
			} else {
				fmt.Fprintf(&out, "=== %s (whole)\n%s", name, whole)
			}
		}
	}
	if out.Len() == nothing {
		out.WriteString("# nothing\n")
	}
	return out.Bytes()
}

// contextLines returns how many lines around a changed one are shown: none where each line says by itself what it is about.
func contextLines(name string) int {
	if slices.Contains([]string{preview.ManifestFile, preview.ProvenanceFile, objectsFile}, name) || path.Ext(name) == ".txt" {
		return 0
	}
	return 2
}

// hunkLine is a line of a unified difference.
type hunkLine struct {
	text string
	// heading is where it is in its document.
	heading string
	first   bool
}

func (l hunkLine) changed() bool { return l.text[0] != ' ' }

// hunks returns the changed lines of a document with their context, each run below a line that says where it is.
func hunks(name, old, text string) string {
	lines := hunkLines(name, old, text)
	shown := make([]bool, len(lines))
	for i, l := range lines {
		for j := range lines {
			if l.changed() && j >= i-contextLines(name) && j <= i+contextLines(name) {
				shown[j] = true
			}
		}
	}
	var out strings.Builder
	heading := "none yet"
	for i, l := range lines {
		if !shown[i] {
			continue
		}
		if begins := i == 0 || l.first || !shown[i-1]; begins || contextLines(name) == 0 {
			next := lines[i+slices.IndexFunc(lines[i:], hunkLine.changed)]
			if begins && contextLines(name) > 0 || next.heading != heading {
				heading = next.heading
				out.WriteString(strings.TrimSuffix("@@ "+heading, " ") + "\n")
			}
		}
		out.WriteString(l.text + "\n")
	}
	return out.String()
}

// hunkLines returns the lines of a unified difference.
func hunkLines(name, old, text string) []hunkLine {
	sides := map[byte][]string{'-': strings.Split(old, "\n"), '+': strings.Split(text, "\n")}
	at := map[byte]int{}
	var lines []hunkLine
	first := false
	_, body, _ := strings.Cut(string(diff.Diff("", []byte(old), "", []byte(text))), "\n@@")
	for line := range strings.SplitSeq(strings.TrimSuffix("@@"+body, "\n"), "\n") {
		switch line[0] {
		case '@':
			var from, to, n, m int
			_, _ = fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m)
			at['-'], at['+'] = max(from-1, 0), max(to-1, 0)
			first = true
			continue
		case '\\':
			lines[len(lines)-1].text += "\n" + line
			continue
		case ' ':
			at['-']++
			at['+']++
			lines = append(lines, hunkLine{text: line, first: first})
		default:
			lines = append(lines, hunkLine{text: line, first: first, heading: place(name, sides[line[0]], at[line[0]])})
			at[line[0]]++
		}
		first = false
	}
	return lines
}

var itemName = regexp.MustCompile(`^(?:- |  )(?:name|path|component|process|subject): (.*)`)

// place says where a line is in its document: in which entry of a list of YAML, else below which line.
func place(name string, lines []string, at int) string {
	isItem := func(line string) bool { return strings.HasPrefix(line, "- ") }
	if path.Ext(name) == ".yaml" {
		begin := at
		for begin > 0 && (lines[begin] == "" || lines[begin][0] == ' ') {
			begin--
		}
		if isItem(lines[begin]) {
			section := begin
			for section > 0 && (isItem(lines[section]) || strings.HasPrefix(lines[section], " ")) {
				section--
			}
			for i := begin; i < len(lines) && (i == begin || strings.HasPrefix(lines[i], " ")); i++ {
				if m := itemName.FindStringSubmatch(lines[i]); m != nil {
					return lines[section] + " " + m[1]
				}
			}
			return lines[section]
		}
	}
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	for i := at - 1; i >= 0; i-- {
		if lines[i] != "" && indent(lines[i]) < indent(lines[at]) {
			return strings.TrimSpace(lines[i])
		}
	}
	return ""
}
