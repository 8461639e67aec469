package fleet

import (
	"cmp"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/gather/objects"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// Operator is the state of the operator itself.
type Operator struct {
	// Heard is when it last renewed its Lease; zero where that is not known.
	Heard time.Time `json:"heard,omitzero"`
	// Problem means that it is silent or absent: all else may be outdated. It is empty while the operator
	// works, and where that is not known.
	Problem string `json:"problem,omitempty"`
	Fix     string `json:"fix,omitempty"`
	// Note is why it is not known.
	Note string `json:"note,omitempty"`
}

// wantLease is the Lease of the operator, for a reader.
func wantLease(namespace string) objects.Want {
	return objects.Want{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease", Namespace: namespace,
		Names: []string{status.OperatorName}, Optional: true}
}

// operatorOf judges the Lease; nil is none. An operator is silent if it should have renewed the Lease and has not, also
// by a clock that differs from its own.
func operatorOf(lease *coordinationv1.Lease, namespace string, now time.Time) Operator {
	if lease == nil {
		return Operator{}
	}
	o := Operator{Heard: lease.CreationTimestamp.UTC()} // the operator makes the Lease before it renews it
	if t := lease.Spec.RenewTime; t != nil {
		o.Heard = t.UTC()
	}
	var lasts time.Duration
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		lasts = time.Duration(*s) * time.Second
	}
	if silent := now.Sub(o.Heard); !o.Heard.IsZero() && silent > lasts+heartbeat.Tolerance {
		o.Problem = fmt.Sprintf("the operator in namespace %s has been silent for %s; the status below is outdated",
			namespace, duration.HumanDuration(silent))
		o.Fix = fmt.Sprintf("check its Pods and their logs: oc -n %s get deployment,pods,lease", namespace)
	}
	return o
}

// NoteAbsence is for a cluster that is read as a whole: without a Lease and without a word of the operator, there is
// none in the namespace.
func (f *Fleet) NoteAbsence(namespace string) {
	if f.Operator == (Operator{}) && len(f.Conditions) == 0 {
		f.Operator = Operator{
			Problem: fmt.Sprintf("no operator in namespace %s (found neither its Lease %s nor a WindowsNodesStatus)",
				namespace, status.OperatorName),
			Fix: "give the operator's namespace with -n, or install the operator (docs/install.md)",
		}
	}
}

// longestSaid is how much text of a kubelet about itself is shown, in bytes.
const longestSaid = 200

// noteReady notes whether the Node is Ready. A node that is updated has no other message.
func (r *Row) noteReady(node windowsnode.Node) {
	c := node.KubeletCondition
	if r.Ready = c.Status; r.IsReady() || r.State != nodestate.Updated || r.Fix != "" {
		return
	}
	why := bundle.BoundedText(cmp.Or(c.Message, c.Reason), longestSaid)
	r.Message = "the Node has not been Ready since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
	if why != "" {
		r.Message += ": " + why
	}
	r.Fix = `check that the host is up, and that its services kubelet and containerd are running; logs: C:\var\log`
}

// IsReady reports whether the Node is Ready, as far as is known: a Node of a file may have no such condition.
func (r Row) IsReady() bool { return r.Ready == "" || r.Ready == corev1.ConditionTrue }
