package configure

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// KeptNode has the fields that users set on a Node, while its host joins again.
type KeptNode struct {
	Name string `json:"name"`
	// UID is that of the Node that was deleted.
	UID types.UID `json:"uid"`
	// Address is the entry of windows-instances.
	Address     string            `json:"address"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Cordoned reports whether an administrator has cordoned the Node.
	Cordoned bool `json:"cordoned,omitempty"`
}

// systemDomains returns the domains, which include their subdomains, of labels, annotations and taints that a controller or
// the kubelet writes. They are wrong on another Node object, such as the subnet that OVN assigned.
func systemDomains() (labels, annotations, taints []string) {
	operator := strings.TrimSuffix(domain, "/")
	return []string{operator},
		[]string{
			operator, "k8s.ovn.org", "cloud.network.openshift.io", "machine.openshift.io",
			"machineconfiguration.openshift.io", "node.alpha.kubernetes.io",
			"alpha.kubernetes.io", "volumes.kubernetes.io", "csi.volume.kubernetes.io", "volume.beta.kubernetes.io",
		},
		[]string{operator, "node.kubernetes.io", "node.cloudprovider.kubernetes.io"}
}

// isOfDomain reports whether the domain of a key is one of the domains or below one.
func isOfDomain(key string, domains []string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc(domains, func(d string) bool {
		return prefix == d || strings.HasSuffix(prefix, "."+d)
	})
}

// SetByUsers returns the fields that users set on a Node. Controllers and the kubelet write the others again.
func SetByUsers(node *corev1.Node, address string) KeptNode {
	k := KeptNode{Name: node.Name, UID: node.UID, Address: address, Labels: node.Labels, Annotations: node.Annotations}
	own := node.Annotations[JoiningAnnotation] != "" || node.Annotations[published.CordonAnnotation] != ""
	k.Cordoned = node.Spec.Unschedulable && !own
	return k.onlyOfUsers()
}

// onlyOfUsers leaves out the fields that a controller or the kubelet writes.
func (k KeptNode) onlyOfUsers() KeptNode {
	labels, annotations, _ := systemDomains()
	k.Labels, k.Annotations = excludeDomains(k.Labels, labels), excludeDomains(k.Annotations, annotations)
	return k
}

// TaintsOfUsers returns the keys of the taints that users set on a Node.
func TaintsOfUsers(node *corev1.Node) []string {
	_, _, domains := systemDomains()
	var keys []string
	for _, t := range node.Spec.Taints {
		if t.Key != ownTaint && t.Key != windowsnode.ToBeDeletedTaint && !isOfDomain(t.Key, domains) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

// ownTaint is that of all Windows nodes, which their kubelets set when they register.
const ownTaint = "os"

func excludeDomains(all map[string]string, domains []string) map[string]string {
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(key, _ string) bool { return isOfDomain(key, domains) })
	return left
}

// restoreOnto adds the kept fields that the new Node lacks to the marks.
func (k KeptNode) restoreOnto(m *Marks, node *corev1.Node) {
	for key, value := range k.Labels {
		if _, ok := node.Labels[key]; !ok {
			m.Labels[key] = value
		}
	}
	for key, value := range k.Annotations {
		if _, ok := node.Annotations[key]; !ok {
			m.Annotations[key] = value
		}
	}
	if k.Cordoned {
		m.Cordon = new(true)
	}
}
