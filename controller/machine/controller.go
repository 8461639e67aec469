// Package machine has the controller that joins the hosts of Machines, and replaces Machines that cannot join.
//
//	Machine, Node --> configure.Joiner --> conditions and Events; a Machine that refuses the login --> deleted, with limits
package machine

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"wmco/controller/base"
	"wmco/controller/configure"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
)

// Reasons of events, those of the existing operator.
const (
	eventMachineSetup           = "MachineSetup"
	eventMachineSetupFailure    = "MachineSetupFailure"
	eventMachineDeleted         = "MachineDeleted"
	eventMachineDeletionFailed  = "MachineDeletionFailed"
	eventMachineDeletionLimited = "MachineDeletionRestricted"
)

// Limits of a Machine's life before it has a Node. They count from when this operator saw first that its host could not
// be joined: the clock of the API server, which wrote when the Machine was created, may be another one, and a Machine
// may have waited for its host.
const (
	// loginWithin is how long the host of a Machine may refuse the login: its user data sets up the SSH server and the
	// key.
	loginWithin = 30 * time.Minute
	// approvedWithin is how long after a Machine's creation the cluster's approver accepts the first request of its
	// kubelet (github.com/openshift/cluster-machine-approver). The Machine is at least as old as what was seen.
	approvedWithin = 2 * time.Hour
)

// ReasonTooOld is that of a Machine that cannot become a node any longer.
const ReasonTooOld = "MachineTooOld"

// Machines makes the hosts of Machines nodes.
type Machines struct {
	Joiner *configure.Joiner
	// Reader is a cache of the Windows Machines, unstructured.
	Reader client.Reader
	// Live reads without a cache what decides about a deletion.
	Live         client.Reader
	Client       client.Client
	Replacements Replacements
	Events       events.EventRecorder
	Log          logr.Logger
	// Now is the wall clock, for figures, Elapsed a monotonic one, which Machines are judged by.
	Now     func() time.Time
	Elapsed func() time.Duration

	// failing is since when the hosts of Machines could not be joined, refusing since when they have refused the login.
	failing, refusing configure.Sightings
	// replacing is held from the look at the other Machines to the deletion: otherwise two workers each see that no
	// other is deleted.
	replacing sync.Mutex
}

// SetupWithManager watches the Machines, and the Nodes whose hosts have yet to join.
func (m *Machines) SetupWithManager(mgr base.Manager) error {
	c, err := mgr.NewHostController("machine", m, base.ParallelHosts)
	if err != nil {
		return err
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), base.NewObject(base.MachineKind()),
		&handler.TypedEnqueueRequestForObject[base.Object]{})); err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Node{},
		handler.TypedEnqueueRequestsFromMapFunc(m.machinesOfNode), configure.UnjoinedNodes()))
}

// machinesOfNode returns the Machine of the Node, and those with an address that it reports: one of them may be its
// own, and has to be asked.
func (m *Machines) machinesOfNode(ctx context.Context, node *corev1.Node) []reconcile.Request {
	list := base.NewList(base.MachineKind())
	if err := m.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return nil
	}
	names, own := base.NodeAddresses(node), m.Joiner.RecordOfNode(ctx, node).Machine
	var requests []reconcile.Request
	for _, machine := range list.Items {
		if own != "" && machine.GetUID() == own ||
			slices.ContainsFunc(base.StatusAddresses(&machine),
				func(a string) bool { return slices.Contains(names, a) }) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machine)})
		}
	}
	return requests
}

