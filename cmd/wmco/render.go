package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/reason"
	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render/preview"
)

// renderFlags are those of `wmco render`.
type renderFlags struct {
	inputFlags
	out         string
	archive     string
	showSecrets bool
	format      cli.Format
}

func renderCommand(a app) *cobra.Command {
	var f renderFlags
	cmd := &cobra.Command{
		Use:   "render --from PATH|-|cluster[:CONTEXT] [--node NAME | --instance ADDRESS | --all] [--out DIR|FILE.tar|FILE.tar.gz]",
		Short: "Render the desired state of Windows nodes",
		Long: `Render the complete desired state of Windows nodes from the objects of their cluster. Nothing is changed.

Without --out, a summary is printed. With --out, every file is written under its Windows path (C:\k\x as C/k/x), beside
MANIFEST.json, services.yaml, environment.yaml, host.yaml, payload.yaml, findings.json and provenance.json; with --all, in one folder
per node or address. Secrets are masked.` +
			cli.ExitHelp(
				"0  done", "2  invalid usage, or inputs with errors; nothing was written",
				"3  the cluster or the registry of --payload cannot be reached", "130  interrupted",
			),
		Example: `  wmco render --from must-gather.local.123 --all --out nodes
  wmco render --from cluster --node winworker-x7k2p
  wmco render --from cluster --from changed-idms.yaml --all -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), a) },
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "folder, or file ending in .tar or .tar.gz, to write the bundles to")
	cmd.Flags().StringVar(
		&f.archive, "archive", "",
		"file (- for stdout) to write the input of 'wmco-node apply' to: one bundle with all contents, secrets in clear",
	)
	cmd.Flags().BoolVar(&f.showSecrets, "show-secrets", false, "write secrets in clear")
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{needsObjects()}, Alone: [][]string{oneChoice(), {"archive", "all"}}})
	return cmd
}

func (f *renderFlags) run(ctx context.Context, a app) error {
	if ext := filepath.Ext(f.out); slices.Contains(
		[]string{".zip", ".7z", ".xz", ".bz2", ".zst", ".htm", ".html"}, strings.ToLower(ext),
	) {
		return cli.UsageError("--out %s: a file ends in .tar, .tar.gz or .tgz, a folder not in %s", f.out, ext)
	}
	var key bundle.Key
	if f.archive != "" {
		key = desired.UserKey()
	}
	bundles, findings, err := f.renderChosen(ctx, a, key)
	if err != nil {
		return err
	}
	if findings.Refused() {
		return f.refuse(a, findings)
	}
	// An unsupported version is a warning here: whoever applies the archive by hand has seen it.
	if only := desired.PreviewOnly(findings, reason.ClusterVersionUnsupported); f.archive != "" && len(only) > 0 {
		printFindings(a.stderr, palette{}, only)
		return cli.UsageError("no archive is written: stand-ins would replace secrets; without --archive these inputs can be shown")
	}
	if err := f.write(ctx, a, bundles); err != nil {
		return err
	}
	if f.archive != "" {
		if err := f.writeArchive(ctx, a, bundles[0]); err != nil || f.archive == "-" {
			return err
		}
	}
	if f.format == cli.JSON {
		return cli.WriteJSON(a.stdout, renderAnswer(bundles, findings))
	}
	return printBundles(a, bundles, findings)
}

// refuse prints every error; with -o json they are in the answer.
func (f *renderFlags) refuse(a app, findings bundle.Findings) error {
	if f.format != cli.JSON {
		return refusedInputs(a, ", nothing is written", findings)
	}
	if err := cli.WriteJSON(a.stdout, renderAnswer(nil, findings)); err != nil {
		return err
	}
	return cli.UsageError("the inputs are refused, nothing is written: %s", countText(findings))
}

// write writes the preview of every bundle to --out, in a folder of its own with --all.
func (f *renderFlags) write(ctx context.Context, a app, bundles []desired.Rendered) error {
	if f.out == "" {
		return nil
	}
	options := preview.Options{ShowSecrets: f.showSecrets}
	var files []preview.File
	var err error
	if f.all {
		files, err = golden.Files(bundles, options)
	} else {
		files, err = preview.Tree(bundles[0].Bundle, bundles[0].Findings, options)
	}
	if err != nil {
		return err
	}
	defer cli.Orderly(ctx)()
	if err := golden.WriteOut(ctx, f.out, files); err != nil {
		return err
	}
	wrote(a, len(bundles), f.out)
	return nil
}

// wrote reports where bundles were written to.
func wrote(a app, bundles int, where string) {
	cli.Printf(a.stderr, "wrote %s to %s\n", bundle.Count(bundles, "bundle"), where)
}

// writeArchive writes what `wmco-node apply` reads: the manifest and every content. Secrets are in clear.
func (f *renderFlags) writeArchive(ctx context.Context, a app, r desired.Rendered) error {
	contents, err := desired.PayloadContents(f.payload)
	if err != nil {
		return err
	}
	request, err := r.ArchiveRequest(contents)
	if err != nil {
		return err
	}
	if f.archive == "-" {
		return archive.Send(ctx, a.stdout, request)
	}
	out, err := openSecret(f.archive)
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	if err := archive.Send(ctx, out, request); err != nil {
		_ = out.Close()
		return fmt.Errorf("writing the archive: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	cli.Printf(a.stderr, "wrote the archive of %s to %s\n", r.Node.ID(), f.archive)
	return nil
}

// openSecret opens a file for its owner alone, also one that others may read until now. A pipe stays as it is.
func openSecret(name string) (*os.File, error) {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = out.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
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

func renderAnswer(bundles []desired.Rendered, findings bundle.Findings) renderJSON {
	answer := renderJSON{Bundles: []bundleJSON{}, Findings: findingsAnswer(findings)}
	for _, r := range bundles {
		b := r.Bundle
		answer.Bundles = append(answer.Bundles, bundleJSON{
			Name: r.Node.ID(), Address: r.Node.Address, Stage: b.Node.Stage, Digest: b.Digest,
			Manifest: bundle.Manifest{Schema: bundle.Schema, Digest: b.Digest, Layers: []bundle.Index{
				{Digest: b.ClusterDigest, Layer: b.Cluster}, {Digest: b.NodeDigest, Layer: b.Node},
			}},
		})
	}
	return answer
}
