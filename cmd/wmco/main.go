// Command wmco previews, checks and applies the desired state of Windows nodes of OKD and OpenShift clusters.
package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"wmco/controller/gather"
	"wmco/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	name, before := calledAs(os.Args[0], os.Getenv)
	app := app{
		name:  name,
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: time.Now,
		color:   term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
		version: version,
	}
	os.Exit(runCommand(ctx, app, append(before, os.Args[1:]...)))
}

// runCommand runs one command line and returns the exit status.
func runCommand(ctx context.Context, a app, args []string) int {
	root := rootCommand(a)
	root.SetArgs(args)
	return cli.Execute(ctx, root, exitStatus)
}

// exitStatus returns the exit status of an error that has none of its own.
func exitStatus(err error) int {
	if unreachable := (*gather.UnreachableError)(nil); errors.As(err, &unreachable) {
		return cli.ExitUnreachable
	}
	return cli.ExitUsage
}

func rootCommand(a app) *cobra.Command {
	root := &cobra.Command{
		Use:   programName,
		Short: "Preview, check and apply the desired state of Windows nodes of OKD and OpenShift clusters",
		Long: `Preview how a change of a cluster's objects affects its Windows nodes, show the rollout and why a node waits, act on nodes, and
prepare hosts and Machines. wmco computes the files, services and settings of each Windows node from the objects of its cluster.
Preview commands change nothing.

Results go to stdout, progress and warnings to stderr. -o json prints the result for programs.`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fetchPayload(cmd, a) },
	}
	cli.AddVersion(root, versionLine(a))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.AddCommand(
		renderCommand(a), validateCommand(a), diffCommand(a), applyCommand(a), verifyCommand(a), preflightCommand(a),
		selftestCommand(a), goldenCommand(a), operatorCommand(a), statusCommand(a), gatherCommand(a),
		machineSetCommand(a), userDataCommand(a), explainCommand(a), docsCommand(a), versionCommand(a),
	)
	for _, v := range annotationVerbs() {
		root.AddCommand(verbCommand(a, v))
	}
	groupCommands(root)
	cli.Group(root)
	cli.FitHelp(root)
	callIt(root, cmp.Or(a.name, programName))
	return root
}

// groupCommands puts the commands of the root under the headings of its help.
func groupCommands(root *cobra.Command) {
	for _, g := range []struct{ id, title, commands string }{
		{"preview", "Preview a change", "render validate diff golden"},
		{"inspect", "Inspect nodes and clusters", "status gather explain"},
		{"change", "Act on nodes", "pause resume retry reboot adopt confirm"},
		{"hosts", "Work on hosts over SSH", "preflight selftest apply verify"},
		{"setup", "Set up Machines and the operator", "machineset userdata operator"},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.id
			}
		}
	}
}
