package pages

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestPackageListsNeedACommentAndAGroup(t *testing.T) {
	source := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tree := fstest.MapFS{
		"applier/doc.go":              source("// Package applier brings a host to a bundle: one | engine. More.\npackage applier\n"),
		"applier/run.go":              source("package applier\n"),
		"applier/run_test.go":         source("// Package applier has tests.\npackage applier\n"),
		"internal/test/a/a.go":        source("// Package a tests.\npackage a\n"),
		"internal/test/a/b/part.go":   source("package part\n"),
		"internal/test/testdata/x.go": source("package x\n"),
	}
	lists, err := packageLists(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"* `applier` brings a host to a bundle\n", "### Tests\n\n", "`internal/test/a`\n"} {
		if !strings.Contains(lists, want) {
			t.Errorf("no %q in\n%s", want, lists)
		}
	}
	for name, want := range map[string]string{"applier/plan/plan.go": "applier/plan has no package comment", "other/x.go": "other: add it to packageGroups"} {
		tree[name] = source("// Package x does.\npackage x\n")
		if strings.Contains(want, "comment") {
			tree[name] = source("package x\n")
		}
		if _, err := packageLists(tree); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		delete(tree, name)
	}
}
