package pages

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render"
)

// nodeLayout is node-layout.md: the catalog.
func nodeLayout() string {
	var out strings.Builder
	out.WriteString(`# What is on a Windows node

Generated from the catalog (` + "`render/catalog.go`, `make generate`" + `). A node has nothing of this project without a row here.

* ` + "`node`" + `: a node's own; other entries are equal on all nodes of a platform and stage.
* ` + "`joined`" + `: installed when the Node exists; other entries at first contact. cni.conf and kube-proxy also wait for the facts of the host.
* ` + "`restart` (of the services that read it) < `drain` < `reboot`" + `: the cost of a change.
* from: the input objects.
* cleared: state of another cluster is removed.
* only with ` + "`mirrors.mode: Exact`" + `: where a registry needs it.
`)
	for _, section := range []bundle.Section{
		bundle.SectionFiles, bundle.SectionServices, bundle.SectionPayload, bundle.SectionFolders, bundle.SectionState, bundle.SectionHost,
	} {
		fmt.Fprintf(&out, "\n## %s\n\n%s", section, layoutTable(section))
	}
	return out.String()
}

// layoutTable lists the rows of a section, kind by kind, without empty columns at the end.
func layoutTable(section bundle.Section) string {
	rows := [][]string{{"name", "what", "special", "from"}}
	for _, kind := range bundle.Kinds() {
		for _, r := range render.Catalog() {
			if kind.Section == section && r.Kind == kind.Kind {
				rows = append(rows, layoutRow(r))
			}
		}
	}
	columns := len(rows[0])
	for columns > 0 && !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[columns-1] != "" }) {
		columns--
	}
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row[:columns], " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat("---|", columns))
		}
	}
	return out.String()
}

func layoutRow(r render.Row) []string {
	var special []string // what differs from most entries
	if r.Layer != bundle.LayerCluster {
		special = append(special, string(r.Layer))
	}
	if r.JoinedOnly {
		special = append(special, string(bundle.StageJoined))
	}
	if r.Impact != bundle.ImpactNone {
		special = append(special, string(r.Impact))
	}
	what := r.Doc
	if r.Secret {
		what += " (secret)"
	}
	if len(r.Platforms) > 0 {
		what += " (" + join(r.Platforms) + ")"
	}
	return []string{"`" + strings.ReplaceAll(r.Name, "|", `\|`) + "`", what, strings.Join(special, ", "), join(r.Causes)}
}

// join lists names.
func join[S ~string](names []S) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, ", ")
}
