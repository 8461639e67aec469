package contributing

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wmco/bundle"
)

const root = "../../.."

var (
	heading = regexp.MustCompile(`(?m)^### (.+) \((\d+) files?\)$`)
	item    = regexp.MustCompile("(?m)^\\d+\\. `([^`]+)`")
	// named are paths anywhere in the text: at least one slash, no blank.
	named = regexp.MustCompile("`([a-z][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)+)`")
)

func TestRecipesNameFilesThatExist(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	problems, recipes := check(string(data), func(path string) bool {
		_, err := os.Stat(filepath.Join(root, path))
		return err == nil
	})
	for _, p := range problems {
		t.Error(p)
	}
	if recipes != 7 {
		t.Errorf("%d recipes, want 7", recipes)
	}
}

func TestCheckFindsWrongRecipes(t *testing.T) {
	text := "### Add a thing (2 files)\n\n1. `a/is.go`: x\n\nSee `b/gone`.\n\n### Add another (1 file)\n\n1. `a/is.go`: x\n"
	problems, recipes := check(text, func(path string) bool { return path == "a/is.go" })
	want := []string{`"Add a thing" lists 1 file and says 2`, "b/gone does not exist"}
	if recipes != 2 || strings.Join(problems, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d recipes, problems %q, want %q", recipes, problems, want)
	}
}

// check returns the problems of the recipes in a text, and how many recipes there are.
func check(text string, exists func(path string) bool) (problems []string, recipes int) {
	headings := heading.FindAllStringSubmatchIndex(text, -1)
	for i, at := range headings {
		end := len(text)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		name, says, body := text[at[2]:at[3]], text[at[4]:at[5]], text[at[1]:end]
		if n := len(item.FindAllString(body, -1)); strconv.Itoa(n) != says {
			problems = append(problems, strconv.Quote(name)+" lists "+bundle.Count(n, "file")+" and says "+says)
		}
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		if !exists(m[1]) {
			problems = append(problems, m[1]+" does not exist")
		}
	}
	return problems, len(headings)
}
