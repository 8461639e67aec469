package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const root = "../../.."

// page is one document: where its links lead, which anchors its headings have, and the manifests that it shows.
type page struct {
	links    []string
	anchors  []string
	examples []example
}

// example is a block of a page that is marked as a file of docs/examples: <!-- example: FILE -->.
type example struct{ file, text string }

// readPage reads a document as CommonMark with GitHub's tables and anchors of headings.
func readPage(t *testing.T, path string) page {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return parsePage(source)
}

func parsePage(source []byte) page {
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID())).
		Parser().Parse(text.NewReader(source))
	var p page
	marked := ""
	// The walk ends with the tree: the visitor returns no error.
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				if id, ok := id.([]byte); ok {
					p.anchors = append(p.anchors, string(id))
				}
			}
		case *ast.HTMLBlock:
			marked = exampleFile(linesOf(n, source))
		case *ast.FencedCodeBlock:
			if marked != "" {
				p.examples = append(p.examples, example{marked, linesOf(n, source)})
			}
			marked = ""
		}
		return ast.WalkContinue, nil
	})
	return p
}

func linesOf(n ast.Node, source []byte) string {
	var b bytes.Buffer
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	return b.String()
}

// exampleFile returns the file that a comment names; "" if it is another comment.
func exampleFile(comment string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(comment), "<!-- example: ")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(inner, " -->")
}

// pages are README, CONTRIBUTING and every document below docs, deploy, golden and tools.
func pages(t *testing.T) []string {
	t.Helper()
	list := []string{"README.md", "CONTRIBUTING.md"}
	for _, folder := range []string{"docs", "golden", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			relative, err := filepath.Rel(root, path)
			list = append(list, relative)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return list
}
