package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// ownCommand is a command of this program in a text.
var ownCommand = regexp.MustCompile("`wmco ([^`]+)`")

// TestRunbooksNameRealCommands: what a person is told to type at three in the morning exists.
func TestRunbooksNameRealCommands(t *testing.T) {
	files, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range ownCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			if err := parses(strings.Fields(match[1])); err != nil {
				t.Errorf("%s: wmco %s: %v", filepath.Base(file), match[1], err)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d commands", found)
	}
	for _, bad := range []string{"stats NODE", "status --all-of-them", "status a b", "validate --from"} {
		if parses(strings.Fields(bad)) == nil {
			t.Errorf("wmco %s is accepted", bad)
		}
	}
}

// parses returns the error of a command line, without running it.
func parses(args []string) error {
	root := rootCommand(app{stdout: io.Discard, stderr: io.Discard, stdin: strings.NewReader(""), now: func() time.Time { return time.Time{} }})
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root {
		return fmt.Errorf("%s: no such command", args[0])
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
