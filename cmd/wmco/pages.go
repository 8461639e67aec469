package main

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/docs"
	"wmco/internal/cli"
)

// indexPage is the page that lists the others by task.
const indexPage = "index"

func docsCommand(a app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docs [PAGE]",
		Short: "Print a page of the documentation of this release",
		Long: "Print a page of the documentation of this release, or the list of all pages. The page index lists them by task.\n" +
			"It needs neither a cluster nor a network." + cli.ExitHelp("0  done", "2  invalid usage, or no such page"),
		Example: "  wmco docs\n  wmco docs index\n  wmco docs platforms/vsphere | less",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.UsageError("give one page")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return printPages(a)
			}
			return printPage(a, args[0])
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return pageNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// pageNames are the names of all pages, sorted, without the end .md; that of a folder is its README.
func pageNames() []string {
	var names []string
	// The pages are in the program: reading them does not fail.
	_ = fs.WalkDir(docs.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, pageName(name))
		}
		return err
	})
	slices.Sort(names)
	return names
}

func pageName(file string) string {
	if name := strings.TrimSuffix(file, ".md"); path.Base(name) != "README" {
		return name
	}
	if folder := path.Dir(file); folder != "." {
		return folder
	}
	return indexPage
}

// pageFile is the file of a page, which may be named as in a link (platforms/aws.md#particular-to-aws), or by its last
// part.
func pageFile(page string) (string, bool) {
	page, _, _ = strings.Cut(page, "#")
	page = strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md")
	for _, file := range []string{page + ".md", path.Join(page, "README.md")} {
		if _, err := fs.Stat(docs.Pages, file); err == nil {
			return file, true
		}
	}
	if page == indexPage {
		return "README.md", true
	}
	for _, name := range pageNames() {
		if strings.EqualFold(path.Base(name), page) {
			return name + ".md", true
		}
	}
	return "", false
}

func printPage(a app, page string) error {
	file, ok := pageFile(page)
	if !ok {
		return cli.UsageError(
			"%s is no page of the documentation%s; wmco docs lists them", page, bundle.DidYouMean(page, pageNames()),
		)
	}
	text, err := docs.Pages.ReadFile(file)
	if err != nil {
		return err
	}
	cli.Printf(a.stdout, "%s", testNote.ReplaceAll(text, nil))
	return nil
}

// testNote is a comment for the tests of the pages, which no reader needs, with the empty line after it.
var testNote = regexp.MustCompile(`(?m)^ *<!-- .* -->\n\n?`)

func printPages(a app) error {
	names := pageNames()
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		title, err := pageTitle(name)
		if err != nil {
			return err
		}
		cli.Printf(a.stdout, "%-*s  %s\n", width, name, title)
	}
	return nil
}

// pageTitle is the first line of a page.
func pageTitle(name string) (string, error) {
	file, _ := pageFile(name)
	text, err := docs.Pages.ReadFile(file)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimLeft(first, "# "), nil
}
