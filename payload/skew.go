package payload

import (
	"strconv"
	"strings"
)

// kubeletsBehind is by how many minor versions OpenShift lets a kubelet be older than the API server of a cluster: two
// on even minor versions of the cluster, one on odd ones; 5.0 is even
// (github.com/openshift/cluster-kube-apiserver-operator, pkg/operator/kubeletversionskewcontroller).
func kubeletsBehind(clusterMinor int) int {
	if clusterMinor%2 == 0 {
		return 2
	}
	return 1
}

// RefusesUpdate reports whether OpenShift refuses the next minor update of a cluster because of one kubelet: it is too
// old now, or would be after the update (KubeletMinorVersionUpgradeable, which counts Windows nodes). The next minor
// version is taken for the number after this one, as OpenShift does. Versions are such as "4.20.4" and "v1.31.14"; of
// unknown ones none is refused.
func RefusesUpdate(cluster, kubelet string) bool {
	_, minor, ok := majorMinor(cluster)
	server, supported := KubernetesOf(cluster)
	one, own, known := majorMinor(strings.TrimPrefix(kubelet, "v"))
	if !ok || !supported || !known || one != 1 {
		return false
	}
	behind := server - own
	return behind > kubeletsBehind(minor) || behind > 0 && behind+1 > kubeletsBehind(minor+1)
}

// majorMinor returns the first two numbers of a version, and whether it begins with two.
func majorMinor(version string) (major, minor int, ok bool) {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, bad := strconv.Atoi(parts[0])
	minor, worse := strconv.Atoi(parts[1])
	return major, minor, bad == nil && worse == nil && major >= 0 && minor >= 0
}
