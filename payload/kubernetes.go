package payload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Release is a release of Kubernetes whose kubelet and kube-proxy are shipped: the newest one of its minor version that
// the module proxy serves.
type Release struct {
	// Minor is such as "1.36", Version such as "v1.36.3".
	Minor, Version string
	// debug are the GODEBUG settings that upstream's go.mod has.
	debug []string
}

// Releases returns all releases, the oldest first.
func Releases() []Release {
	return []Release{
		{"1.31", "v1.31.14", []string{"default=go1.22"}},
		{"1.32", "v1.32.13", []string{"default=go1.23", "winsymlink=0"}},
		{"1.33", "v1.33.13", []string{"default=go1.24"}},
		{"1.34", "v1.34.12", []string{"default=go1.24"}},
		{"1.35", "v1.35.8", []string{"default=go1.25"}},
		{"1.36", "v1.36.5", nil},
		{"1.37", "v1.37.2", nil},
	}
}

// ReleaseOf returns the release of a minor version such as "1.36", and whether it is shipped.
func ReleaseOf(minor string) (Release, bool) {
	i := slices.IndexFunc(Releases(), func(r Release) bool { return r.Minor == minor })
	if i < 0 {
		return Release{}, false
	}
	return Releases()[i], true
}

// ClusterVersion is a minor version of OpenShift or OKD that this payload supports.
type ClusterVersion struct {
	// Cluster is such as "5.0". Kubernetes is the minor version of its API server.
	Cluster    string
	Kubernetes string
}

// Clusters returns the minor versions of OpenShift and OKD whose API servers are of this minor version. Since 1.36
// there are two: clusters 4.23 are released beside 5.0.
func (r Release) Clusters() []string {
	n, _ := MinorNumber(r.Minor)
	clusters := []string{fmt.Sprintf("4.%d", n-kubernetesOf4)}
	if n >= kubernetesOf5 {
		clusters = append(clusters, fmt.Sprintf("5.%d", n-kubernetesOf5))
	}
	return clusters
}

// ClusterVersions returns all supported versions, the oldest first.
func ClusterVersions() []ClusterVersion {
	var all []ClusterVersion
	for _, r := range Releases() {
		for _, c := range r.Clusters() {
			all = append(all, ClusterVersion{c, r.Minor})
		}
	}
	return all
}

// The minor versions of Kubernetes in clusters 4.0 and 5.0. Each minor version of a cluster has the next one.
const (
	kubernetesOf4 = 13
	kubernetesOf5 = 36
)

// KubernetesOf returns the minor version of the API server of a cluster, such as 36 for "5.0.3" and "4.23.0", also of
// one that is not supported. It reports whether that is known.
func KubernetesOf(cluster string) (int, bool) {
	switch major, minor, ok := majorMinor(cluster); {
	case ok && major == 4: //nolint:mnd // OpenShift 4
		return minor + kubernetesOf4, true
	case ok && major == 5: //nolint:mnd // OpenShift 5
		return minor + kubernetesOf5, true
	}
	return 0, false
}

// MinorNumber returns 36 for "1.36", and whether the text is a minor version of Kubernetes 1.
func MinorNumber(minor string) (int, bool) {
	number, ok := strings.CutPrefix(minor, "1.")
	n, err := strconv.Atoi(number)
	return n, ok && err == nil && n >= 0
}

// kubernetes is the component of one release: the folder payload/kubernetes-<minor>.
func kubernetes(r Release) Component {
	const version = "k8s.io/component-base/version."
	numbers := strings.Split(strings.TrimPrefix(r.Version, "v"), ".")
	program := func(name string) Executable {
		return Executable{
			Name: name + "-" + r.Minor, Program: name, Kubernetes: r.Minor, Path: `C:\k\` + name + ".exe", Package: "k8s.io/kubernetes/cmd/" + name,
			VersionCommand: VersionCommand{Args: []string{"--version"}, Prints: "Kubernetes " + r.Version},
		}
	}
	programs := []Executable{program(Kubelet), program(KubeProxy)}
	return Component{
		Name: "kubernetes-" + r.Minor, Module: "k8s.io/kubernetes", Version: r.Version, Debug: r.debug,
		Variables:   []string{version + "gitVersion=" + r.Version, version + "gitMajor=" + numbers[0], version + "gitMinor=" + numbers[1]},
		Executables: programs, Patches: patchesOf(programs),
	}
}

// kubeLogRunner is of the newest release for all nodes: before 1.34 it has no -log-file-size, -log-file-age and
// -flush-interval, and it depends on no API.
func kubeLogRunner() Component {
	return Component{
		Name: KubeLogRunner, Module: "k8s.io/component-base", Version: KubeLogRunnerVersion,
		// It reports no version; its flags are those of its release.
		Executables: []Executable{{
			Name: KubeLogRunner, Path: `C:\k\kube-log-runner.exe`,
			Package:        "k8s.io/component-base/logs/kube-log-runner",
			VersionCommand: VersionCommand{Args: []string{"-help"}, Prints: "-log-file-age"},
		}},
	}
}
