package render

// The ConfigMap of the operator's namespace into which the cluster's network operator puts the CAs of the proxy,
// because of its label (docs.openshift.com, Configuring the cluster-wide proxy, Certificate injection using Operators).
const (
	TrustedCAConfigMap = "trusted-ca"
	TrustedCAKey       = "ca-bundle.crt"
	// TrustedCALabel has the value "true".
	TrustedCALabel = "config.openshift.io/inject-trusted-cabundle"
)
