package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/status"
	"wmco/internal/cli"
)

// mostExplained is how many reasons are explained below a table.
const mostExplained = 20

// printNodes prints a table of nodes, one of the other hosts, and then the problems with their fixes.
func (f *statusFlags) printNodes(a app, now fleet.Fleet) error {
	if len(now.Nodes)+len(now.Hosts) == 0 {
		cli.Printf(a.stderr, "%s\n", f.nothing())
		return nil
	}
	if f.format == cli.Wide {
		return f.printWide(a, now)
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	turns, at := turnsOf(now.Rollout), f.at(a)
	cli.Printf(w, "NODE\tSTATE\tSINCE\tREASON\tREADY\tROLLOUT\n")
	for _, r := range now.Nodes {
		cli.Printf(
			w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Node, r.State, since(at, r.Since), cmp.Or(r.Reason, "-"),
			cmp.Or(r.Ready, "-"), cmp.Or(turns[r.Node], "-"),
		)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := (palette{a.color}).printStates(a.stdout, table.String(), now); err != nil {
		return err
	}
	if err := printHostTable(a, now); err != nil {
		return err
	}
	printAdvice(a, adviceOf(now))
	return nil
}

// nothing is the text for an empty list.
func (f *statusFlags) nothing() string {
	if f.selector != "" || len(f.states) > 0 {
		return "No nodes match the selection."
	}
	return "No Windows nodes found."
}

// printWide prints every column of the nodes, and then the hosts.
func (f *statusFlags) printWide(a app, now fleet.Fleet) error {
	w := tabwriter.NewWriter(a.stdout, 12, 0, 2, ' ', 0)
	turns, at := turnsOf(now.Rollout), f.at(a)
	cli.Printf(w, "NODE\tDESIRED\tAPPLIED\tSTAGE\tSTATE\tSINCE\tREASON\tREADY\tROLLOUT\tFIX\n")
	for _, r := range now.Nodes {
		cli.Printf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Node, short(r.Desired), short(r.Applied), cmp.Or(string(r.Stage), "-"), r.State,
			since(at, r.Since), cmp.Or(r.Reason, "-"), cmp.Or(r.Ready, "-"), cmp.Or(turns[r.Node], "-"), cmp.Or(r.Fix, "-"))
	}
	if err := w.Flush(); err != nil || len(now.Hosts) == 0 {
		return err
	}
	w = tabwriter.NewWriter(a.stdout, 12, 0, 2, ' ', 0)
	cli.Printf(w, "\nHOST\tADDRESS\tNODE\tSTATE\tREASON\tFIX\n")
	for _, h := range now.Hosts {
		cli.Printf(
			w, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Name, cmp.Or(h.Address, "-"), cmp.Or(h.Node, "-"), h.State, h.Reason,
			cmp.Or(h.Fix, stepOf(h), "-"),
		)
	}
	return w.Flush()
}

// stepOf is the current step of a host that joins, is removed, or is worked on.
func stepOf(h status.Host) string {
	if h.State == nodestate.Joining || h.State == nodestate.Removing || h.State == nodestate.Updating {
		return h.Message
	}
	return ""
}

// printHostTable prints the hosts that have no row as nodes.
func printHostTable(a app, now fleet.Fleet) error {
	hosts := now.Others()
	if len(hosts) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	cli.Printf(w, "\nHOST\tADDRESS\tSTATE\tREASON\n")
	for _, h := range hosts {
		cli.Printf(w, "%s\t%s\t%s\t%s\n", h.Name, cmp.Or(h.Address, "-"), h.State, h.Reason)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if now.MoreHosts > 0 {
		cli.Printf(a.stdout, "and %s\n", bundle.Count(now.MoreHosts, "more host"))
	}
	return nil
}

// advice is a problem of some nodes or hosts and its fix; or the work on hosts, without a fix.
type advice struct {
	names        []string
	message, fix string
}

// adviceOf collects the problems of nodes and hosts, each text once.
func adviceOf(now fleet.Fleet) []advice {
	var all []advice
	add := func(name, message, fix string) {
		i := slices.IndexFunc(all, func(x advice) bool { return x.message == message && x.fix == fix })
		switch {
		case i >= 0:
			all[i].names = append(all[i].names, name)
		default:
			all = append(all, advice{[]string{name}, message, fix})
		}
	}
	for _, r := range now.Nodes {
		if r.Fix != "" && !isExplained(now.Rollout, r) {
			add(r.Node, r.Message, r.Fix)
		}
	}
	for _, h := range now.Others() {
		if h.Fix != "" || stepOf(h) != "" {
			add(h.Name, h.Message, h.Fix)
		}
	}
	return all
}

// isExplained reports whether the line of a stopped rollout already has the cause and the fix of a node.
func isExplained(r fleet.Rollout, row fleet.Row) bool {
	return r.Fix != "" && strings.Contains(r.Fix, row.Fix) && strings.Contains(r.Message, row.Message)
}

func printAdvice(a app, all []advice) {
	for _, x := range all[:min(mostExplained, len(all))] {
		cli.Printf(a.stdout, "\n%s\n", cli.Ready(wrapWide(a, fewNames(x.names)+": "+cmp.Or(x.message, "needs attention"), "  ")))
		if x.fix != "" {
			cli.Printf(a.stdout, "%s\n", cli.Ready(wrapWide(a, "  fix: "+x.fix, "       ")))
		}
	}
	if n := len(all) - mostExplained; n > 0 {
		cli.Printf(a.stdout, "\nand %s: -o wide shows all\n", bundle.Count(n, "more reason"))
	}
}

// printHosts prints everything about the named host.
func (f *statusFlags) printHosts(a app, now fleet.Fleet) {
	for _, h := range now.Others() {
		for _, line := range [][2]string{
			{
				"host", h.Name,
			}, {
				"address", h.Address,
			}, {"node", h.Node}, {"state", string(h.State)}, {"reason", h.Reason}, {"message", h.Message}, {"fix", h.Fix},
		} {
			printRow(a, line[0], line[1])
		}
		printLog(a, h.Log)
	}
}

// printRow prints a name and its text, or nothing if the text is empty.
func printRow(a app, name, text string) {
	if text != "" {
		cli.Printf(a.stdout, "%s\n", hangingText(fmt.Sprintf("%-14s  ", name), relativeTimes(a.now(), text), terminalColumns(a.stdout)))
	}
}

// printLog prints the end of the log of a service, a line each.
func printLog(a app, log bundle.LogTail) {
	for i, line := range log.Lines {
		name := map[bool]string{true: "log"}[i == 0]
		cli.Printf(a.stdout, "%-14s  %s: %s\n", name, log.Service, line)
	}
}

// printNames prints node/NAME, which other commands accept.
func printNames(a app, now fleet.Fleet) {
	for _, r := range now.Nodes {
		cli.Printf(a.stdout, "node/%s\n", r.Node)
	}
}

// writeYAML writes an answer as YAML, with the fields of its JSON.
func writeYAML(w io.Writer, answer any) error {
	text, err := yaml.Marshal(answer)
	if err != nil {
		return err
	}
	return cli.PrintText(w, string(text))
}

// operatorLine is the problem of the operator, in one line.
func operatorLine(o fleet.Operator) string { return o.Problem + "; fix: " + o.Fix }

// problem is a condition in one line.
func problem(c metav1.Condition) string {
	return fmt.Sprintf(
		"%s has been %s since %s (%s): %s", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason,
		c.Message,
	)
}
