// Package kubelet is a stand-in for the kubelet of a simulated Windows machine. Towards the API it behaves as the real
// one: it reads the command line of its service and kubelet.conf, requests its client certificate with the bootstrap
// kubeconfig, registers its Node when it starts and only then, keeps a Lease and the status of the Node, requests a
// serving certificate, and reports the pods that are bound to its Node as running. Which lines of Kubernetes 1.36 each
// part follows is noted there.
//
//	flags, kubelet.conf --> client certificate --> Node --> Lease, status --> pods
//	      '-- refused: Run returns an error, as the process exits
//
// What it simplifies:
//   - It knows the flags that bundles have and a few more; another one is refused, as the real one refuses a flag it does not know.
//   - Of the real validation it has the rules for numbers, quantities, enumerations, taints and eviction thresholds, and those for
//     fields that make no sense on Windows. It does not know the feature gates.
//   - It listens only where its machine has an address of this computer, and serves files below /logs/ alone, to those who have a
//     certificate of the CA for clients: it asks for no verdict. The probes of its health are answered by the machine.
//   - No container runs. A pod becomes Ready after a time, runs until it is deleted, and ends within its grace period; Annotations of
//     the pod change that. Init containers, probes, hooks, volumes and images are not looked at. No pod is refused or evicted.
//   - The time of a skewed clock is in what it reports, not in how it judges certificates.
//   - The Node has no images and no runtime handlers. It sends no Events.
package kubelet
