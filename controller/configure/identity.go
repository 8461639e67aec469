package configure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// The operator's own records name the host of each Node (controller/windowsnode/record). A host is recorded as a Node only if both confirm it, and no other
// host contradicts:
//
//	the host, over SSH under its pinned key: its kubelet registers under the name of the Node
//	the Node:                                all its addresses are the host's by its facts, and the operator reaches it at one of them,
//	                                         unless the operator approved the certificate of this name for the key that the host waited with
//	the records and the inputs:              no other host is this Node, and none has one of these addresses
//
// A Node that reports another host's addresses does not get that host, and a host that takes another one's name does
// not get that Node.

// CheckFacts refuses a host whose facts do not name the Node of its record. It is called before anything is changed there.
func (h Host) CheckFacts(facts bundle.Facts) error {
	return CheckSameNode(h.Node, h.Name, facts, h.Wanted.Cluster)
}

// CheckSameNode refuses a host that has become another Node than the one that its record names, or a node of another
// cluster.
func CheckSameNode(n render.Node, node string, facts bundle.Facts, c render.Cluster) error {
	if err := checkCluster(facts, c); err != nil {
		return err
	}
	name := NameByFacts(n, facts, c.Platform)
	if name == node {
		return nil
	}
	return &refusal{
		ReasonNotTheHost, fmt.Sprintf("the host at %s reports that it is node %q, and the operator knows it as node "+
			"%s; nothing was changed on it", n.Address, name, node),
		"check which host has the address " + n.Address + "; if the computer was renamed, restore its name",
	}
}

// checkCluster refuses a host whose kubelet belongs to another cluster. A wrong report of a host blocks only this host.
func checkCluster(facts bundle.Facts, c render.Cluster) error {
	if why, fix := c.ForeignKubelet(facts); why != "" {
		return &refusal{ReasonOtherCluster, why, fix}
	}
	return nil
}

// errRecorded ends an attempt in which the host was recorded as an existing Node. The next attempt reads the record.
var errRecorded = errors.New("the host is recorded as a Node")

// identifyHost is for a host that is not known to be a Node. It refuses a host that is recorded as another one, and records
// the Node of the host. A Node of the existing operator is recorded when its adoption is requested.
func (h Host) identifyHost(ctx context.Context, t remote.Target, facts bundle.Facts) error {
	if err := checkCluster(facts, h.Wanted.Cluster); err != nil {
		return err
	}
	if err := h.checkOwnAddress(facts); err != nil {
		return err
	}
	if other, ok := h.findDuplicateHost(facts); ok {
		return &refusal{ReasonSameHost, fmt.Sprintf("%s is the same host as %s, which is in the inputs too", h.Address,
			other.Address), "remove one of the two entries of windows-instances"}
	}
	name := NameByFacts(h.Node, facts, h.Wanted.Cluster.Platform)
	replaced, err := h.yieldRecords(ctx, t, name, facts)
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := h.Login.Live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		if apierrors.IsNotFound(err) {
			return cmp.Or(h.forgetReplaced(ctx, replaced), h.noteJoin(ctx, t))
		}
		return err
	}
	if err := h.refuseForeignNode(ctx, &node, facts, replaced); err != nil {
		return err
	}
	adopting := published.WaitsForAdoption(node.Annotations)
	if adopting {
		if err := h.checkAdoption(ctx, t, &node); err != nil {
			return err
		}
	}
	err = h.Login.BindRecord(ctx, t, func(r record.Record) (record.Record, error) {
		if r.NodeUID != "" && r.NodeUID != node.UID {
			r.Served = ""
		}
		r.Node, r.NodeUID, r.Account, r.MachineName = node.Name, node.UID, t.User, h.MachineName
		r.Resolved = h.resolvedAddresses()
		r = r.WithAcceptedKey(h.Login.UsedKey(r.ID()), h.Login.RecordKey) // of the connection over which the facts came
		r.Origin, r.Adopting = cmp.Or(r.Origin, replaced.Origin, originOf(&node)), adopting
		return r, nil
	})
	if err == nil {
		err = h.forgetReplaced(ctx, replaced)
	}
	if err != nil {
		return fmt.Errorf("recording which host Node %s is: %w", node.Name, err)
	}
	h.Log.Info("recorded which host a Node is", "node", node.Name, "host", gather.HostID(h.Node), "adopting", adopting)
	return errRecorded
}

// noteJoin records that this operator joins the host. Its agent may report before the operator has seen the Node.
func (h Host) noteJoin(ctx context.Context, t remote.Target) error {
	if r, ok := h.Wanted.Records.RecordByID(gather.HostID(h.Node)); ok && r.Origin == record.OriginJoined {
		return nil
	}
	err := h.Login.BindRecord(ctx, t, func(r record.Record) (record.Record, error) {
		r.Origin = record.OriginJoined
		return r, nil
	})
	if err != nil {
		return fmt.Errorf("recording that %s joins: %w", h.Address, err)
	}
	return nil
}

