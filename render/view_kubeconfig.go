package render

// kubeconfigView is what the kubeconfig template sees. Token is for the bootstrap; the others name a PEM file that
// holds both certificate and key, as k8s.io/client-go util/certificate writes it.
type kubeconfigView struct {
	Server            string
	CA                string
	User              string
	Token             string
	ClientCertificate string
}

func (e *emitter) kubeconfigEntries() {
	e.file(rowBootstrapKubeconfig, e.template("kubeconfig", func(c Cluster) any {
		return kubeconfigView{Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "kubelet-bootstrap", Token: c.Bootstrap.Token.Reveal()}
	}))
	// The node program is the node itself: NodeRestriction then holds it to its own Node.
	e.file(rowAgentKubeconfig, e.template("kubeconfig", func(c Cluster) any {
		return kubeconfigView{Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "node", ClientCertificate: kubeletClientCert}
	}))
	// cloud-node-manager removes taints, which NodeRestriction forbids a kubelet, so it has an identity of its own.
	e.file(rowCloudKubeconfig, e.template("kubeconfig", func(c Cluster) any {
		return kubeconfigView{Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "cloud-node-manager", ClientCertificate: cloudClientCert}
	}))
}
