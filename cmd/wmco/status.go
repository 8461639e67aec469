package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/internal/cli"
	"wmco/report/mustgather"
)

type statusFlags struct {
	inputFlags
	watch    bool
	selector string
	states   []string
	format   cli.Format
}

func statusCommand(a app) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [NODE|ADDRESS] [--from PATH|-|cluster[:CONTEXT]] [--watch]",
		Short: "Show the status of Windows nodes and of the rollout",
		Long: `List the Windows nodes with their state, its age, and the reason and fix if a node is stuck. -o wide adds the bundles. With NODE, print
the agent's report and the last updates of that node.

Problems of the operator and of the inputs come first, then the rollout: how many nodes are done, what the others wait for, and an
estimate of the remaining time from earlier updates. STATE compares a node with the bundle that is published for it, ROLLOUT with the
newest bundle, which is published node by node. Hosts that are joining, being removed or waiting are listed below the nodes.

The command changes nothing. It reads Nodes, WindowsNodesStatus, the settings and the operator's Lease. --watch prints each change of
a node with its duration, until interrupted.` +
			cli.ExitHelp(
				"0  all nodes are updated and Ready, and the condition Ready of WindowsNodesStatus is True (not checked when you select nodes)",
				"1  a node is not updated or not Ready, a host waits or cannot join, a condition reports a problem, or the operator is silent or absent",
				"2  invalid usage, or no such node or host", "3  the cluster cannot be reached",
				"130  interrupted",
			),
		Example: `  wmco status
  wmco status --watch
  wmco status --state Degraded,NotReporting -o name
  wmco status 10.0.0.7
  wmco status winworker-x7k2p -o json
  wmco status --from must-gather.local.123`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args) },
	}
	f.addFrom(cmd)
	f.clusterFlags.addFlags(cmd)
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "print the nodes that change, until interrupted")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "only nodes with these labels, such as zone=a,!canary")
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only nodes in these states, such as Degraded,NotReporting")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(nodestate.Names(), cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = f.completeNames
	cli.AddFormat(cmd, &f.format, cli.Text, cli.Wide, cli.JSON, cli.YAML, cli.Name)
	return cmd
}

func (f *statusFlags) run(ctx context.Context, a app, args []string) error {
	node := strings.Join(args, "")
	now, err := f.read(ctx, a, node)
	if err != nil {
		return err
	}
	if err := f.print(a, now, node); err != nil {
		return err
	}
	if f.watch {
		return f.follow(ctx, a, now, node)
	}
	if !now.IsDone() {
		return cli.Exit(cli.ExitDiffers)
	}
	return nil
}

// read returns all nodes, or one.
func (f *statusFlags) read(ctx context.Context, a app, node string) (fleet.Fleet, error) {
	from := f.from
	if len(from) == 0 {
		from = []string{"cluster"}
	}
	reader, complete, err := a.readerOf(from, f.kube)
	if err != nil {
		return fleet.Fleet{}, err
	}
	all, findings, err := fleet.Read(ctx, reader, f.namespace, f.at(a))
	if err != nil {
		return fleet.Fleet{}, &gather.UnreachableError{Err: fmt.Errorf("reading Nodes: %w", err)}
	}
	if findings.Refused() {
		return fleet.Fleet{}, refusedInputs(a, "", findings)
	}
	if complete {
		all.NoteAbsence(f.namespace)
	}
	if node == "" {
		return f.selectRows(a, all)
	}
	one, ok := all.Only(node)
	if !ok {
		return fleet.Fleet{}, cli.UsageError(
			"%s: no Windows node with this name, and no joining or waiting host with this address%s", node,
			bundle.DidYouMean(node, all.Names()),
		)
	}
	return one, nil
}