// checkOwnAddress refuses an instance whose host does not have the address of its entry, for example behind NAT. The kubelet
// gets this address as --node-ip, finds no adapter with it, and never reports an address (k8s.io/kubernetes
// pkg/kubelet/nodestatus, NodeAddress).
func (h Host) checkOwnAddress(facts bundle.Facts) error {
	if h.Backing != render.BackingInstance || !isIPAddress(h.Address) || facts.HasAddress(h.Address) {
		return nil
	}
	has := bundle.JoinFirst(facts.Addresses, 5, ", ", func(left int) string {
		return fmt.Sprintf(" and %d more", left)
	})
	return &refusal{
		ReasonTranslated, fmt.Sprintf("the host that answers at %s has no adapter with this address (it has %s); "+
			"its kubelet could not announce it", h.Address, cmp.Or(has, "none")),
		"use the host's own address in the network of the cluster in place of " + h.Address +
			"; the operator and the pods have to reach it there",
	}
}

// isIPAddress reports whether an entry of windows-instances is an address, not a name.
func isIPAddress(entry string) bool {
	_, err := netip.ParseAddr(entry)
	return err == nil
}

// errNoAddress ends an attempt while the kubelet has not written the addresses of its Node yet.
var errNoAddress = errors.New("the Node has no address yet")

// originOf returns who joined the host. A Node that was complete before its record was joined by another operator, an older
// version or a person.
func originOf(node *corev1.Node) record.Origin {
	if windowsnode.IsJoined(node.Annotations) || node.Annotations[published.ReportAnnotation] != "" {
		return record.OriginAdopted
	}
	return record.OriginJoined
}

// findDuplicateHost returns another host of the inputs without a Node that is the same host by its facts. The one whose
// address sorts first continues.
func (h Host) findDuplicateHost(facts bundle.Facts) (render.Node, bool) {
	i := slices.IndexFunc(h.Wanted.All, func(other render.Node) bool {
		return gather.HostID(other) != gather.HostID(h.Node) && other.Backing != render.BackingNode &&
			other.Name == "" && other.Address < h.Address && factsMatchHost(facts, other)
	})
	if i < 0 {
		return render.Node{}, false
	}
	return h.Wanted.All[i], true
}

// yieldRecords refuses the host if another one is, or was, the Node of this name. If another entry for the same host and key
// was replaced by this one, it returns the record of that entry.
func (h Host) yieldRecords(ctx context.Context, t remote.Target, name string,
	facts bundle.Facts) (replaced record.Record, err error) {
	all, err := h.Login.Records.LiveRecords(ctx)
	if err != nil {
		return record.Record{}, err
	}
	key := ""
	if pin := h.Login.PinnedKey(ctx, t); pin != nil {
		key = hosts.EncodeKey(pin)
	}
	for _, other := range all.OtherRecords(name, gather.HostID(h.Node)) {
		same := key != "" && key == other.HostKey
		listed := slices.ContainsFunc(h.Wanted.Instances, func(i gather.Instance) bool { return record.OfEntry(i.Address) == other.ID() })
		switch {
		case same && other.Entry != "" && !listed && len(h.Wanted.Instances) > 0:
			replaced = other
		case same, facts.HasAddress(other.Address):
			return record.Record{}, h.refuseOtherHost(other, name)
		default:
			return record.Record{}, &refusal{
				ReasonNameTaken, fmt.Sprintf("the host would register as Node %s, which is %s (%s)", name, other,
					other.Address),
				"rename the computer of this host",
			}
		}
	}
	return replaced, nil
}

// refuseOtherHost refuses a host that is the Node of a record already.
func (h Host) refuseOtherHost(other record.Record, name string) error {
	this, fix := record.Record{Machine: types.UID(h.MachineUID), MachineName: h.MachineName, Entry: h.Address},
		"remove the entry "+h.Address+" of "+InstancesName
	if h.Backing == render.BackingMachine {
		fix = "none if " + other.String() +
			" is being deleted; otherwise check which host has the address " + h.Address
	}
	return &refusal{
		ReasonSameHost, fmt.Sprintf("%s (%s) is the same host as %s (%s), which is node %s; nothing was changed on it",
			this, h.Address, other, other.Address, name), fix,
	}
}

// forgetReplaced removes the record of an entry that was replaced by this one.
func (h Host) forgetReplaced(ctx context.Context, r record.Record) error {
	if r.Entry == "" {
		return nil
	}
	h.Log.Info("an entry of windows-instances was replaced by another one for the same host", "node", r.Node, "before",
		r.Entry, "now", h.Address)
	return h.Login.Records.ForgetRecord(ctx, r.ID())
}

