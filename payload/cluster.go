package payload

// ClusterVersion is a minor version of OpenShift or OKD that this payload serves.
type ClusterVersion struct {
	// Cluster is "5.0", Kubernetes the minor version of its API server.
	Cluster    string
	Kubernetes string
}

// ClusterVersions lists them. Our kubelet must not be newer than the API server, and at most three minor versions
// older (kubernetes.io/releases/version-skew-policy).
func ClusterVersions() []ClusterVersion {
	return []ClusterVersion{{"5.0", "1.36"}, {"5.1", "1.37"}}
}
