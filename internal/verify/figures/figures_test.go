package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFigures counts a small tree.
func TestFigures(t *testing.T) {
	tree := t.TempDir()
	for name, text := range map[string]string{
		"controller/root.go": "package controller\n\nimport (\n\t_ \"wmco/controller/a\"\n\t_ \"wmco/controller/b/c\"\n)\n\nfunc tell() {}\n\nfunc writeStatus() string { return \"nobody\" } // somebody\n",
		"controller/a/a.go":  "package a\n\nimport _ \"wmco/controller/b\"\n\nfunc isReady() bool { return true }\n",
		"controller/b/b.go":  "package b\n",
		"controller/b/c/c.go": "package c\n\nfunc decide(a, b, c, d, e, f bool) bool {\n" +
			"\treturn a && b && c || d && e && f || a && c && e || b && d && f\n}\n",
		"controller/b/b_test.go": "package b\n\nfunc keep() {}\n",
		"applier/a.go":           "package applier\n",
		"applier/hosttest/h.go":  "package hostsim\n\nfunc look() {}\n",
		"bundle/b.go":            "package bundle\n", "cmd/c.go": "package cmd\n", "payload/p.go": "package payload\n", "render/r.go": "package render\n",
		"docs/a.md": "Nobody reads.\nMeanwhile it goes on.\n", "docs/decisions/0001.md": "somebody\n",
	} {
		at := filepath.Join(tree, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := run(tree, &got); err != nil {
		t.Fatal(err)
	}
	const want = `3    folders directly under controller/, and its root
3    floors of these, the ground is 1
3    imports between these
1    files in controller/ itself
10   lines of these
3    lines of test hosts in folders of the product
7.0  letters in the names of functions in controller/ and applier/, in the mean
50   of these names are one word, in percent
1    functions with ten or more branches and 0.6 a line: controller/b/c/c.go:3
0    places in controller/ that decode annotations of Nodes
1    functions in controller/ that say whether a Node is Ready
0    functions in controller/ that say whether a node agent is silent
0    places in controller/ that set the kind of an untyped object
3    lines of messages, help and docs with the words nobody, somebody or meanwhile
`
	if got := got.String(); strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("got\n%s", got)
	}
}