// refuseForeignNode refuses a host whose name is that of a Node with other addresses. If the entry of the host was replaced,
// the key proves that it is that Node, and its address may have changed.
func (h Host) refuseForeignNode(ctx context.Context, node *corev1.Node, facts bundle.Facts,
	replaced record.Record) error {
	known := replaced.IsNode(node.Name, node.UID)
	fix := "rename the computer at " + h.Address + "; if this host left the Node behind, delete the Node"
	if windowsnode.Decode(*node).IsReady() {
		fix = "rename the computer at " + h.Address + "; do not delete the Node: its kubelet runs"
	}
	taken := func(why string) error {
		return &refusal{ReasonNameTaken, fmt.Sprintf("the host would register as Node %s, which exists and %s",
			node.Name, why), fix}
	}
	if os := node.Labels[corev1.LabelOSStable]; os != "" && os != "windows" {
		return taken("is a Node of " + os)
	}
	addresses := InternalAddresses(node)
	if len(addresses) == 0 {
		return errNoAddress
	}
	if !facts.HasAll(addresses) {
		if known {
			return &refusal{
				ReasonNotTheHost, fmt.Sprintf("the host has another address than before, and Node %s does not "+
					"report it yet (%s)", node.Name, strings.Join(addresses, ", ")),
				"wait until its kubelet has written the Node; if it does not, start the service kubelet on the host",
			}
		}
		return taken("has other addresses (" + strings.Join(addresses, ", ") + ")")
	}
	// The facts about addresses are not trusted. The operator itself knows at which it reached the host, and whose
	// certificate it approved.
	r, _, err := h.Login.Records.GetRecord(ctx, gather.HostID(h.Node))
	if err != nil {
		return err
	}
	reached := func(a string) bool { return a == h.Address || slices.Contains(h.Addresses, a) }
	if r.Node != node.Name && !known && !slices.ContainsFunc(addresses, reached) {
		fix = "if it is the same host, write an address of the Node in the place of " + h.Address +
			"; if it is another computer, rename that; do not delete the Node"
		return taken("does not report the address at which the host is reached (" + strings.Join(addresses, ", ") + ")")
	}
	for _, other := range h.Wanted.All {
		if other.Backing == render.BackingNode || other.Ending || gather.HostID(other) == gather.HostID(h.Node) {
			continue
		}
		if slices.ContainsFunc(addresses, func(a string) bool {
			return a == other.Address || slices.Contains(other.Addresses, a)
		}) {
			fix = "check which of the two hosts has the address; do not delete the Node"
			return taken("has the address of " + record.New(gather.HostID(other)).String() + " (" + other.Address + ")")
		}
	}
	return nil
}

// InternalAddresses returns the addresses that a Node reports.
func InternalAddresses(node *corev1.Node) []string {
	var list []string
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			list = append(list, a.Address)
		}
	}
	return list
}

// factsMatchHost reports whether the facts have the address or the name of a host.
func factsMatchHost(f bundle.Facts, n render.Node) bool {
	if f.HasAddress(n.Address) {
		return true
	}
	return slices.ContainsFunc([]string{f.HostName, f.HostName + "." + f.DNSSuffix}, func(name string) bool {
		return name != "" && strings.EqualFold(name, n.Address)
	})
}

// resolvedAddresses are the addresses of an instance: the entry, or the resolver's answer for it.
func (h Host) resolvedAddresses() string {
	if h.Backing != render.BackingInstance {
		return ""
	}
	if isIPAddress(h.Address) {
		return h.Address
	}
	return strings.Join(slices.Sorted(slices.Values(h.Addresses)), " ")
}

// keepRecord records a new address of a host. Another account is recorded after a login with it (ConfirmLogin).
func (h Host) keepRecord(ctx context.Context) error {
	id := gather.HostID(h.Node)
	r, ok := h.Wanted.Records.RecordByID(id)
	account := cmp.Or(r.Account, LoginAccount(h.Node, h.Wanted.Cluster.Platform))
	resolved := cmp.Or(h.resolvedAddresses(), r.Resolved) // a resolver that does not answer is no evidence
	if !ok || r.Account == account && r.MachineName == h.MachineName && r.Address == h.Address &&
		r.Resolved == resolved {
		return nil
	}
	return h.Login.Records.UpdateRecord(ctx, id, func(r record.Record) (record.Record, error) {
		if r.Node == "" { // it was removed
			return r, nil
		}
		r.Account, r.MachineName, r.Address, r.Resolved = cmp.Or(r.Account, account), h.MachineName, h.Address, resolved
		return r, nil
	})
}

// NameByFacts is the name under which the kubelet of a host with these facts registers. A Node that has the address of the
// host is no evidence, because its kubelet wrote the address.
func NameByFacts(n render.Node, facts bundle.Facts, p bundle.Platform) string {
	n.Name, n.Facts = "", facts
	return n.KubernetesName(p)
}
