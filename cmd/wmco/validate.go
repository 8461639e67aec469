package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/render"
)

// validateJSON is the answer of `wmco validate -o json`.
type validateJSON struct {
	Nodes    []string        `json:"nodes"`
	Findings bundle.Findings `json:"findings"`
	// Images are those that a node itself needs, and where it looks for them.
	Images []render.NodeImage `json:"images"`
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
	options, findings, err := inputs.options(ctx)
	if err != nil {
		return err
	}
	more, err := validateNodes(result.Cluster, nodes, options)
	if err != nil {
		return err
	}
	findings = append(append(findings, more...), result.Findings...)
	findings = append(findings, result.Cluster.Expiring(a.now())...).Sorted()
	answer := validateJSON{Nodes: []string{}, Findings: append(bundle.Findings{}, findings...), Images: result.Cluster.NodeImages()}
	for _, n := range nodes {
		answer.Nodes = append(answer.Nodes, n.ID())
	}
	if err := printValidation(a, f, answer); err != nil {
		return err
	}
	if findings.Refused() {
		return &exitError{status: exitUsage}
	}
	return nil
}

func validateNodes(c render.Cluster, nodes []render.Node, o render.Options) (bundle.Findings, error) {
	fleet, findings, err := render.NewFleet(c, o)
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

func printValidation(a app, f format, answer validateJSON) error {
	if f == formatJSON {
		return writeJSON(a.stdout, answer)
	}
	printFindings(a.stdout, palette{a.color}, answer.Findings)
	for _, i := range answer.Images {
		places := i.Mirrors
		if i.Source {
			places = append(places, "its own registry")
		}
		fmt.Fprintf(a.stdout, "%s image %s is pulled by %s from %s\n", i.Purpose, i.Image, i.By, firstNonEmpty(strings.Join(places, ", "), "nowhere"))
	}
	_, err := fmt.Fprintf(a.stdout, "%d Windows machines: %s\n", len(answer.Nodes), count(answer.Findings))
	return err
}
