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

Generated from the table (` + "`payload/`, `make generate`" + `). All are built from source, for windows/amd64 and without cgo, from
modules that the Go module proxy serves and that ` + "`payload/<component>/go.sum`" + ` pins. The same modules and the same release of
Go give the same bytes on any machine.

    make payload                                # bin/payload, bin/sbom; builds what is not there yet
    make payload PAYLOAD=kube-log-runner,cni    # a part, by names of executables or components
    make payload-check                          # once more, from empty caches: the same bytes? what is newer?
    wmco render --from cluster --all --payload bin/payload    # digests and sizes in what is rendered; validate and diff take it too

A component that cannot be built does not stop the others: a table at the end names each one, its version and the module
version that could not be downloaded, and make fails.

## Executables

`)
	out.WriteString(executableTable())
	out.WriteString("\n## Components\n\nThe linker sets the variables, so each program can print its version. Go takes GODEBUG from the main module\nonly, so each go.mod repeats what upstream's go.mod declares or its go line implies; `-` is the default of the Go release used.\n\n")
	out.WriteString(componentTable())
	out.WriteString("\n## Known defects\n\nOf the pinned versions, by upstream's reports. A defect leaves the table with the version that does not have it any more. Patches are in `payload/defect.go`;\nthe bills of materials name them.\n\n")
	out.WriteString(defectTable())
	fmt.Fprintf(&out, `
## bin/payload

%s lists every executable by name: its path on the node, the module, version and release of Go that it was built
from, and sha256 digest and size in bytes of the executable (raw) and of the file that holds it (stored). The files are
%s, compressed with zstd, and the folder has no other files. Its reader (payload/store) decodes the list
strictly and checks every byte. A missing, changed or unlisted file, or a list of another wmco version, is refused.

bin/sbom holds bills of materials (CycloneDX %s, JSON), one for each executable and %s for all, made from
the build information inside the executables.

## Versions of clusters

OpenShift and OKD. A node gets the kubelet and kube-proxy of its cluster's minor version: of the newest update that the cluster has
completed. The kubelet must not be newer than an API server, and at most three minor versions older. While the MachineConfigPool `+"`worker`"+` is
paused, Windows nodes keep the version of the pool (`+"[operations.md](operations.md#versions-of-kubernetes)"+`). wmco validate warns about a cluster that is not
in this table.

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
	out.WriteString("| executable | component | module | version | on the node | platforms |\n|---|---|---|---|---|---|\n")
	for _, e := range payload.Table() {
		path, version := e.Path, e.Version
		if e.Name == payload.Agent {
			path, version = payload.AgentPattern(), "that of wmco"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | `%s` | %s |\n", e.Name, e.Component, e.Module, version, path, cmp.Or(join(e.Platforms), "all"))
	}
	return out.String()
}

func defectTable() string {
	var out strings.Builder
	out.WriteString("| executables | defect | report | first right version | here |\n|---|---|---|---|---|\n")
	for _, d := range payload.Defects() {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", strings.Join(d.Executables, ", "), d.Effect, d.Report, cmp.Or(d.Fixed, "-"), d.Here)
	}
	return out.String()
}

func componentTable() string {
	var out strings.Builder
	out.WriteString("| component | variables | GODEBUG |\n|---|---|---|\n")
	for _, c := range payload.Components() {
		variables := c.Variables
		if c.Name == payload.Ours {
			variables = []string{payload.OurVersion + "=<git describe>", payload.OurSources + "=<SOURCE_TREE>"}
		}
		fmt.Fprintf(&out, "| %s | `%s` | %s |\n", c.Name, strings.Join(variables, "` `"), cmp.Or(strings.Join(c.Debug, " "), "-"))
	}
	return out.String()
}
