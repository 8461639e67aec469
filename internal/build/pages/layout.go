package pages

import (
	"cmp"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/render"
)

// nodeLayout is node-layout.md: the catalog.
func nodeLayout() string {
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
	platforms := join(r.Platforms)
	from := join(r.Causes)
	return fmt.Sprintf(
		"| `%s` | %s | %s | %s | %s | %s | %s |\n", strings.ReplaceAll(r.Name, "|", `\|`), what, r.Layer, stage,
		r.Impact, cmp.Or(platforms, "all"), from,
	)
}

// join lists names.
func join[S ~string](names []S) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, ", ")
}
