package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/render"
)

// validateJSON is the answer of `wmco validate -o json`.
type validateJSON struct {
	Nodes    []string        `json:"nodes"`
	Findings bundle.Findings `json:"findings"`
	// Images are those that a node itself needs, and where it pulls them from.
	Images []render.NodeImage `json:"images"`
}

func validateCommand(a app) *cobra.Command {
	var inputs inputFlags
	var f cli.Format
	var limit failOn
	cmd := &cobra.Command{
		Use:   "validate --from PATH|-|cluster[:CONTEXT] [--node NAME | --instance ADDRESS]",
		Short: "List every problem in the inputs",
		Long: `Check the objects of a cluster and everything that would be rendered from them, for all Windows hosts unless one is
chosen. Nothing is written. Unlike render, validate reads the clock: it finds certificates that have expired, or will within
30 days.` +
			cli.ExitHelp("0  no finding of --fail-on (default: of severity error)", "2  usage, or findings of --fail-on", "3  the cluster cannot be reached", "130  interrupted"),
		RunE: func(cmd *cobra.Command, _ []string) error { return validate(cmd.Context(), a, inputs, f, limit) },
	}
	inputs.add(cmd)
	limit.add(cmd, bundle.SeverityError)
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsObjects()}, Alone: [][]string{oneChoice()}})
	return cmd
}

func validate(ctx context.Context, a app, inputs inputFlags, f cli.Format, limit failOn) error {
	hosts, err := inputs.read(ctx, a, nil)
	if err != nil {
		return err
	}
	nodes := hosts.All
	if inputs.chosen() {
		if nodes, err = inputs.choose(hosts); err != nil {
			return err
		}
	}
	_, findings, err := hosts.Render(nodes)
	if err != nil {
		return err
	}
	findings = append(findings, hosts.Cluster.Expiring(a.now())...).Sorted()
	answer := validateJSON{Nodes: []string{}, Findings: findingsAnswer(findings), Images: hosts.Cluster.NodeImages()}
	for _, n := range nodes {
		answer.Nodes = append(answer.Nodes, n.ID())
	}
	if err := printValidation(a, f, answer, findings); err != nil {
		return err
	}
	if findings.Refused() {
		return cli.Exit(cli.ExitUsage)
	}
	return limit.judge("", findings)
}

func printValidation(a app, f cli.Format, answer validateJSON, findings bundle.Findings) error {
	if f == cli.JSON {
		return cli.WriteJSON(a.stdout, answer)
	}
	printFindings(a.stdout, palette{a.color}, findings)
	for _, i := range answer.Images {
		places := i.Mirrors
		if i.Source {
			places = append(places, "its own registry")
		}
		cli.Printf(a.stdout, "%s image %s is pulled by %s from %s\n", i.Purpose, i.Image, i.By, cmp.Or(strings.Join(places, ", "), "nowhere"))
	}
	return cli.PrintText(a.stdout, fmt.Sprintf("%s: %s\n", bundle.Count(len(answer.Nodes), "Windows host"), counts(findings)))
}
