package configure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/hosts"
)

// A host of the existing operator is asked which Node it is, and changed by nothing here:
//
//	a Node asks for adoption, or the settings do --> the host of a Machine or entry with its address, under the key that is pinned on the Node
//	                                             --> its facts name the Node --> the record of the host: adopted from now on
//
// The rest is a rollout (controller/node, controller/rollout). A Node cannot choose its host: the host names the Node.

// waitingNodes returns the Nodes of the existing operator that report an address of the host, while the host is not known
// to be a Node. The operator does not log in to such a host before its adoption is requested. A Node that this operator
// has recorded is no evidence about another host.
func (h Host) waitingNodes(ctx context.Context) ([]corev1.Node, error) {
	if h.Name != "" || h.ClaimedBy == "" {
		return nil, nil
	}
	var list []corev1.Node
	for _, name := range append([]string{h.ClaimedBy}, h.AlsoClaimedBy...) {
		node, err := ReadNode(ctx, h.Reader, name)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		case err == nil && published.WaitsForAdoption(node.Annotations):
			list = append(list, *node)
		}
	}
	return list, nil
}

// wantedNodes returns the nodes whose adoption is requested.
func (h Host) wantedNodes(nodes []corev1.Node) []corev1.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool { return !h.IsAdoptionWanted(&n) })
}

// IsAdoptionWanted reports whether the annotation of the Node or the settings request its adoption.
func (h Host) IsAdoptionWanted(node *corev1.Node) bool {
	return fleet.IsAdoptionWanted(h.Wanted.Cluster.Settings, node.Annotations)
}

// identifyAdopted records which of the wanted Nodes the host is, if it is one of them. A Node with a wrong address does
// not prevent the adoption of another one.
func (h Host) identifyAdopted(ctx context.Context, wanted []corev1.Node) Progress {
	var first error
	for _, node := range wanted {
		err := h.identifyAs(ctx, node)
		if errors.Is(err, errRecorded) {
			return h.progressOfError(err)
		}
		first = cmp.Or(first, err)
	}
	return h.progressOfError(first)
}

// identifyAs records that the host is this Node, if its facts name the Node and it has the host key that the existing
// operator pinned.
func (h Host) identifyAs(ctx context.Context, node corev1.Node) error {
	w, err := h.ApplyRequest()
	if err != nil {
		return err
	}
	defer h.Login.ExpectKey(gather.HostID(h.Node), node.Name, strings.TrimSpace(node.Annotations[hosts.PinAnnotation]))()
	w.Check = func(facts bundle.Facts) error {
		if name := NameByFacts(h.Node, facts, h.Wanted.Cluster.Platform); name != node.Name {
			return &refusal{
				ReasonNotTheHost, fmt.Sprintf("node %s is to be adopted and reports the address %s, and the host "+
					"there reports that it is node %q; nothing was changed on it", node.Name, h.Address, name),
				"check the host of node " + node.Name +
					", and whether the address is its own; if the computer was renamed, restore its name",
			}
		}
		return h.identifyHost(ctx, w.Target, facts)
	}
	if err := h.Hosts.CheckHost(ctx, w); err != nil {
		return err
	}
	return errRecorded // the Node was deleted
}

// checkAdoption refuses an adoption that was not requested, or whose host has another key than the pinned one of the
// existing operator.
func (h Host) checkAdoption(ctx context.Context, t remote.Target, node *corev1.Node) error {
	if !h.IsAdoptionWanted(node) {
		return &refusal{fleet.ReasonWaitingForAdoption,
			fmt.Sprintf("the host is node %s of the existing operator, which waits for adoption", node.Name),
			fleet.AdoptFix(node.Name)}
	}
	text := node.Annotations[hosts.PinAnnotation]
	key := h.Login.PinnedKey(ctx, t)
	if text == "" || hosts.SamePin(key, text) {
		return nil
	}
	shown := "that is not known"
	if key != nil {
		shown = key.Type() + " " + ssh.FingerprintSHA256(key)
	}
	return &refusal{
		ReasonHostKey, fmt.Sprintf("the host at %s has the key %s, and the existing operator has pinned another one "+
			"for node %s (annotation %s); nothing was changed on it", h.Address, shown, node.Name, hosts.PinAnnotation),
		"if the host was installed again, or got another key, remove what was pinned: " +
			hosts.UnpinNodeCommand(node.Name) +
			"; otherwise another host answers, or has answered first: find out which, and forget its key: " +
			h.Login.Unpin(t),
	}
}
