package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/internal/cli"
	"wmco/render"
)

// generateDocsCommand writes the generated part of docs/; the Makefile calls it.
func generateDocsCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "generate-docs DIR",
		Short:  "Write the generated documentation",
		Hidden: true,
		Args:   cli.Usage{Args: []string{"DIR"}}.Check,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(filepath.Join(args[0], "schemas"), 0o755); err != nil {
				return fmt.Errorf("writing documentation: %w", err)
			}
			files := map[string]string{"cli.md": commandDocs(root), "node-layout.md": layoutDocs(), "payload.md": payloadDocs(), "findings.md": reason.Markdown(), "reasons.md": reasonDocs()}
			schemas, err := schemaFiles()
			if err != nil {
				return err
			}
			for name, text := range schemas {
				files[filepath.Join("schemas", name)] = text
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
					return fmt.Errorf("writing documentation: %w", err)
				}
			}
			return nil
		},
	}
}

// commandDocs is the help of every command, one after another.
func commandDocs(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString("# Commands\n\nGenerated from the commands' own help (`make generate`).\n\n")
	fmt.Fprintf(&out, "%s\n", root.Long)
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
			c.InitDefaultHelpFlag()
			fmt.Fprintf(&out, "\n## %s\n\n```\n%s\n\n%s```\n", c.CommandPath(), cmp.Or(c.Long, c.Short), c.UsageString())
		}
	}
	return out.String()
}

// layoutDocs is the catalog, for reference.
func layoutDocs() string {
	var out strings.Builder
	out.WriteString(`# What is on a Windows node

Generated from the catalog (` + "`render/catalog.go`, `make generate`" + `). Nothing is installed on a node that has no row here.

* **Layer**: ` + "`cluster`" + ` entries are the same for every node of a platform and stage, ` + "`node`" + ` entries are a node's own.
* **Stage**: ` + "`join`" + ` entries are installed at first contact, ` + "`joined`" + ` entries when the node exists; cni.conf and kube-proxy also wait for the facts of its host.
* **Impact**: the cost of a change of the entry: ` + "`none` < `restart` (of the services that read it) < `drain` < `reboot`" + `.
* **From**: the input objects that cause it.
`)
	for _, section := range []bundle.Section{
		bundle.SectionFiles, bundle.SectionServices, bundle.SectionPayload, bundle.SectionFolders, bundle.SectionState, bundle.SectionHost,
	} {
		fmt.Fprintf(&out, "\n## %s\n\n%s", section, layoutTable(section))
	}
	return out.String()
}

// layoutTable lists the rows of a section, kind by kind.
func layoutTable(section bundle.Section) string {
	var out strings.Builder
	out.WriteString("| name | what | layer | stage | impact | platforms | from |\n|---|---|---|---|---|---|---|\n")
	for _, kind := range bundle.Kinds() {
		for _, r := range render.Catalog() {
			if kind.Section == section && r.Kind == kind.Kind {
				out.WriteString(layoutRow(r))
			}
		}
	}
	return out.String()
}

func layoutRow(r render.Row) string {
	stage := bundle.StageJoin
	if r.JoinedOnly {
		stage = bundle.StageJoined
	}
	what := r.Doc
	if r.Secret {
		what += " (secret)"
	}
	platforms := joinBy(r.Platforms, func(p bundle.Platform) string { return string(p) }, ", ")
	from := joinBy(r.Causes, func(o render.Origin) string { return string(o) }, ", ")
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s |\n", strings.ReplaceAll(r.Name, "|", `\|`), what, r.Layer, stage, r.Impact, cmp.Or(platforms, "all"), from)
}
