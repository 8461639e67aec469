package docs

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the manifests of docs/examples into the pages")

// TestLinksLeadSomewhere: a link without a scheme is a file or folder of the repository, and its anchor a heading there.
func TestLinksLeadSomewhere(t *testing.T) {
	known := map[string]page{}
	read := func(path string) page {
		p, ok := known[path]
		if !ok {
			p = readPage(t, filepath.Join(root, path))
			known[path] = p
		}
		return p
	}
	count := 0
	for _, path := range pages(t) {
		for _, link := range read(path).links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			count++
			if problem := broken(path, link, read); problem != "" {
				t.Errorf("%s: %s: %s", path, link, problem)
			}
		}
	}
	if count < 200 {
		t.Errorf("%d links", count)
	}
}

// broken returns the problem of a link of a page, "" for none.
func broken(from, link string, read func(string) page) string {
	file, anchor, _ := strings.Cut(link, "#")
	path := from
	if file != "" {
		path = filepath.Join(filepath.Dir(from), file)
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "no such file"
	}
	if anchor == "" || filepath.Ext(path) != ".md" {
		return ""
	}
	if !slices.Contains(read(path).anchors, anchor) {
		return "no such heading"
	}
	return ""
}

// TestPagesShowTheManifestsOfExamples: a block that is marked is the file, and every file is shown by a page.
func TestPagesShowTheManifestsOfExamples(t *testing.T) {
	shown := map[string]bool{}
	for _, path := range pages(t) {
		for _, e := range readPage(t, filepath.Join(root, path)).examples {
			shown[e.file] = true
			want, err := os.ReadFile(filepath.Join(root, "docs", "examples", e.file))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if e.text == string(want) {
				continue
			}
			if *update {
				rewrite(t, filepath.Join(root, path), e.file, string(want))
			}
			t.Errorf("%s: the block is not docs/examples/%s; go -C internal/verify/docs test -update writes it", path, e.file)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, "docs", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !shown[f.Name()] {
			t.Errorf("no page shows docs/examples/%s", f.Name())
		}
	}
}

// rewrite replaces the block behind the mark of a file, with the indentation of the mark.
func rewrite(t *testing.T, path, file, want string) {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := "<!-- example: " + file + " -->\n"
	at := bytes.Index(source, []byte(mark))
	if at < 0 {
		t.Fatalf("%s has no mark of %s", path, file)
	}
	indent := string(source[bytes.LastIndexByte(source[:at], '\n')+1 : at])
	before, rest := source[:at+len(mark)], string(source[at+len(mark):])
	_, rest, ok := strings.Cut(rest, indent+"```yaml\n")
	if !ok {
		t.Fatalf("%s: no block behind the mark of %s", path, file)
	}
	_, rest, ok = strings.Cut("\n"+rest, "\n"+indent+"```\n")
	if !ok {
		t.Fatalf("%s: the block of %s has no end", path, file)
	}
	var b strings.Builder
	b.Write(before)
	b.WriteString(indent + "```yaml\n")
	for line := range strings.Lines(want) {
		b.WriteString(indent + line)
	}
	b.WriteString(indent + "```\n" + rest)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	read := func(string) page { return parsePage([]byte("# One heading\n\n## Two `code` words, and more\n")) }
	for link, want := range map[string]string{
		"#one-heading": "", "#two-code-words-and-more": "", "README.md#one-heading": "", "docs": "",
		"#three": "no such heading", "README.md#three": "no such heading", "docs/none.md": "no such file",
	} {
		if got := broken("README.md", link, read); got != want {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}

func TestMarkedBlocksAreExamples(t *testing.T) {
	p := parsePage([]byte("* item\n\n  <!-- example: a.yaml -->\n  ```yaml\n  kind: A\n  ```\n\n```yaml\nkind: B\n```\n"))
	if len(p.examples) != 1 || p.examples[0] != (example{"a.yaml", "kind: A\n"}) {
		t.Errorf("%q", p.examples)
	}
}
