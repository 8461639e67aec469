package configure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// Counters are the metrics of joins. metrics.Counters implements them.
type Counters interface {
	// CountNode counts a Node whose host has joined, CountMachine a Machine, and how long that took.
	CountNode(backing string, took time.Duration)
	CountMachine(took time.Duration)
	// CountFailure counts a failed step of a join.
	CountFailure(reason string)
}

// Joiner makes hosts nodes. It does not remember the steps of a join: it reads them from the Node and the host.
type Joiner struct {
	// Reader is a cache of Windows Nodes, unstructured.
	Reader client.Reader
	Client client.Client
	Inputs Inputs
	Hosts  *hosts.Hosts
	Login  *hosts.Login
	Checks *Checks
	// Executables are those that hosts get.
	Executables *Executables
	// Version is that of the operator.
	Version string
	Log     logr.Logger
	Now     func() time.Time
	// Elapsed is a monotonic clock.
	Elapsed func() time.Duration
	// Silence is what the operator has observed of the node agents.
	Silence windowsnode.Silence
	// ReadDesired returns the desired state of a Node that this operator has signed; nil knows of none.
	ReadDesired windowsnode.DesiredReader
	// Random makes the salt of encrypted user names.
	Random func([]byte) (int, error)
	// Unjoined records the progress of each host.
	Unjoined *Unjoined
	// Counters count joins and failures.
	Counters Counters
	// BeforeMachineJoins is called with the name of a Machine before its Node is marked as joined, and again after an
	// error. What came after the mark would be lost with the operator: only one call sees that a node has joined.
	BeforeMachineJoins func(ctx context.Context, machine string) error

	// unregistered is how long hosts have had the join-stage bundle and no Node.
	unregistered Sightings
	// pulling is how long new nodes have waited for their pinned images.
	pulling Sightings
	// explained has the last findings of hosts that do not join.
	explained explanations
}

// ErrNotListed means that the host has no Machine and no entry in windows-instances, so its account is not known.
var ErrNotListed = errors.New("no Machine and no entry of windows-instances is for this node, so its account is not " +
	"known; start the service " + bundle.AgentService + " on the host")

// HostOfNode returns the host of a node.
func (j *Joiner) HostOfNode(ctx context.Context, name string) (Host, error) {
	inputs, err := j.Inputs(ctx)
	if err != nil {
		return Host{}, err
	}
	i := slices.IndexFunc(inputs.All, func(h render.Node) bool { return h.Name == name })
	if i < 0 {
		return Host{}, ErrNotListed
	}
	h := Host{Joiner: j, Node: inputs.All[i], Wanted: inputs}
	if LoginAccount(h.Node, inputs.Cluster.Platform) == "" {
		return Host{}, ErrNotListed
	}
	return h, nil
}

// Ref names a host by the object that asks for it: a Machine, or an entry of windows-instances.
type Ref struct{ Machine, Address string }

func (r Ref) matchesHost(n render.Node) bool {
	if r.Machine != "" {
		return n.MachineName == r.Machine
	}
	return n.Backing == render.BackingInstance && n.Address == r.Address
}

// JoinHost does the next steps for a host.
func (j *Joiner) JoinHost(ctx context.Context, ref Ref) (Progress, error) {
	name := cmp.Or(ref.Machine, ref.Address)
	defer j.Unjoined.EndStep(name)
	p, err := j.continueJoin(remote.WithSteps(ctx, func(s remote.Step) { j.Unjoined.NoteStep(name, s) }), ref)
	if err == nil && p.State == StateFailed {
		j.Counters.CountFailure(p.Reason)
	}
	return p, err
}

func (j *Joiner) continueJoin(ctx context.Context, ref Ref) (Progress, error) {
	inputs, err := j.Inputs(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("reading the inputs: %w", err)
	}
	i := slices.IndexFunc(inputs.All, ref.matchesHost)
	if p, ok := unusableEntry(inputs, ref); ok && (i < 0 || inputs.All[i].Name == "") {
		return p, nil
	}
	if i < 0 {
		return Progress{State: StateGone}, nil
	}
	h := Host{Joiner: j, Wanted: inputs, Node: inputs.All[i]}
	waiting, err := h.waitingNodes(ctx)
	if err != nil {
		return Progress{}, err
	}
	wanted := h.wantedNodes(waiting)
	if len(waiting) > 0 && len(wanted) == 0 {
		// The setting that adopts all nodes does not change the Node.
		return Progress{State: StateJoined, Reason: ReasonJoined, Node: h.ClaimedBy, Again: AgainLater}, nil
	}
	if h.Name == "" {
		result, _, err := j.Checks.JudgeCluster(ctx, inputs)
		if err != nil {
			return Progress{}, err
		}
		if p, ok := WaitingFor(result); ok {
			return p, nil
		}
		if p, ok := h.sharesAddress(); ok {
			return p, nil
		}
		if len(wanted) > 0 {
			return h.identifyAdopted(ctx, wanted), nil
		}
		return h.applyHostBundle(ctx), nil
	}
	h.unregistered.ForgetHost(h.recordID())
	node, err := ReadNode(ctx, j.Reader, h.Name)
	if err != nil {
		return Progress{}, client.IgnoreNotFound(err)
	}
	if err := h.keepRecord(ctx); err != nil {
		return Progress{}, err
	}
	decoded := windowsnode.Decode(*node)
	switch {
	case h.IsEnding(decoded):
		return Progress{State: StateJoining, Reason: ReasonCompleting, Node: node.Name, Again: AgainSoon,
			Message: "its entry was added again while the host is cleaned up; it joins when the Node is deleted"}, nil
	case decoded.IsJoined():
		return h.keepJoined(ctx, node)
	}
	return h.completeNode(ctx, decoded)
}

