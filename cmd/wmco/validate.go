package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"wmco/render"
	"wmco/render/bundle"
)

// validateJSON is the answer of `wmco validate -o json`.
type validateJSON struct {
	Nodes    []string        `json:"nodes"`
	Findings bundle.Findings `json:"findings"`
}

func validateCommand(a app) *cobra.Command {
	var inputs inputFlags
	var f format
	cmd := &cobra.Command{
		Use:   "validate --from PATH|-|cluster[:CONTEXT] [--node NAME | --instance ADDRESS]",
		Short: "List every problem in the inputs",
		Long: `Check the objects of a cluster and everything that would be rendered from them, for all Windows machines unless one is
chosen. Nothing is written. Unlike render, validate knows the time: certificates that have expired, or will within 30
days, are found here.` +
			exitHelp("0  no finding of severity error", "2  usage, or findings of severity error", "3  the cluster cannot be reached", "130  interrupted"),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return validate(cmd.Context(), a, inputs, f) },
	}
	inputs.add(cmd)
	addFormat(cmd, &f)
	return cmd
}

func validate(ctx context.Context, a app, inputs inputFlags, f format) error {
	result, err := inputs.gather(ctx, a)
	if err != nil {
		return err
	}
	nodes := result.Nodes
	if inputs.node != "" || inputs.instance != "" {
		if nodes, err = inputs.selected(nodes); err != nil {
			return err
		}
	}
	findings, err := validateNodes(result.Cluster, nodes)
	if err != nil {
		return err
	}
	findings = append(findings, result.Findings...)
	findings = append(findings, result.Cluster.Expiring(a.now())...).Sorted()
	if err := printValidation(a, f, nodes, findings); err != nil {
		return err
	}
	if findings.Refused() {
		return &exitError{status: exitUsage}
	}
	return nil
}

func validateNodes(c render.Cluster, nodes []render.Node) (bundle.Findings, error) {
	fleet, findings, err := render.NewFleet(c, render.Options{})
	if err != nil || fleet == nil {
		return findings, err
	}
	for _, n := range nodes {
		_, more, err := fleet.Node(n)
		if err != nil {
			return nil, err
		}
		findings = append(findings, more...)
	}
	return findings, nil
}

func printValidation(a app, f format, nodes []render.Node, findings bundle.Findings) error {
	if f == formatJSON {
		answer := validateJSON{Nodes: []string{}, Findings: append(bundle.Findings{}, findings...)}
		for _, n := range nodes {
			answer.Nodes = append(answer.Nodes, n.ID())
		}
		return writeJSON(a.stdout, answer)
	}
	printFindings(a.stdout, palette{a.color}, findings)
	_, err := fmt.Fprintf(a.stdout, "%d Windows machines: %s\n", len(nodes), count(findings))
	return err
}
