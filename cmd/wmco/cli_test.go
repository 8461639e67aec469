package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the expected output in golden/cli, then fail")

// TestCommandLine runs the scripts of golden/cli: commands, their output and exit status.
func TestCommandLine(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		// The scripts run in parallel, and have ended then. A run that rewrites judges nothing.
		t.Cleanup(func() { t.Error("the scripts are rewritten; run the test again without -update") })
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(root, "cli"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("NO_COLOR", "1")
			for _, name := range []string{"clusters", "facts", "payload"} {
				if err := os.Symlink(filepath.Join(root, name), filepath.Join(e.WorkDir, name)); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": checkStatus},
	})
}

// checkStatus runs a command and checks its exit status: status 2 wmco render.
func checkStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [args]")
	}
	got := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%v: exit status %s, want %s", args[1:], got, args[0])
	}
}
