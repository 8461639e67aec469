package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"wmco/bundle"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/render"
)

// printBundles writes bundles as people read them, and then the findings.
func printBundles(a app, bundles []desired.Rendered, findings bundle.Findings) error {
	p := palette{a.color}
	for i, r := range bundles {
		if i > 0 {
			cli.Printf(a.stdout, "\n")
		}
		if err := printBundle(a.stdout, p, r); err != nil {
			return err
		}
	}
	if len(findings) > 0 {
		cli.Printf(a.stdout, "\n%s  %s\n", p.bold("Findings"), p.dim(countText(findings)))
		printFindings(a.stdout, p, findings)
	}
	return nil
}

func printBundle(w io.Writer, p palette, r desired.Rendered) error {
	b := r.Bundle
	cli.Printf(w, "%s  stage %s  %s\n", p.bold(r.Node.ID()), b.Node.Stage, p.dim("bundle "+b.Digest.Short()))
	printFiles(w, p, b.Files())
	if err := printServices(w, p, b.Services()); err != nil {
		return err
	}
	printHost(w, p, b)
	return printPayload(w, p, b)
}

// printFiles shows files as a tree: each folder once, its files below it.
func printFiles(w io.Writer, p palette, files []bundle.File) {
	cli.Printf(w, "\n%s\n", p.bold("Files"))
	slices.SortStableFunc(files, func(a, b bundle.File) int {
		return strings.Compare(bundle.FoldPath(bundle.Dir(a.Path)), bundle.FoldPath(bundle.Dir(b.Path)))
	})
	cli.Printf(w, "    %-36s %9s  %-12s  %s\n", "NAME", "SIZE", "DIGEST", "IMPACT")
	folder := ""
	for _, f := range files {
		if dir := bundle.Dir(f.Path); dir != folder {
			folder = dir
			cli.Printf(w, "  %s\n", dir)
		}
		note := ""
		if f.Secret {
			note = "  secret"
		}
		cli.Printf(
			w, "    %-36s %9s  %s  %s%s\n", bundle.Base(f.Path), byteSize(int64(len(f.Content.Shown()))),
			p.dim(fmt.Sprintf("%-12s", f.Digest.Short())), f.Impact, note,
		)
	}
}

func printServices(w io.Writer, p palette, services []bundle.Service) error {
	cli.Printf(w, "\n%s\n", p.bold("Services"))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	cli.Printf(table, "  NAME\tAFTER\tHEALTHY WHEN\tLOG\tCOMMAND\n")
	for _, s := range services {
		cli.Printf(
			table, "  %s\t%s\t%s\t%s\t%s\n", s.Name, cmp.Or(strings.Join(s.Dependencies, ","), "-"),
			healthy(s.Probe), logs(s), command(s),
		)
	}
	return table.Flush()
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
	return fmt.Sprintf("%s x%d by %s", byteSize(l.SizeBytes), l.Files+1, l.Rotation)
}

// command returns the program that does the work, without a wrapper around it.
func command(s bundle.Service) string {
	program := 0
	for i, a := range s.Argv {
		if i > 0 && strings.HasSuffix(a, ".exe") && bundle.CheckPath(a) == nil {
			program = i
			break
		}
	}
	return fmt.Sprintf("%s (%s)", s.Argv[program], bundle.Count(len(s.Argv)-1-program, "argument"))
}

func printHost(w io.Writer, p palette, b render.Bundle) {
	cli.Printf(w, "\n%s\n", p.bold("Host"))
	for _, kind := range bundle.Kinds() {
		if texts := b.Texts(kind.Kind); len(texts) > 0 {
			cli.Printf(w, "  %-12s %s\n", kind.Plural, strings.Join(texts, ", "))
		}
	}
}

func printPayload(w io.Writer, p palette, b render.Bundle) error {
	cli.Printf(w, "\n%s\n", p.bold("Executables"))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	cli.Printf(table, "  PATH\tVERSION\tDIGEST\n")
	for _, x := range b.Bundle.Payload() {
		cli.Printf(table, "  %s\t%s\t%s\n", x.Path, x.Version, cmp.Or(x.Digest.Short(), "-"))
	}
	return table.Flush()
}
