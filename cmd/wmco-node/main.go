// Command wmco-node is the program on a Windows node: it compares the host with a bundle and applies the bundle, once
// over SSH or continuously as a service. It reads stdin, prints JSON and decides nothing that is not in the bundle.
//
// On other systems it works on a simulated host in a folder (--root, or WMCO_NODE_ROOT in the environment), for demos
// and tests.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier/ownfile"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/nodecli"
)

// version is set by the Makefile.
var version = "devel"

// sourceTree is the URL below which the files of a release can be read; make release sets it.
var sourceTree string //nolint:gochecknoglobals // the linker sets it

func main() {
	if played, status := playRole(); played {
		os.Exit(status)
	}
	if err := checkSelf(os.Args[1:]); err != nil {
		cli.Printf(os.Stderr, "wmco-node: %v\n", err)
		os.Exit(cli.ExitDamaged)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cobra.MousetrapHelpText = "" // it is not started from Explorer, so the parent process is not inspected
	p := nodecli.Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Clock: clock{}, Version: version, SourceTree: sourceTree, Digest: ownDigest,
	}
	os.Exit(nodecli.Execute(ctx, newRoot(p), os.Args[1:]))
}

// checkSelf refuses to run a damaged file, before anything else: not a byte of stdin is read. What Windows starts as a
// service is the engine's copy, which was checked when it was written: a node agent that refuses to start could repair
// nothing.
func checkSelf(args []string) error {
	if isService(args) {
		return nil
	}
	return ownfile.Check(args)
}

func ownDigest() (bundle.Digest, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	digest, err := ownfile.Digest(path)
	return bundle.Digest("sha256:" + digest), err
}

// isService reports whether a command line is that of a service.
func isService(args []string) bool {
	if len(args) == 0 {
		return false
	}
	return slices.Contains([]string{"run", "guard"}, args[0]) || args[0] == "cleanup" && slices.Contains(args, "--service")
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) SinceBoot() time.Duration { return sinceBoot() }

func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
