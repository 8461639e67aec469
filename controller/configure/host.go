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

// Counters count for Prometheus; metrics.Counters does.
type Counters interface {
	// CountNode notes that the host of a Node has joined, Machine that the host of a Machine has, and how long that
	// took.
	CountNode(backing string, took time.Duration)
	CountMachine(took time.Duration)
	// CountFailure notes a failed attempt to bring a host further.
	CountFailure(reason string)
}

// Joiner makes hosts nodes. It keeps nothing between calls: where a host is on its way is read from its Node and from
// the host.
type Joiner struct {
	// Reader is a cache of Windows Nodes, unstructured.
	Reader client.Reader
	Client client.Client
	Inputs Inputs
	Hosts  *hosts.Hosts
	Login  *hosts.Login
	Checks *Checks
	// Version is that of the operator.
	Version string
	Log     logr.Logger
	Now     func() time.Time
	// Elapsed is a monotonic clock.
	Elapsed func() time.Duration
	// Silence is what the operator has observed of the node agents.
	Silence windowsnode.Silence
	// Random makes the salt of encrypted user names.
	Random func([]byte) (int, error)
	// Unjoined is told how far each host is.
	Unjoined *Unjoined
	// Counters count joins and failures.
	Counters Counters

	// unregistered is since when hosts have had the bundle to join with, and no Node.
	unregistered Sightings
	// pulling is since when new nodes wait for their pinned images.
	pulling Sightings
	// explained is what hosts that do not join lacked when they were asked last.
	explained explanations
}

// ErrNotListed means that no Machine and no entry of windows-instances has the host, so that its account is not known.
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
		// The setting that adopts all is no change of its Node.
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
	if windowsnode.IsJoined(node.Annotations) {
		return h.keepJoined(ctx, node)
	}
	return h.completeNode(ctx, windowsnode.Decode(*node))
}

// unusableEntry returns the problem of an entry of windows-instances that stands for no host, or for one that cannot
// be found.
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

// applyHostBundle applies the bundle of the host over SSH, where it differs. A host whose Node exists and is not
// recorded yet is recorded first.
func (h Host) applyHostBundle(ctx context.Context) Progress {
	w, err := h.ApplyRequest()
	if err != nil {
		return h.progressOfError(err)
	}
	w.MaxImpact, w.Reboot = bundle.ImpactReboot, true
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

// formerNode returns the name of the Node that a host with these facts may have been: identify has seen that there is
// no such Node, and that no other host has the name.
func (h Host) formerNode(facts bundle.Facts) string {
	name := NameByFacts(h.Node, facts, h.Wanted.Cluster.Platform)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "" // it was no Node's
	}
	return name
}

// ApplyRequest is the request for the host, if it is the one of its record.
func (h Host) ApplyRequest() (hosts.Wish, error) {
	target, err := h.Hosts.TargetOf(gather.HostID(h.Node), LoginAccount(h.Node, h.Wanted.Cluster.Platform), h.Address)
	return hosts.Wish{Target: target, Node: h.Node, Inputs: h.Wanted, Check: h.CheckFacts}, err
}

// progressOfError returns what an error means for the host.
func (h Host) progressOfError(err error) Progress {
	p := ProgressOfError(err)
	p.Node = cmp.Or(p.Node, h.Name, h.ClaimedBy)
	return p
}

// resumeInterrupted helps a host on whose agent a run is in the way that another operator has begun, before it was
// killed.
func (h Host) resumeInterrupted(ctx context.Context) {
	w, err := h.ApplyRequest()
	if err == nil {
		err = h.Hosts.ResumeInterrupted(ctx, w)
	}
	if err != nil {
		h.Log.V(1).Info("looking for an interrupted run", "host", h.ID(), "error", err)
	}
}

// progressOfOutcome returns what an outcome means for a host that is not complete.
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
