package main

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/internal/cli"
)

// statusFlags are those of `wmco status`.
type statusFlags struct {
	inputFlags
	watch  bool
	format cli.Format
}

// statusHeading is the heading of the table.
const statusHeading = "NODE\tDESIRED\tAPPLIED\tSTAGE\tSTATE\tSINCE\tREASON\tWHAT TO DO"

// watchPause is the time between two looks at the cluster with --watch.
const watchPause = 2 * time.Second

func statusCommand(a app) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [NODE] [--from PATH|-|cluster[:CONTEXT]] [--watch]",
		Short: "Show which Windows nodes have the bundle that is published for them",
		Long: `Show for each Windows node what is published for it, what it has, since when, and what to do about a node that does not move; for
one node everything that its agent reports. It is read from the Nodes alone: no host is asked. --watch prints the nodes that change
until it is interrupted.` +
			cli.ExitHelp("0  every node is current", "1  a node is not", "2  usage, or a node that does not exist", "3  the cluster cannot be reached", "130  interrupted"),
		Example: `  wmco status
  wmco status --watch
  wmco status winworker-x7k2p -o json
  wmco status --from must-gather.local.123`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a, args) },
	}
	f.addFrom(cmd)
	cmd.Flags().BoolVar(&f.watch, "watch", false, "print the nodes that change, until interrupted")
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	return cmd
}

func (f *statusFlags) run(ctx context.Context, a app, args []string) error {
	node := strings.Join(args, "")
	rows, err := f.read(ctx, a, node)
	if err != nil {
		return err
	}
	if err := f.print(a, rows, node); err != nil {
		return err
	}
	if f.watch {
		return f.follow(ctx, a, rows, node)
	}
	if slices.ContainsFunc(rows, func(r fleet.Row) bool { return r.State != fleet.StateCurrent }) {
		return cli.Exit(cli.ExitDiffers)
	}
	return nil
}

// read returns the rows of all nodes, or that of one.
func (f *statusFlags) read(ctx context.Context, a app, node string) ([]fleet.Row, error) {
	from := f.from
	if len(from) == 0 {
		from = []string{"cluster"}
	}
	reader, _, err := gather.Sources(from, a.stdin)
	if err != nil {
		return nil, err
	}
	rows, findings, err := fleet.Read(ctx, reader, a.now())
	if err != nil {
		return nil, &gather.UnreachableError{Err: fmt.Errorf("reading Nodes: %w", err)}
	}
	if findings.Refused() {
		return nil, refused(a, "", findings)
	}
	if node == "" {
		return rows, nil
	}
	i := slices.IndexFunc(rows, func(r fleet.Row) bool { return r.Node == node })
	if i < 0 {
		return nil, cli.UsageError("%s: no Windows node has this name", node)
	}
	return rows[i : i+1], nil
}

// follow prints the rows that change.
func (f *statusFlags) follow(ctx context.Context, a app, before []fleet.Row, node string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
		rows, err := f.read(ctx, a, node)
		if err != nil {
			return err
		}
		changed := slices.DeleteFunc(slices.Clone(rows), func(r fleet.Row) bool {
			return slices.ContainsFunc(before, func(b fleet.Row) bool {
				r.Reported, b.Reported = time.Time{}, time.Time{}
				return reflect.DeepEqual(r, b)
			})
		})
		if before = rows; len(changed) > 0 {
			if err := f.printRows(a, changed, ""); err != nil {
				return err
			}
		}
	}
}

func (f *statusFlags) print(a app, rows []fleet.Row, node string) error {
	if f.format == cli.Text && node != "" && !f.watch {
		printNode(a, rows[0])
		return nil
	}
	return f.printRows(a, rows, statusHeading)
}

func (f *statusFlags) printRows(a app, rows []fleet.Row, heading string) error {
	if f.format == cli.JSON {
		if f.watch {
			for _, r := range rows {
				if err := cli.WriteJSONLine(a.stdout, r); err != nil {
					return err
				}
			}
			return nil
		}
		return cli.WriteJSON(a.stdout, append([]fleet.Row{}, rows...))
	}
	w := tabwriter.NewWriter(a.stdout, 12, 0, 2, ' ', 0)
	if heading != "" {
		cli.Printf(w, "%s\n", cli.Ready(heading))
	}
	for _, r := range rows {
		cli.Printf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Node, short(r.Desired), short(r.Applied), cmp.Or(string(r.Stage), "-"), r.State,
			since(a.now(), r.Since), cmp.Or(r.Reason, "-"), cmp.Or(r.Fix, "-"))
	}
	return w.Flush()
}

func short(d bundle.Digest) string { return cmp.Or(d.Short(), "-") }

// since is how long ago something was.
func since(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return now.Sub(t).Round(time.Second).String()
}

// printNode prints everything about one node.
func printNode(a app, r fleet.Row) {
	line := func(name, text string) {
		if text != "" {
			cli.Printf(a.stdout, "%-14s  %s\n", name, text)
		}
	}
	line("node", r.Node)
	line("state", string(r.State))
	line("stage", string(r.Stage))
	line("desired", string(r.Desired))
	line("applied", string(r.Applied))
	line("reason", r.Reason)
	line("message", r.Message)
	line("fix", r.Fix)
	line("allowed impact", string(r.MaxImpact))
	line("needed impact", string(r.Impact))
	line("missing", strings.Join(r.Missing, ", "))
	line("after a boot", joinBy(r.RebootPending, func(id bundle.EntryID) string { return string(id) }, ", "))
	if r.Repaired > 0 {
		line("repaired", bundle.Count(r.Repaired, "change"))
	}
	line("agent", r.Agent)
	if !r.Reported.IsZero() {
		line("reported", since(a.now(), r.Reported)+" ago")
	}
}
