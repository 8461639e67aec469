// Package nodecli has the commands of wmco-node. They take everything from a Program: the host, the clock and the streams. Command wmco-node makes
// one of its process; simulations make one for each command on a host in memory.
package nodecli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/applier/agent/images"
	"wmco/applier/collect"
	"wmco/applier/ownfile"
	"wmco/applier/protocol"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/layout"
)

// Program is what the commands take from the process.
type Program struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Clock  applier.Clock
	// Version is that of this program, SourceTree the URL below which the files of its release can be read.
	Version    string
	SourceTree string
	// Registries sends the requests to registries; nil is over the network.
	Registries http.RoundTripper
	// Digest returns that of its file.
	Digest func() (bundle.Digest, error)
	Host   Host
	// Settle is applier.Engine.Settle, Guard applier.Engine.GuardWait.
	Settle, Guard time.Duration
	// AsService runs in this process, which a service control manager has started.
	AsService func(ctx context.Context, name string, run func(context.Context) error) error
}

// Host is the host that the commands work on.
type Host interface {
	// Open returns the host for one command.
	Open() (applier.Host, error)
	// Machine returns the host for the self-test.
	Machine() (selftest.Machine, error)
	// System returns the facts of its Windows.
	System() collect.System
	// Images returns its containerd; nil where there is none.
	Images() (images.Runtime, error)
	// OpenLinked opens a file, also through a link.
	OpenLinked(ctx context.Context, host applier.Host, path string) (io.ReadCloser, error)
}

// Execute executes one command line and returns the exit status.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
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

// Root returns the command with all commands below it.
func (p Program) Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "wmco-node",
		Short: "Compare this host with a bundle, and apply it",
		Long: `wmco-node runs on the Windows nodes of a cluster. Its commands read a bundle from stdin and print JSON; wmco and the
operator call them over SSH, and people can too.`,
	}
	cli.AddVersion(root, "wmco-node "+p.Version)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	// The program has read it.
	root.PersistentFlags().String(
		strings.TrimPrefix(ownfile.Flag, "--"), "",
		"expected CRC-32C of this executable (default: it is checked against the digest in its name)",
	)
	root.AddCommand(
		observeCommand(p), verifyCommand(p), applyCommand(p), stageCommand(p), fetchCommand(p), confirmCommand(p), factsCommand(p),
		repairCommand(p), cleanupCommand(p), pendingKeyCommand(p), runCommand(p), guardCommand(p),
		preflightCommand(p), registryCommand(p), selftestCommand(p), versionCommand(p),
	)
	return root
}

// engine returns the applier for this host. Doing is shown to other runs that find the host locked.
func (p Program) engine(doing string) (*applier.Engine, error) {
	host, err := p.Host.Open()
	if err != nil {
		return nil, &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	owner := fmt.Sprintf("wmco-node %s, process %d, since %s", doing, os.Getpid(), p.Clock.Now().UTC().Format(time.RFC3339))
	name := func(ctx context.Context) (string, error) { return p.kubeletNode(ctx, host), nil }
	return &applier.Engine{
		Host: host, Clock: p.Clock, Permits: layout.Check, Program: p.Version, Owner: owner, Settle: p.Settle,
		NodeName: name,
	}, nil
}

// kubeletNode returns the name of the Node in the client certificate of the kubelet; empty where it has none, or none
// that it could use.
func (p Program) kubeletNode(ctx context.Context, host applier.Host) string {
	data, err := p.readLinked(ctx, host, currentKeyFile)
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
func (p Program) print(value any) error { return cli.WriteJSON(p.Stdout, value) }

// emit prints an event as one line.
func (p Program) emit(e protocol.Event) {
	if err := cli.WriteJSONLine(p.Stdout, e); err != nil {
		cli.Printf(p.Stderr, "wmco-node: printing an event: %v\n", err)
	}
}
