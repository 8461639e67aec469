package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/preview"
)

// renderFlags are those of `wmco render`.
type renderFlags struct {
	inputFlags
	out         string
	archive     string
	showSecrets bool
	format      format
}

func renderCommand(a app) *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render --from PATH|-|cluster[:CONTEXT] [--node NAME | --instance ADDRESS | --all] [--out DIR|FILE.tar]",
		Short: "Show everything that a Windows node should hold",
		Long: `Render the complete desired state of Windows nodes from the objects of their cluster. Nothing is touched.

Without --out, a summary is printed. With --out, every file is written under its Windows path (C:\k\x as C/k/x),
beside MANIFEST.json, services.yaml, environment.yaml, host.yaml, payload.yaml, findings.json and provenance.json; with
--all, in one folder per node or address. Secrets are masked.` +
			exitHelp("0  done", "2  usage, or inputs with findings of severity error: nothing is written", "3  the cluster cannot be reached", "130  interrupted"),
		Example: `  wmco render --from must-gather.local.123 --all --out nodes
  wmco render --from cluster --node winworker-x7k2p
  wmco render --from cluster --from changed-idms.yaml --all -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "folder, or file ending in .tar, to write the bundles to")
	cmd.Flags().StringVar(&f.archive, "archive", "", "file (- for stdout) to write what 'wmco-node apply' reads to: one bundle with all contents, secrets in clear")
	cmd.MarkFlagsMutuallyExclusive("archive", "all")
	cmd.Flags().BoolVar(&f.showSecrets, "show-secrets", false, "write secrets in clear")
	addFormat(cmd, &f.format)
	return cmd
}

// rendered is one machine with its bundle.
type rendered struct {
	node     render.Node
	bundle   render.Bundle
	findings bundle.Findings
}

func (f *renderFlags) run(ctx context.Context, a app) error {
	if f.archive != "" {
		f.key = digestKey()
	}
	bundles, findings, err := renderSelected(ctx, a, &f.inputFlags)
	if err != nil {
		return err
	}
	if findings.Refused() {
		return f.refuse(a, findings)
	}
	if f.out != "" {
		if err := f.write(bundles); err != nil {
			return err
		}
	}
	if f.archive != "" {
		if err := f.writeArchive(ctx, a, bundles[0]); err != nil || f.archive == "-" {
			return err
		}
	}
	if f.format == formatJSON {
		return writeJSON(a.stdout, renderAnswer(bundles, findings))
	}
	p := palette{a.color}
	for i, r := range bundles {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := printBundle(a.stdout, p, r); err != nil {
			return err
		}
	}
	printFindingsBlock(a.stdout, p, findings)
	return nil
}

// refuse tells every error at once; with -o json the answer holds them too.
func (f *renderFlags) refuse(a app, findings bundle.Findings) error {
	if f.format == formatJSON {
		if err := writeJSON(a.stdout, renderAnswer(nil, findings)); err != nil {
			return err
		}
	} else {
		printFindings(a.stderr, palette{}, findings)
	}
	return &exitError{exitUsage, fmt.Errorf("the inputs are refused, nothing is written: %s", count(findings))}
}

// renderSelected gathers and renders the machines that the flags choose. The findings are those of the whole run.
func renderSelected(ctx context.Context, a app, f *inputFlags) ([]rendered, bundle.Findings, error) {
	in, err := f.read(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := in.choose(f)
	if err != nil || in.fleet == nil {
		return nil, in.findings.Sorted(), err
	}
	findings := slices.Clone(in.findings)
	var bundles []rendered
	for _, n := range nodes {
		r, own, err := in.render(n)
		if err != nil {
			return nil, nil, err
		}
		findings = append(findings, own...)
		bundles = append(bundles, r)
	}
	return bundles, findings.Sorted(), nil
}

// write lays every bundle out, in a folder of its own if all were asked for.
func (f *renderFlags) write(bundles []rendered) error {
	var files []preview.File
	for _, r := range bundles {
		tree, err := preview.Tree(r.bundle, r.findings, preview.Options{ShowSecrets: f.showSecrets})
		if err != nil {
			return err
		}
		for _, file := range tree {
			if f.all {
				file.Path = r.node.ID() + "/" + file.Path
			}
			files = append(files, file)
		}
	}
	if strings.HasSuffix(f.out, ".tar") {
		return writeTar(f.out, files)
	}
	return writeFolder(f.out, files)
}

// renderJSON is the answer of `wmco render -o json`.
type renderJSON struct {
	Bundles  []bundleJSON    `json:"bundles"`
	Findings bundle.Findings `json:"findings"`
}

type bundleJSON struct {
	Name     string          `json:"name"`
	Address  string          `json:"address,omitempty"`
	Stage    bundle.Stage    `json:"stage"`
	Digest   bundle.Digest   `json:"digest"`
	Manifest bundle.Manifest `json:"manifest"`
}

func renderAnswer(bundles []rendered, findings bundle.Findings) renderJSON {
	answer := renderJSON{Bundles: []bundleJSON{}, Findings: findings}
	if findings == nil {
		answer.Findings = bundle.Findings{}
	}
	for _, r := range bundles {
		answer.Bundles = append(answer.Bundles, bundleJSON{
			Name: r.node.ID(), Address: r.node.Address, Stage: r.bundle.Node.Stage, Digest: r.bundle.Digest,
			Manifest: bundle.Manifest{Schema: bundle.Schema, Digest: r.bundle.Digest, Layers: []bundle.Index{
				{Digest: r.bundle.ClusterDigest, Layer: r.bundle.Cluster}, {Digest: r.bundle.NodeDigest, Layer: r.bundle.Node},
			}},
		})
	}
	return answer
}

func printFindingsBlock(w io.Writer, p palette, findings bundle.Findings) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s  %s\n", p.bold("Findings"), p.dim(count(findings)))
	printFindings(w, p, findings)
}

// printBundle writes one bundle as people read it.
func printBundle(w io.Writer, p palette, r rendered) error {
	b := r.bundle
	fmt.Fprintf(w, "%s  stage %s  %s\n", p.bold(r.node.ID()), b.Node.Stage, p.dim("bundle "+b.Digest.Short()))
	printFiles(w, p, b.Files())
	if err := printServices(w, p, b.Services()); err != nil {
		return err
	}
	printHost(w, p, b)
	return printPayload(w, p, b)
}

// printFiles shows files as a tree: each folder once, its files below it.
func printFiles(w io.Writer, p palette, files []bundle.File) {
	fmt.Fprintf(w, "\n%s\n", p.bold("Files"))
	slices.SortStableFunc(files, func(a, b bundle.File) int {
		return strings.Compare(bundle.FoldPath(bundle.Dir(a.Path)), bundle.FoldPath(bundle.Dir(b.Path)))
	})
	folder := ""
	for _, f := range files {
		if dir := bundle.Dir(f.Path); dir != folder {
			folder = dir
			fmt.Fprintf(w, "  %s\n", dir)
		}
		note := ""
		if f.Secret {
			note = "  secret"
		}
		fmt.Fprintf(w, "    %-36s %9s  %s  %s%s\n", bundle.Base(f.Path), size(int64(len(f.Content.Shown()))), p.dim(fmt.Sprintf("%-12s", f.Digest.Short())), f.Impact, note)
	}
}

func printServices(w io.Writer, p palette, services []bundle.Service) error {
	fmt.Fprintf(w, "\n%s\n", p.bold("Services"))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tAFTER\tHEALTHY WHEN\tLOG\tCOMMAND")
	for _, s := range services {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", s.Name, dash(strings.Join(s.Dependencies, ",")), healthy(s.Probe), logs(s), command(s))
	}
	return table.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func healthy(p bundle.Probe) string {
	if p.Target == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + " " + p.Target
}

func logs(s bundle.Service) string {
	if len(s.Logs) == 0 {
		return "unbounded"
	}
	l := s.Logs[0]
	return fmt.Sprintf("%s x%d by %s", size(l.SizeBytes), l.Files+1, l.Rotation)
}

// command is the program that does the work, without a wrapper around it.
func command(s bundle.Service) string {
	for _, a := range s.Argv[1:] {
		if strings.HasSuffix(a, ".exe") && bundle.CheckPath(a) == nil {
			return a + fmt.Sprintf(" (%d arguments)", len(s.Argv)-1-slices.Index(s.Argv, a))
		}
	}
	return s.Argv[0] + fmt.Sprintf(" (%d arguments)", len(s.Argv)-1)
}

func printHost(w io.Writer, p palette, b render.Bundle) {
	fmt.Fprintf(w, "\n%s\n", p.bold("Machine"))
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "  %-12s %s\n", name, value)
		}
	}
	l := b.Cluster
	line("host name", b.Node.HostName.Name)
	line("features", joinBy(l.Features, func(f bundle.Feature) string { return f.Name }, ", "))
	line("firewall", joinBy(l.Firewall, func(f bundle.FirewallRule) string { return fmt.Sprintf("%d/%s", f.Port, f.Protocol) }, ", "))
	line("routes", joinBy(l.Routes, func(r bundle.Route) string { return r.Destination + " via " + r.Via }, ", "))
	line("trusted CAs", joinBy(l.TrustedCAs, func(c bundle.TrustedCA) string { return c.Subject }, ", "))
	line("variables", joinBy(l.Variables, func(v bundle.Variable) string { return v.Name }, ", "))
	line("endpoints", joinBy(l.Endpoints, func(e bundle.Endpoint) string { return e.Name }, ", "))
}

func joinBy[E any](list []E, text func(E) string, separator string) string {
	var parts []string
	for _, e := range list {
		parts = append(parts, text(e))
	}
	return strings.Join(parts, separator)
}

func printPayload(w io.Writer, p palette, b render.Bundle) error {
	fmt.Fprintf(w, "\n%s\n", p.bold("Executables"))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, x := range b.Bundle.Payload() {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", x.Path, x.Version, dash(x.Digest.Short()))
	}
	return table.Flush()
}
