//go:build !windows

package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
)

var update = flag.Bool("update", false, "rewrite the expected output in golden/cli-node and the examples in docs/node-program.md, then fail")

// TestCommandLine runs the scripts of golden/cli-node: commands on a simulated host, their output and exit status.
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
		Dir:                 filepath.Join(root, "cli-node"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("WMCO_NODE_ROOT", filepath.Join(e.WorkDir, "machine"))
			for _, name := range []string{"clusters", "facts", "payload", "transitions"} {
				if err := os.Symlink(filepath.Join(root, name), filepath.Join(e.WorkDir, name)); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": exits, "ship": ship, "truncate": truncate, "eventually": eventually,
		},
	})
}

// exits runs a command and checks its exit status: status 2 wmco-node apply.
func exits(ts *testscript.TestScript, neg bool, args []string) {
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

// ship writes the bundle of a folder with a golden.yaml, as a host reads it: ship FOLDER manifest|archive FILE.
// The environment's DIGEST is the bundle's then.
func ship(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: ship folder manifest|archive file")
	}
	dir := ts.MkAbs(args[0])
	c, err := golden.Load(dir)
	ts.Check(err)
	hosts, err := c.Read(context.Background(), dir, bundle.Key("the key of no cluster, for tests"))
	ts.Check(err)
	list, _, err := c.Render(hosts)
	ts.Check(err)
	if len(list) != 1 {
		ts.Fatalf("ship: %s has %d nodes, want 1", args[0], len(list))
	}
	contents, err := desired.PayloadContents(c.PayloadDir(dir))
	ts.Check(err)
	r, err := list[0].ArchiveRequest(contents)
	ts.Check(err)
	ts.Setenv("DIGEST", string(r.Manifest.Digest))
	var out bytes.Buffer
	switch args[1] {
	case "manifest":
		data, err := r.Manifest.Encode()
		ts.Check(err)
		out.Write(data)
	case "archive":
		ts.Check(archive.Send(context.Background(), &out, r))
	default:
		ts.Fatalf("ship: %q is neither manifest nor archive", args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out.Bytes(), 0o600))
}

// truncate keeps the beginning of a file: truncate FILE PERCENT.
func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: truncate file percent")
	}
	path := ts.MkAbs(args[0])
	percent, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, info.Size()*percent/100))
}

// patience is how long eventually waits at most.
const patience = 30 * time.Second

// eventually waits until a file holds a text: eventually FILE TEXT.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: eventually file text")
	}
	path := ts.MkAbs(args[0])
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), args[1]) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not hold %q: %v\n%s", args[0], args[1], err, data)
		}
	}
}
