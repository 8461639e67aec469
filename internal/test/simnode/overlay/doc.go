// Package overlay is a stand-in for hybrid-overlay-node, OVN-Kubernetes' program on Windows nodes. As the real one it
// requests a client certificate of its own as the kubelet, which the cluster network approves and not the machine
// approver; exits without it after two minutes; waits for the node's subnet in the annotation of its Node;
// makes the HNS networks; and writes the MAC of its gateway on the Node (go-controller/pkg/util/kube.go,
// hybrid-overlay/pkg/controller/ho_node_windows.go).
//
// It programs no tunnels to other nodes, and the networks are entries of the machine's facts.
package overlay
