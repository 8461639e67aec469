package pages

import (
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/render"
)

// nodeLayout is node-layout.md: the catalog.
func nodeLayout() string {
	var out strings.Builder
	out.WriteString(`# What is on a Windows node

Generated from the catalog (` + "`render/catalog.go`, `make generate`" + `). A node has nothing of this project without a row here.

* **Layer**: entries are equal on all nodes of a platform and stage, or ` + "`node`" + `: a node's own.
* **Stage**: entries are installed at first contact, or ` + "`joined`" + `: when the Node exists. cni.conf and kube-proxy also wait for the facts of the host.
* **Impact**: the cost of a change: none, or ` + "`restart` (of the services that read it) < `drain` < `reboot`" + `.
* **From**: the input objects.
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
	out.WriteString("| name | what | layer, stage | impact | from |\n|---|---|---|---|---|\n")
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
	var special []string // what differs from most entries
	if r.Layer != bundle.LayerCluster {
		special = append(special, string(r.Layer))
	}
	if r.JoinedOnly {
		special = append(special, string(bundle.StageJoined))
	}
	impact := r.Impact
	if impact == bundle.ImpactNone {
		impact = ""
	}
	what := r.Doc
	if r.Secret {
		what += " (secret)"
	}
	if len(r.Platforms) > 0 {
		what += " (" + join(r.Platforms) + ")"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", strings.ReplaceAll(r.Name, "|", `\|`), what, strings.Join(special, ", "), impact, join(r.Causes))
}

// join lists names.
func join[S ~string](names []S) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, ", ")
}