// IsEnding reports whether the agent of a node was told to remove everything from its host. That is never taken back:
// the Node is deleted.
func (j *Joiner) IsEnding(node windowsnode.Node) bool {
	if j.ReadDesired == nil {
		return false
	}
	signed, err := j.ReadDesired(node)
	return err == nil && signed.IsSignedToRemove(node.ID())
}

// unusableEntry returns the problem of an entry of windows-instances that is invalid or whose name cannot be resolved.
func unusableEntry(inputs *desired.Hosts, ref Ref) (Progress, bool) {
	i := slices.IndexFunc(inputs.Instances, func(e gather.Instance) bool {
		return ref.Machine == "" && e.Address == ref.Address
	})
	if i < 0 || !inputs.Instances[i].Skipped && inputs.Instances[i].Finding.Reason != reason.InstanceUnresolvable {
		return Progress{}, false
	}
	f := inputs.Instances[i].Finding
	return Progress{State: StateWaiting, Reason: f.Reason, Message: f.Message, Fix: f.Fix, Again: AgainLater}, true
}

// Host is one host of the inputs.
type Host struct {
	*Joiner
	render.Node
	Wanted *desired.Hosts
}

// applyHostBundle applies the bundle of the host over SSH, if it differs. A host whose Node exists and has no record is
// recorded first.
func (h Host) applyHostBundle(ctx context.Context) Progress {
	w, err := h.ApplyRequest()
	if err != nil {
		return h.progressOfError(err)
	}
	w.MaxImpact, w.Reboot = bundle.ImpactReboot, true
	notFetched := ""
	w.Fetch = h.fetchExecutables(func(why string) { notFetched = why })
	p := h.applyWish(ctx, w)
	p.NotFetched = notFetched
	return p
}

func (h Host) applyWish(ctx context.Context, w hosts.Wish) Progress {
	if h.Name == "" {
		w.Check = func(facts bundle.Facts) error { return h.identifyHost(ctx, w.Target, facts) }
		w.Reset = h.formerNode
	}
	outcome, err := h.Hosts.ApplyBundle(ctx, w)
	if forgotten, wrong := h.forgetsOtherKey(ctx, err); forgotten || wrong != nil {
		err = cmp.Or(wrong, errOtherKey)
	}
	if err != nil {
		return h.progressOfError(err)
	}
	p := h.progressOfOutcome(outcome)
	if p.Reason != ReasonRegistering {
		h.unregistered.ForgetHost(h.recordID())
		if p.State == StateFailed && h.Name == "" {
			p = h.explainFailure(ctx, w, p)
		}
		return p
	}
	return h.awaitNode(ctx, w, p)
}

// formerNode returns the name of the Node that a host with these facts may have been: identifyHost has checked that there
// is no such Node, and that no other host has the name.
func (h Host) formerNode(facts bundle.Facts) string {
	name := NameByFacts(h.Node, facts, h.Wanted.Cluster.Platform)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "" // no Node can have this name
	}
	return name
}

// ApplyRequest returns the request to apply the bundle. The host refuses it if it is not the one of its record
// (CheckFacts).
func (h Host) ApplyRequest() (hosts.Wish, error) {
	target, err := h.Hosts.TargetOf(gather.HostID(h.Node), LoginAccount(h.Node, h.Wanted.Cluster.Platform), h.Address)
	return hosts.Wish{Target: target, Node: h.Node, Inputs: h.Wanted, Check: h.CheckFacts, Fetch: h.fetchExecutables(func(string) {})}, err
}

// progressOfError returns the Progress for an error.
func (h Host) progressOfError(err error) Progress {
	p := ProgressOfError(err)
	p.Node = cmp.Or(p.Node, h.Name, h.ClaimedBy)
	return p
}

// resumeInterrupted resumes a run on the host that an operator began before it was killed, because it blocks the agent.
func (h Host) resumeInterrupted(ctx context.Context) {
	w, err := h.ApplyRequest()
	if err == nil {
		err = h.Hosts.ResumeInterrupted(ctx, w)
	}
	if err != nil {
		h.Log.V(1).Info("looking for an interrupted run", "host", h.ID(), "error", err)
	}
}

// progressOfOutcome returns the Progress of a joining host for an outcome.
func (h Host) progressOfOutcome(o hosts.Outcome) Progress {
	p := Progress{State: StateJoining, Node: h.Name, Again: AgainSoon}
	switch o.Result {
	case protocol.ResultSame, protocol.ResultApplied:
		p.Reason, p.Message = ReasonRegistering,
			"waiting for the Node: the kubelet registers it when its certificate is approved"
		if h.Name != "" {
			p.Reason, p.Message = ReasonCompleting, "waiting for the first report of the node agent"
		}
		if len(o.RebootPending) > 0 {
			p.Reason, p.Message = ReasonRebooting, "the host reboots"
		}
	case protocol.ResultReboot:
		p.Reason, p.Message = ReasonRebooting, "host is rebooting; configuration continues after the reboot"
	case protocol.ResultRolledBack:
		p.State, p.Reason, p.Message, p.Again = StateFailed, ReasonRolledBack,
			"the host was rolled back: "+o.Message, AgainLater
		p.Log = o.Log
		p.Fix = `read the log of the service under C:\var\log on the host, and fix the inputs`
	case protocol.ResultPartial, protocol.ResultRefused, protocol.ResultPlanned, protocol.ResultHandedOver:
		p.State, p.Reason, p.Message, p.Fix = StateFailed, ReasonFailed, o.Message, "it is retried"
	}
	if o.DiskFull {
		p.Fix = "free space on drive C: of the host, or extend the disk; the operator retries"
	}
	return p
}
