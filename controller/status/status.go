package status

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kind, and the name of its one object; deploy/crd defines it.
const (
	Group   = "windowsmachineconfig.openshift.io"
	Version = "v1alpha1"
	Kind    = "WindowsNodesStatus"
	Name    = "windows-nodes"
)

// OperatorName is the name of the operator's Deployment and of its Lease.
const OperatorName = "windows-machine-config-operator"

// Types of conditions.
const (
	// InputsAccepted is false while the inputs, or those of a node, are refused: published bundles stay.
	InputsAccepted = "InputsAccepted"
	// Published is true when the newest bundles of all nodes that can have one are there to be fetched.
	Published = "Published"
	// RolledOut is false while a node does not have its wanted bundle; the message is the rollout in one line.
	RolledOut = "RolledOut"
	// InputsPresent is false while nodes keep what they have because an input was deleted as a whole, until that is
	// confirmed.
	InputsPresent = "InputsPresent"
	// UrgentInputsReached is false while a CA or the pull secret, which must not wait for a rollout, cannot reach a
	// node.
	UrgentInputsReached = "UrgentInputsReached"
	// KubeletsUpgradeable is false while OpenShift refuses the next minor update of the cluster because of kubelets of
	// Windows nodes. It has the name of the condition of ClusterOperator kube-apiserver, which counts all nodes. It is a
	// hint: it is normal during the rollout after a cluster update.
	KubeletsUpgradeable = "KubeletMinorVersionUpgradeable"
	// InputsClean is false while the inputs have findings that are warnings. Nothing waits for that.
	InputsClean = "InputsClean"
	// InputsConfirmed is false while nodes keep what they have because a change of the inputs would stop their pods,
	// until that is confirmed.
	InputsConfirmed = "InputsConfirmed"
	// ClocksAgree is false while the clock of a node differs much from the operator's. Nothing is decided by that.
	ClocksAgree = "ClocksAgree"
	// HostNetworksStable is false while the Host Network Service of a node crashes more often than kube-proxy is
	// restarted.
	HostNetworksStable = "HostNetworksStable"
	// SSHServersRun is false while the OpenSSH server of a node does not run, so that the operator cannot log in.
	// Nothing is decided by it.
	SSHServersRun = "SSHServersRun"
	// ImagesReachable is false while a node gets images of a registry from no mirror and not from the registry. Nothing is decided by it.
	ImagesReachable = "ImagesReachable"
	// WindowsRebooted is false while Windows itself waits for a boot of a node. Nothing is decided by this condition.
	WindowsRebooted = "WindowsRebooted"
	// KeysAccepted is false while the host of a node is not known to accept the key of the operator's Secret.
	KeysAccepted = "KeysAccepted"
)

// Reasons of conditions. That of a finding is the reason of InputsAccepted where all inputs are refused.
const (
	ReasonAccepted       = "Accepted"
	ReasonNodesRefused   = "NodesRefused"
	ReasonPublished      = "Published"
	ReasonInputsRefused  = "InputsRefused"
	ReasonPublishFailed  = "PublishFailed"
	ReasonPresent        = "Present"
	ReasonDeleted        = "InputsDeleted"
	ReasonNothingHeld    = "NothingHeld"
	ReasonNoWarnings     = "NoWarnings"
	ReasonWarned         = "InputsWarned"
	ReasonReached        = "Reached"
	ReasonUrgentHeld     = "UrgentInputsHeld"
	ReasonClocksAgree    = "ClocksAgree"
	ReasonClockSkew      = "ClockSkew"
	ReasonStable         = "HostNetworksStable"
	ReasonUnstable       = "HostNetworkUnstable"
	ReasonSSHRuns        = "SSHServersRun"
	ReasonSSHStopped     = "SSHServerStopped"
	ReasonReachable      = "ImagesReachable"
	ReasonUnreachable    = "ImagesUnreachable"
	ReasonNoReboot       = "NoRebootPending"
	ReasonRebootPending  = "WindowsRebootPending"
	ReasonKeysAccepted   = "KeysAccepted"
	ReasonKeysChanging   = "KeysChanging"
	ReasonKeyNotAccepted = "KeyNotAccepted"
	ReasonKeyUnusable    = "PrivateKeyUnusable"
	ReasonKubelets       = "KubeletsRecent"
	ReasonOldKubelets    = "KubeletsTooOld"
	ReasonRolledOut      = "RolledOut"
	ReasonRollingOut     = "RollingOut"
	ReasonPaused         = "RolloutPaused"
	ReasonStopped        = "RolloutStopped"
	ReasonRolloutFailed  = "RolloutFailed"
)

// Status is the status of one writer. It owns its conditions, and the nodes if it gives them.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Nodes      *Nodes             `json:"nodes,omitempty"`
	// Refused are nodes whose bundle is refused, by name; at most MaxRefused. Nodes has their number.
	Refused []Refused `json:"refused,omitempty"`
	// Hosts are those that are not nodes with their bundle, as SortHosts lists them. HostsWaiting is the number of all
	// such hosts; one writer gives both.
	Hosts        []Host `json:"hosts,omitempty"`
	HostsWaiting *int   `json:"hostsWaiting,omitempty"`
}

// MaxRefused is how many refused nodes are listed.
const MaxRefused = 100

// Nodes are numbers of Windows nodes. Each node is counted in Total and in the one state that `wmco status` shows;
// Refused are counted besides.
type Nodes struct {
	Total        int `json:"total"`
	Updated      int `json:"updated"`
	Stale        int `json:"stale"`
	Updating     int `json:"updating"`
	Joining      int `json:"joining"`
	Waiting      int `json:"waiting"`
	Refused      int `json:"refused"`
	NotReporting int `json:"notReporting"`
	Degraded     int `json:"degraded"`
}

// MarshalJSON writes the numbers, and those of the names of the release before beside them. The next release does not
// write the former names.
func (n Nodes) MarshalJSON() ([]byte, error) {
	type numbers Nodes
	return json.Marshal(struct {
		numbers
		Current     int `json:"current"`
		Applying    int `json:"applying"`
		Failed      int `json:"failed"`
		Silent      int `json:"silent"`
		Unpublished int `json:"unpublished"`
	}{numbers(n), n.Updated, n.Updating, n.Degraded, n.NotReporting, n.Joining})
}

// UrgentHeld is an urgent input that cannot reach nodes. The object has it in a condition, metrics have it as numbers.
type UrgentHeld struct {
	Nodes int
	// Expires is when the first CA of them expires; zero for an input without such a time.
	Expires time.Time
}

// Refused is a node whose bundle is refused; its published one stays.
type Refused struct {
	Node    string `json:"node"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

func statusKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: Version, Kind: Kind}
}
