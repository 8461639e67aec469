package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render"
)

// validateJSON is the answer of `wmco validate -o json`.
type validateJSON struct {
	Nodes    []string        `json:"nodes"`
	Findings bundle.Findings `json:"findings"`
	// Images are those that a node itself needs, and where it pulls them from.
	Images []render.NodeImage `json:"images"`
	// Pulls are those of --image.
	Pulls []render.ImagePull `json:"pulls,omitempty"`
}

func validateCommand(a app) *cobra.Command {
	var inputs inputFlags
	var f cli.Format
	var limit failOn
	var folder string
	var images []string
	cmd := &cobra.Command{
		Use:   "validate (--from PATH|-|cluster[:CONTEXT] | --golden DIR) [--node NAME | --instance ADDRESS]",
		Short: "Check the inputs and list all findings",
		Long: `Check the objects of a cluster and everything that is rendered from them, for all Windows hosts unless one is chosen. Nothing is
written. --golden reads the sources of a golden folder. Unlike render, validate also finds certificates that have expired or expire
within 30 days. --image shows for an image where Windows nodes pull it for a Pod without an imagePullSecret, and whose credentials
are sent there.` +
			cli.ExitHelp(
				"0  no findings at or above --fail-on (default: error)", "2  invalid usage, or findings at or above --fail-on",
				"3  the cluster or the registry of --payload cannot be reached", "130  interrupted",
			),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return validate(cmd.Context(), a, validation{inputs, folder, images, f, limit})
		},
	}
	inputs.addFlags(cmd)
	cmd.Flags().StringVar(&folder, "golden", "", "the inputs of a golden folder")
	cmd.Flags().StringArrayVar(&images, "image", nil, "also print where Windows nodes pull this image (REGISTRY/NAME:TAG or @DIGEST), and with which credentials; repeatable")
	limit.addFlag(cmd, bundle.SeverityError)
	cli.AddFormat(cmd, &f, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{
		Needs: []cli.Need{{Flags: []string{"from", "golden"}, Text: needsObjects().Text + ", or --golden DIR"}},
		Alone: [][]string{oneChoice(), {"from", "golden"}, {"facts", "golden"}, {"payload", "golden"}},
	})
	return cmd
}

// validation has the inputs to validate, and the options.
type validation struct {
	inputFlags
	golden string
	images []string
	format cli.Format
	limit  failOn
}

// readInputs reads the inputs that the flags name, or those of the golden folder.
func (v *validation) readInputs(ctx context.Context, a app) (*desired.Hosts, error) {
	if v.golden == "" {
		v.refuseStops = true
		return v.readHosts(ctx, a, nil)
	}
	c, err := golden.Load(v.golden)
	if err != nil {
		return nil, err
	}
	c.Strict = v.strict
	return c.Read(ctx, v.golden, nil)
}

func validate(ctx context.Context, a app, v validation) error {
	for _, image := range v.images {
		if err := render.CheckImage(image); err != nil {
			return cli.UsageError("--image: %v", err)
		}
	}
	hosts, err := v.readInputs(ctx, a)
	if err != nil {
		return err
	}
	nodes := hosts.All
	if v.hostChosen() {
		if nodes, err = v.chooseHosts(hosts); err != nil {
			return err
		}
	}
	_, findings, err := hosts.RenderBundles(nodes)
	if err != nil {
		return err
	}
	findings = hosts.MarkAccepted(append(findings, hosts.Cluster.Expiring(a.now())...)).Sorted()
	answer := validateJSON{Nodes: []string{}, Findings: findingsAnswer(findings), Images: hosts.Cluster.NodeImages()}
	if !findings.Refused() {
		answer.Pulls = hosts.Cluster.ImagePulls(v.images)
	}
	for _, n := range nodes {
		answer.Nodes = append(answer.Nodes, n.ID())
	}
	if err := printValidation(a, v.format, answer, findings); err != nil {
		return err
	}
	if findings.Refused() {
		return cli.Exit(cli.ExitUsage)
	}
	return v.limit.checkFindings(findings)
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
		text := fmt.Sprintf(
			"%s image %s is pulled by %s from %s", i.Purpose, i.Image, i.By,
			cmp.Or(strings.Join(places, ", "), "nowhere"),
		)
		cli.Printf(a.stdout, "%s\n", wrapBehind("", text, terminalColumns(a.stdout)))
	}
	for _, p := range answer.Pulls {
		printPull(a, p)
	}
	return cli.PrintText(a.stdout, fmt.Sprintf("%s: %s\n", bundle.Count(len(answer.Nodes), "Windows host"), countText(findings)))
}

// printPull lists the places of an image, one a line.
func printPull(a app, p render.ImagePull) {
	if len(p.Places) == 0 {
		cli.Printf(a.stdout, "image %s is pulled from nowhere\n", p.Image)
		return
	}
	cli.Printf(a.stdout, "image %s is pulled from\n", p.Image)
	for _, place := range p.Places {
		when := ""
		if place.ContentsOnly {
			when = ", once another place has given the digest of the tag"
		}
		cli.Printf(a.stdout, "  %s with %s%s\n", place.URL, cmp.Or(strings.Join(place.Credentials, ", "), "no credentials"), when)
	}
}
