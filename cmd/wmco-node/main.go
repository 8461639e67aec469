// Command wmco-node is the program on a Windows node: it compares the host with a bundle and applies the bundle, once
// over SSH or continuously as a service. It reads stdin, prints JSON and decides nothing that is not in the bundle.
//
// On other systems it works on a simulated host in a folder (--root, or WMCO_NODE_ROOT in the environment), for demos
// and tests.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/internal/cli"
	"wmco/layout"
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
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, clock: clock{}, version: version,
		root: os.Getenv("WMCO_NODE_ROOT"),
	}
	os.Exit(run(ctx, a, os.Args[1:]))
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

// isService reports whether a command line is that of a service.
func isService(args []string) bool {
	if len(args) == 0 {
		return false
	}
	return slices.Contains([]string{"run", "guard"}, args[0]) || args[0] == "cleanup" && slices.Contains(args, "--service")
}

// app is what commands take from the process.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	clock  applier.Clock
	// version is of this program.
	version string
	// root is the folder of a simulated host.
	root string
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) SinceBoot() time.Duration { return sinceBoot() }

func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// run executes one command line and returns the exit status.
func run(ctx context.Context, a *app, args []string) int {
	root := rootCommand(a)
	root.SetArgs(args)
	return cli.Execute(ctx, root, exitStatus)
}

// exitStatus returns the exit status of an error that has none of its own.
func exitStatus(err error) int {
	var back *applier.RolledBackError
	var partial *applier.PartialError
	var file *applier.FileError
	var service *applier.ServiceError
	var fault *applier.FaultError
	var locked *applier.LockedError
	switch {
	case errors.As(err, &back):
		return cli.ExitRolledBack
	case errors.As(err, &partial), errors.As(err, &fault), errors.As(err, &file), errors.As(err, &service), errors.As(err, &locked):
		return cli.ExitPartial
	}
	return cli.ExitUsage
}

func rootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "wmco-node",
		Short: "Compare this host with a bundle, and apply it",
		Long: `wmco-node runs on the Windows nodes of a cluster. Its commands read a bundle from stdin and print JSON; wmco and the
operator call them over SSH, and people can too.`,
	}
	cli.AddVersion(root, "wmco-node "+a.version)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	// checkSelf has read it.
	root.PersistentFlags().String(
		strings.TrimPrefix(ownfile.Flag, "--"), "",
		"expected CRC-32C of this executable (default: it is checked against the digest in its name)",
	)
	platformCommands(root, a)
	root.AddCommand(
		observeCommand(a), verifyCommand(a), applyCommand(a), stageCommand(a), fetchCommand(a), confirmCommand(a), factsCommand(a),
		repairCommand(a), cleanupCommand(a), pendingKeyCommand(a), runCommand(a), guardCommand(a),
		preflightCommand(a), registryCommand(a), selftestCommand(a), versionCommand(a),
	)
	return root
}

// engine returns the applier for this host. Doing is shown to other runs that find the host locked.
func (a *app) engine(doing string) (*applier.Engine, error) {
	host, err := openHost(a.root)
	if err != nil {
		return nil, &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	owner := fmt.Sprintf("wmco-node %s, process %d, since %s", doing, os.Getpid(), a.clock.Now().UTC().Format(time.RFC3339))
	name := func(ctx context.Context) (string, error) { return kubeletNode(ctx, host), nil }
	return &applier.Engine{
		Host: host, Clock: a.clock, Permits: layout.Check, Program: a.version, Owner: owner, Settle: settleLimit,
		NodeName: name,
	}, nil
}

// kubeletNode returns the name of the Node in the client certificate of the kubelet; empty where it has none, or none
// that it could use.
func kubeletNode(ctx context.Context, host applier.Host) string {
	data, err := readLinked(ctx, host, currentKeyFile)
	if err != nil {
		return ""
	}
	name, err := agent.NodeOfCertificate(data)
	if err != nil {
		return ""
	}
	return name
}

// identity is what the bundle of a command may make of the node that this host is.
type identity struct {
	change bool
	reset  string
}

func (i *identity) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&i.change, "change-node", false, "accept the bundle of another node than the one that this host is")
	cmd.Flags().StringVar(
		&i.reset, "reset", "",
		"accept a bundle to join a cluster with, although this host is the node of this name: it stops being that",
	)
}

// allow makes an engine accept it.
func (i *identity) allow(e *applier.Engine) { e.ChangeNode, e.Reset = i.change, i.reset }

// print writes one JSON value.
func (a *app) print(value any) error { return cli.WriteJSON(a.stdout, value) }

// emit prints an event as one line.
func (a *app) emit(e protocol.Event) {
	if err := cli.WriteJSONLine(a.stdout, e); err != nil {
		cli.Printf(a.stderr, "wmco-node: printing an event: %v\n", err)
	}
}