// selectRows keeps what --selector and --state name.
func (f *statusFlags) selectRows(a app, all fleet.Fleet) (fleet.Fleet, error) {
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return fleet.Fleet{}, cli.UsageError("--selector: %w", err)
	}
	var states []nodestate.State
	for _, name := range f.states {
		s, isFormer, known := nodestate.Parse(name)
		if !known {
			return fleet.Fleet{}, cli.UsageError(
				"--state %s: must be one of %s%s", name, strings.Join(nodestate.Names(), ", "),
				bundle.DidYouMean(name, nodestate.Names()),
			)
		}
		if isFormer {
			cli.Printf(a.stderr, "--state %s: the state is called %s now; the next release does not know the former name\n", name, s)
		}
		states = append(states, s)
	}
	return all.Selected(selector, states), nil
}

// completeNames completes the name of a node or host.
func (f *statusFlags) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := f.read(cmd.Context(), app{stderr: io.Discard, stdin: strings.NewReader(""), now: time.Now}, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return all.Names(), cobra.ShellCompDirectiveNoFileComp
}

// at is the time that the answer is about: now, or when the must-gather was collected.
func (f *statusFlags) at(a app) time.Time {
	for _, dir := range f.from {
		if isLive(dir) {
			continue
		}
		if at, ok := mustgather.Collected(dir); ok {
			return at
		}
	}
	return a.now()
}

func (f *statusFlags) print(a app, now fleet.Fleet, node string) error {
	switch {
	case f.format == cli.JSON && f.watch:
		return cli.WriteJSONLine(a.stdout, now)
	case f.format == cli.JSON:
		return cli.WriteJSON(a.stdout, now)
	case f.format == cli.YAML:
		return writeYAML(a.stdout, now)
	case f.format == cli.Name:
		printNames(a, now)
		return nil
	}
	at := f.at(a)
	a.now = func() time.Time { return at } // durations end there
	printOperator(a, now.Operator)
	for _, c := range now.Problems() {
		cli.Printf(a.stdout, "%s\n", cli.Ready(wrapWide(a, problem(c), "    ")))
	}
	printRollout(a, now.Rollout)
	switch {
	case node == "" || f.watch:
		return f.printNodes(a, now)
	case len(now.Nodes) > 0:
		f.printNode(a, now)
	}
	f.printHosts(a, now)
	return nil
}

// printOperator first prints that the operator is silent or absent: all else may be outdated.
func printOperator(a app, o fleet.Operator) {
	if o.Note != "" {
		cli.Printf(a.stderr, "%s\n", o.Note)
	}
	if o.Problem != "" {
		cli.Printf(a.stdout, "%s\n", cli.Ready(wrapWide(a, operatorLine(o), "    ")))
	}
}

// printNode prints everything about the one node.
func (f *statusFlags) printNode(a app, now fleet.Fleet) {
	r := now.Nodes[0]
	line := func(name, text string) { printRow(a, name, text) }
	line("node", r.Node)
	line("state", string(r.State))
	line("ready", string(r.Ready))
	line("stage", string(r.Stage))
	line("desired", string(r.Desired))
	line("applied", string(r.Applied))
	line("reason", r.Reason)
	line("message", r.Message)
	line("fix", r.Fix)
	printLog(a, r.Log)
	line("max impact", string(r.MaxImpact))
	line("needs impact", string(r.Impact))
	line("missing", strings.Join(r.Missing, ", "))
	line("needs reboot", joinBy(r.RebootPending, func(id bundle.EntryID) string { return string(id) }, ", "))
	if r.Repaired > 0 {
		line("drift", bundle.Count(r.Repaired, "change")+" undone")
	}
	line("agent", r.Agent)
	if !r.Reported.IsZero() {
		line("reported", since(a.now(), r.Reported)+" ago")
	}
	for _, s := range now.Rollout.Nodes {
		line("rollout", string(s.Phase)+" ("+string(s.Reason)+"): "+s.Message)
		line("drain blocked", s.DrainBlocked)
	}
	for i, t := range r.Turns {
		line(turnName(i), turnText(a.now(), t))
	}
}
