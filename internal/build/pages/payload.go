package pages

import (
	"cmp"
	"fmt"
	"strings"

	"wmco/payload"
	"wmco/payload/store"
)

// payloadPage is payload.md: the table of the Windows executables.
func payloadPage() string {
	var out strings.Builder
	out.WriteString(`# The Windows executables

Generated from ` + "`payload/` (`make generate`)" + `. All executables are built from source, for windows/amd64 and without cgo, from modules that ` + "`payload/<component>/go.sum`" + ` pins. The same modules and
release of Go give the same bytes.

    make payload                                # bin/payload, bin/sbom; builds missing ones
    make payload PAYLOAD=kube-log-runner,cni    # a part, by names of executables or components
    make payload-check                          # builds again from empty caches and compares; lists newer versions
    wmco render --from cluster --all --payload bin/payload    # adds digests and sizes; so do validate and diff

A component that cannot be built does not stop the others. A table at the end names it and the module version that could
not be downloaded; make fails.

## Executables

[node-layout.md](node-layout.md#executables) has their paths on the node.

`)
	out.WriteString(executableTable())
	out.WriteString("\n## Known defects\n\nOf the pinned versions, by upstream's reports. Patches are in `payload/defect.go`; bills of materials name them.\n\n")
	out.WriteString(defectTable())
	fmt.Fprintf(&out, `
## bin/payload

%s lists every executable: path on the node, module, version, release of Go, and digest and size, raw and stored. The files are %s, compressed with zstd. Every byte is checked when the folder is read;
a missing, changed or unlisted file, and a list of another wmco version, are refused.

bin/sbom holds bills of materials (CycloneDX %s, JSON), one for each executable and %s for all.

## Versions of clusters

A node gets the kubelet and kube-proxy of its cluster's minor version (`+"[upgrades.md](upgrades.md#kubernetes-versions)"+`). wmco validate warns about a cluster that is not in this table.

| cluster | its Kubernetes | kubelet and kube-proxy |
|---|---|---|
`, "`"+store.ListFile+"`", "`"+store.FileOf("<name>")+"`", "1.6", "`payload.cdx.json`")
	for _, v := range payload.ClusterVersions() {
		r, _ := payload.ReleaseOf(v.Kubernetes)
		fmt.Fprintf(&out, "| %s | %s | %s |\n", v.Cluster, v.Kubernetes, r.Version)
	}
	return out.String()
}

func executableTable() string {
	var out strings.Builder
	out.WriteString("| executable | component | module | version | platforms |\n|---|---|---|---|---|\n")
	minors := map[string]bool{}
	for _, e := range payload.Table() {
		name, version, component := e.Name, e.Version, e.Component
		switch {
		case name == payload.Agent:
			version = "that of wmco"
		case strings.HasPrefix(component, "kubernetes-"):
			// The last table has the versions.
			name, _, _ = strings.Cut(name, "-1.")
			name, component, version = "`"+name+"-<minor>`", "`kubernetes-<minor>`", "see below"
		}
		if minors[name] {
			continue
		}
		minors[name] = true
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", name, component, e.Module, version, cmp.Or(join(e.Platforms), "all"))
	}
	return out.String()
}

// versionsOf names the executables of a defect. Several are one program for consecutive minor versions.
func versionsOf(executables []string) string {
	if len(executables) == 1 {
		return executables[0]
	}
	_, last, _ := strings.Cut(executables[len(executables)-1], "-1.")
	return executables[0] + " to 1." + last
}

func defectTable() string {
	var out strings.Builder
	out.WriteString("| executables | defect | report | fixed in | here |\n|---|---|---|---|---|\n")
	for _, d := range payload.Defects() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", versionsOf(d.Executables), d.Effect, d.Report, cmp.Or(d.Fixed, "-"), d.Here)
	}
	return out.String()
}
