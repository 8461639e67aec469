package payload

import "slices"

// Defect is a known defect of pinned versions that people notice on nodes.
type Defect struct {
	// Executables are the names of those that have it.
	Executables []string
	// Effect is what people see, Report where it was reported.
	Effect, Report string
	// Fixed is the first version known to be right; empty if there is none.
	Fixed string
	// Here is what this project does about it.
	Here string
	// Patches correct it when the executables are built.
	Patches []Patch
}

// Patch replaces one line in the source of a pinned module. The words are ours: upstream has corrected it in newer
// minor versions alone.
type Patch struct {
	// File is the path in the module. Line is a line that it has exactly once, without indentation.
	File, Line string
	// With is written in its place.
	With string
}

// Defects returns the known defects, the most severe first.
func Defects() []Defect {
	const patched, waits = "corrected by a patch when it is built", "none: it needs more than a small patch; a cluster of a newer minor version has the correction"
	return []Defect{
		{
			Executables: []string{"kube-proxy-1.31"},
			Effect:      "kube-proxy forgets which endpoints have ended when several Services change at once. Their remote endpoints stay in HNS, and a new Pod that gets such an address has no network.",
			Report:      "kubernetes/kubernetes#135144", Fixed: "v1.32.13", Here: patched,
			Patches: []Patch{
				{winkernel + "proxier.go", clearTerminated, "// Cleared once for each synchronization instead: see syncProxyRules."},
				{winkernel + "proxier.go", updateServices, clearTerminated + " // all changes of endpoints below add to it\n\t" + updateServices},
			},
		},
		{
			Executables: executablesUntil(KubeProxy, "1.35"),
			Effect:      "kube-proxy panics, again after each start, while HNS has a load balancer without ports. HNS leaves one when it could not make it whole. Services fail on the node.",
			Report:      "kubernetes/kubernetes#141488", Fixed: "v1.36.5", Here: patched,
			Patches: []Patch{{
				winkernel + "hns.go", firstPorts,
				"if len(lb.PortMappings) == 0 {\n\t\t\tcontinue // not of kube-proxy, or never made whole\n\t\t}\n\t\t" + firstPorts,
			}},
		},
		{
			Executables: executablesUntil(KubeProxy, "1.33"),
			Effect:      "A remote endpoint that HNS has kept hides the local Pod that has its address now. Services do not reach that Pod from the node.",
			Report:      "kubernetes/kubernetes#138602", Fixed: "v1.34.9", Here: waits,
		},
		{
			Executables: executablesUntil(Kubelet, "1.33"),
			Effect:      "The kubelet deletes the mount of a CSI volume when the driver refuses to publish it again. Secrets and keys in the Pod stay as they were until the Pod is created again.",
			Report:      "kubernetes/kubernetes#121271", Fixed: "v1.34.9", Here: waits,
		},
		{
			Executables: executablesUntil(KubeProxy, "1.36"),
			Effect:      "kube-proxy takes its load balancers for lost while the Host Network Service starts again, and cannot make them again when Windows has restored them.",
			Report:      "kubernetes/kubernetes#139519", Fixed: "v1.37.2", Here: "the node agent restarts kube-proxy after the Host Network Service ([node-agent.md](node-agent.md#host-network-service))",
		},
		{
			Executables: executablesUntil(KubeProxy, "1.37"),
			Effect:      "Policies in HNS of a Service that has lost its last endpoint can stay. The next load balancer with this address is refused (0x803b0013).",
			Report:      "kubernetes/kubernetes#137530",
			Here:        "none: upstream has no correction; a restart of kube-proxy makes all load balancers again",
		},
		{
			Executables: []string{Shim},
			Effect:      "None known. containerd v2.4.2 is tested by its authors with v0.15.0-rc.4 of the shim.",
			Report:      "containerd script/setup/runhcs-version", Fixed: "v0.15.0", Here: "v0.15.0 cannot be built: the module proxy does not serve github.com/Microsoft/cosesign1go v1.7.0, which it needs",
		},
	}
}

// What the patches look for.
const (
	winkernel       = "pkg/proxy/winkernel/"
	clearTerminated = "clear(proxier.terminatedEndpoints)"
	updateServices  = "serviceUpdateResult := proxier.svcPortMap.Update(proxier.serviceChanges)"
	firstPorts      = "portMap := lb.PortMappings[0]"
)

// executablesUntil returns the names of a program up to a minor version of Kubernetes.
func executablesUntil(program, last string) []string {
	var names []string
	for _, r := range Releases() {
		if !isOlder(last, r.Minor) {
			names = append(names, program+"-"+r.Minor)
		}
	}
	return names
}

// patchesOf returns the patches of the executables of one component.
func patchesOf(executables []Executable) []Patch {
	var all []Patch
	for _, d := range Defects() {
		if slices.ContainsFunc(executables, func(e Executable) bool { return slices.Contains(d.Executables, e.Name) }) {
			all = append(all, d.Patches...)
		}
	}
	return all
}