// Reconcile does the next steps for one Machine.
func (m *Machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	machine, err := m.readMachine(ctx, req.Name)
	if apierrors.IsNotFound(err) {
		m.Joiner.Unjoined.RecordProgress(req.Name, configure.Progress{State: configure.StateGone})
		m.forgetMachine(req.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	// A Machine that is being deleted is machine-api's: its host is not reached any more.
	if machine.DeletionTimestamp != nil || machine.Labels[configure.LabelIgnore] == configure.ValueTrue {
		m.Joiner.Unjoined.RecordProgress(req.Name, configure.Progress{State: configure.StateLeaving})
		return reconcile.Result{}, nil
	}
	p, err := m.joinMachine(ctx, machine)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case p.State == configure.StateFailed && p.Node == "":
		p = m.judgeFailure(ctx, machine, p)
	case p.State == configure.StateJoined:
		m.forgetMachine(req.Name)
	}
	if p.Finished {
		m.Joiner.Counters.CountMachine(m.Now().Sub(machine.CreationTimestamp.Time))
	}
	m.Joiner.Unjoined.RecordProgress(req.Name, p)
	configure.RecordProgress(m.Events, machineReference(machine), p, eventMachineSetup, eventMachineSetupFailure)
	m.Log.V(1).Info("machine", "name", machine.Name, "state", p.State, "reason", p.Reason)
	return reconcile.Result{RequeueAfter: p.Again}, nil
}

// EndReplacing forgets how many Machines of the MachineSet of this one were replaced, before its Node counts as joined
// (configure.Joiner). If it fails, it is called again.
func (m *Machines) EndReplacing(ctx context.Context, name string) error {
	machine, err := m.readMachine(ctx, name)
	if err != nil {
		return fmt.Errorf("reading Machine %s: %w", name, err)
	}
	i := slices.IndexFunc(machine.OwnerReferences, isMachineSet)
	if i < 0 {
		return nil
	}
	return m.Replacements.resetReplacements(ctx, machine.OwnerReferences[i].Name)
}

// joinMachine does the next steps for the host of a Machine. One that is recorded as a Node which has joined needs no
// inputs. A Machine that machine-api has found a Node for is never replaced, although it is not certain that it is
// its own.
func (m *Machines) joinMachine(ctx context.Context, machine *machinev1beta1.Machine) (configure.Progress, error) {
	records, _, err := m.Joiner.Login.Records.CachedRecords(ctx)
	if err != nil {
		return configure.Progress{}, err
	}
	if r, ok := records.RecordByID(record.OfMachine(machine.UID)); ok && r.Node != "" && r.Address == firstIPv4(machine) {
		node, err := configure.ReadNode(ctx, m.Joiner.Reader, r.Node)
		if err == nil && r.IsNode(node.Name, node.UID) && windowsnode.IsJoined(node.Annotations) {
			return configure.Progress{State: configure.StateJoined, Reason: configure.ReasonJoined,
				Node: node.Name}, nil
		}
		if client.IgnoreNotFound(err) != nil {
			return configure.Progress{}, err
		}
	}
	p, err := m.Joiner.JoinHost(ctx, configure.Ref{Machine: machine.Name})
	if ref := machine.Status.NodeRef; ref != nil {
		p.Node = cmp.Or(p.Node, ref.Name)
	}
	return p, err
}

// firstIPv4 returns the address at which the host of a Machine is reached.
func firstIPv4(machine *machinev1beta1.Machine) string {
	for _, a := range machine.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP && ip.Is4() {
			return a.Address
		}
	}
	return ""
}

func (m *Machines) readMachine(ctx context.Context, name string) (*machinev1beta1.Machine, error) {
	var machine machinev1beta1.Machine
	if err := m.Reader.Get(ctx, client.ObjectKey{Namespace: base.MachinesNamespace, Name: name}, &machine); err != nil {
		return nil, err
	}
	return &machine, nil
}

// forgetMachine ends what was seen of a Machine.
func (m *Machines) forgetMachine(machine string) {
	m.failing.ForgetHost(machine)
	m.refusing.ForgetHost(machine)
}

// judgeFailure decides what becomes of a Machine whose host could not be joined.
func (m *Machines) judgeFailure(ctx context.Context, machine *machinev1beta1.Machine,
	p configure.Progress) configure.Progress {
	// Another Machine may have the name, and another host the address.
	what, now := string(machine.UID)+" "+firstIPv4(machine), m.Elapsed()
	switch {
	case m.failing.SeenFor(machine.Name, what, now) > approvedWithin:
		p.Reason, p.Fix = ReasonTooOld, configure.FixByDeletion(machine)
		p.Message = fmt.Sprintf("the Machine has been without a Node for longer than %s: the cluster's approver "+
			"accepts no first certificate for it any more; last: %s", approvedWithin, p.Message)
		p.Again = configure.AgainLater * 10
	case p.Reason != configure.ReasonLoginRefused:
	case m.refusing.SeenFor(machine.Name, what, now) <= loginWithin:
		p.State, p.Again = configure.StateJoining, configure.AgainSoon
		p.Message = "the host refuses the login, as it does until its user data has run: " + p.Message
	default:
		return m.replaceMachine(ctx, machine, p)
	}
	return p
}

// machineReference names a Machine in an event.
func machineReference(m *machinev1beta1.Machine) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: machinev1beta1.GroupVersion.String(), Kind: "Machine",
		Namespace: m.Namespace, Name: m.Name, UID: m.UID}
}
