package render

// kubeconfigView is the view of the kubeconfig template. The bootstrap has a Token; the others have a
// ClientCertificate, a PEM file with both certificate and key, as k8s.io/client-go util/certificate writes it.
type kubeconfigView struct {
	Server            string
	CA                string
	User              string
	Token             string
	ClientCertificate string
}

func (e *emitter) kubeconfigEntries() {
	e.addFile(rowBootstrapKubeconfig, e.fromTemplate("kubeconfig", func(c Cluster) any {
		return kubeconfigView{
			Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "kubelet-bootstrap",
			Token: c.Bootstrap.Token.Reveal(),
		}
	}))
	// The agent authenticates as the node, so that NodeRestriction limits it to its own Node.
	e.addFile(rowAgentKubeconfig, e.fromTemplate("kubeconfig", func(c Cluster) any {
		return kubeconfigView{
			Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "node", ClientCertificate: kubeletClientCert,
		}
	}))
	// cloud-node-manager removes taints, which NodeRestriction forbids to a node, so it has a separate identity.
	e.addFile(rowCloudKubeconfig, e.fromTemplate("kubeconfig", func(c Cluster) any {
		return kubeconfigView{
			Server: c.APIServerInternalURL, CA: fileBootstrapCA, User: "cloud-node-manager",
			ClientCertificate: cloudClientCert,
		}
	}))
}
