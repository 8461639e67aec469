package payload

// ClusterVersion is a minor version of OpenShift or OKD that this payload supports.
type ClusterVersion struct {
	// Cluster is such as "5.0". Kubernetes is the minor version of its API server.
	Cluster    string
	Kubernetes string
}

// ClusterVersions returns all supported versions. The kubelet must not be newer than the API server and may be at most three
// minor versions older (kubernetes.io/releases/version-skew-policy).
func ClusterVersions() []ClusterVersion {
	return []ClusterVersion{{"5.0", "1.36"}, {"5.1", "1.37"}}
}
