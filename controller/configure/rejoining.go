package configure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// rejoiningName is a ConfigMap of the operator's namespace: what users have set on the Nodes of hosts that join again,
// by their names.
const rejoiningName = "windows-rejoining-nodes"

const (
	// ReasonExpired is that of a host whose kubelet has an expired client certificate.
	ReasonExpired = "CertificateExpired"
	// ReasonRejoining is that of an instance that joins again.
	ReasonRejoining = "InstanceRejoins"
)

// LostNodeKey is under what a lost node is noted among the hosts that cannot join. No Machine and no address has a
// blank.
func LostNodeKey(node string) string { return lostPrefix + node }

const lostPrefix = "node "

func isLostName(name string) bool { return strings.HasPrefix(name, lostPrefix) }

// Rejoining has what was set on the Nodes of hosts that join again.
type Rejoining struct{ Notebook }

// RejoiningNodes returns what was set on the Nodes of hosts that join again.
func (j *Joiner) RejoiningNodes() Rejoining {
	return Rejoining{Notebook{j.Login.Live, j.Client, j.Login.Namespace, rejoiningName}}
}

// maxKept is how many bytes are kept of one Node: sixty that join again at once fit into a ConfigMap. A kubelet may
// write as much on its own Node as etcd takes.
const maxKept = 16 << 10

// KeepNode keeps what was set on a Node. It returns the fields that are too large to be kept: annotations, labels.
func (r Rejoining) KeepNode(ctx context.Context, k KeptNode) (tooLarge []string, err error) {
	text, err := json.Marshal(k)
	for err == nil && len(text) > maxKept {
		tooLarge = append(tooLarge, k.dropPart())
		text, err = json.Marshal(k)
	}
	if err != nil {
		return nil, err
	}
	return tooLarge, r.ChangeEntry(ctx, k.Name, string(text))
}

// dropPart drops the next of the parts that can be large, and returns its name.
func (k *KeptNode) dropPart() string {
	if k.Annotations != nil {
		k.Annotations = nil
		return "annotations"
	}
	k.Labels = nil
	return "labels"
}

// KeptNode returns what was set on the Node that a new one replaces; zero if nothing was.
func (r Rejoining) KeptNode(ctx context.Context, node *corev1.Node, address string) (KeptNode, error) {
	cm, err := r.ReadEntries(ctx)
	if err != nil || cm.Data[node.Name] == "" {
		return KeptNode{}, err
	}
	var k KeptNode
	if err := json.Unmarshal([]byte(cm.Data[node.Name]), &k); err != nil {
		return KeptNode{}, fmt.Errorf("reading the key %s of ConfigMap %s: %w; fix: remove the key",
			node.Name, r.Name, err)
	}
	if k.UID == node.UID || k.Address != address {
		return KeptNode{}, nil // the Node was not deleted, or another host has its name
	}
	return k.onlyOfUsers(), nil // whoever may write the ConfigMap sets no more than what would be kept
}

// ForgetNode drops what was set again.
func (r Rejoining) ForgetNode(ctx context.Context, name string) error {
	cm, err := r.ReadEntries(ctx)
	if err != nil {
		return err
	}
	if _, ok := cm.Data[name]; !ok {
		return nil
	}
	return r.ChangeEntry(ctx, name, nil)
}
