package configure

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// rejoiningName is a ConfigMap in the operator's namespace with a KeptNode for each host that joins again, by Node.
const rejoiningName = "windows-rejoining-nodes"

const (
	// ReasonExpired means that the client certificate of the host's kubelet has expired.
	ReasonExpired = "CertificateExpired"
	// ReasonRejoining means that an instance joins again.
	ReasonRejoining = "InstanceRejoins"
)

// LostNodeKey is the key of a lost node in Unjoined. The names of Machines and addresses have no space.
func LostNodeKey(node string) string { return lostPrefix + node }

const lostPrefix = "node "

func isLostName(name string) bool { return strings.HasPrefix(name, lostPrefix) }

// Rejoining keeps the fields that users set on the Nodes of hosts that join again.
type Rejoining struct{ Notebook }

// RejoiningNodes returns the Rejoining of the operator's namespace.
func (j *Joiner) RejoiningNodes() Rejoining {
	return Rejoining{Notebook{j.Login.Live, j.Client, j.Login.Namespace, rejoiningName}}
}

// maxKept is the size of a KeptNode in bytes: sixty fit into a ConfigMap. The size of a Node is only limited by etcd, and
// its kubelet may write it.
const maxKept = 16 << 10

// KeepNode stores a KeptNode. It returns the fields that are too large to be kept: annotations, labels.
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

// dropPart drops the annotations, then the labels, and returns which.
func (k *KeptNode) dropPart() string {
	if k.Annotations != nil {
		k.Annotations = nil
		return "annotations"
	}
	k.Labels = nil
	return "labels"
}

// KeptNode returns the entry of the Node that a new one replaces; zero if there is none.
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
	return k.onlyOfUsers(), nil // a client that can write the ConfigMap can set no more than these fields
}

// ForgetNode deletes the entry of a Node after it was restored.
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
