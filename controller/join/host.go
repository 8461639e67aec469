package join

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier"
	"wmco/bundle"
	"wmco/controller/desired"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/metrics"
	"wmco/render"
	"wmco/render/reason"
)

// Joiner makes hosts nodes. It keeps nothing between calls: where a host is on its way is read from its Node and from the host.
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
	// Random makes the salt of encrypted user names.
	Random func([]byte) (int, error)
	// Unjoined is told how far each host is.
	Unjoined *Unjoined
	// Counters, if set, count joins and failures.
	Counters *metrics.Counters
}

// Ref names a host by the object that asks for it: a Machine, or an entry of windows-instances.
type Ref struct{ Machine, Address string }

func (r Ref) matches(n render.Node) bool {
	if r.Machine != "" {
		return n.MachineName == r.Machine
	}
	return n.Backing == render.BackingInstance && n.Address == r.Address
}

// Join does the next steps for a host.
func (j *Joiner) Join(ctx context.Context, ref Ref) (Progress, error) {
	p, err := j.join(ctx, ref)
	if err == nil && p.State == StateFailed {
		j.Counters.Failure(p.Reason)
	}
	return p, err
}

func (j *Joiner) join(ctx context.Context, ref Ref) (Progress, error) {
	inputs, err := j.Inputs(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("reading the inputs: %w", err)
	}
	i := slices.IndexFunc(inputs.All, ref.matches)
	if p, ok := unusable(inputs, ref); ok && (i < 0 || inputs.All[i].Name == "") {
		return p, nil
	}
	if i < 0 {
		return Progress{State: StateGone}, nil
	}
	h := host{Joiner: j, inputs: inputs, Node: inputs.All[i]}
	if h.Name == "" {
		result, _, err := j.Checks.Of(ctx, inputs)
		if err != nil {
			return Progress{}, err
		}
		if p, ok := waiting(result); ok {
			return p, nil
		}
		return h.bring(ctx), nil
	}
	node, err := readNode(ctx, j.Reader, h.Name)
	if err != nil {
		return Progress{}, client.IgnoreNotFound(err)
	}
	return h.complete(ctx, node)
}

// unusable says what is wrong with an entry of windows-instances that stands for no host, or for one that cannot be found.
func unusable(inputs *desired.Hosts, ref Ref) (Progress, bool) {
	i := slices.IndexFunc(inputs.Instances, func(e gather.Instance) bool { return ref.Machine == "" && e.Address == ref.Address })
	if i < 0 || !inputs.Instances[i].Skipped && inputs.Instances[i].Finding.Reason != reason.InstanceUnresolvable {
		return Progress{}, false
	}
	f := inputs.Instances[i].Finding
	return Progress{State: StateWaiting, Reason: f.Reason, Message: f.Message, Fix: f.Fix, Again: againLater}, true
}

// host is one host of the inputs.
type host struct {
	*Joiner
	render.Node
	inputs *desired.Hosts
}

// bring applies the bundle of the host over SSH, where it differs.
func (h host) bring(ctx context.Context) Progress {
	target, err := h.Hosts.Target(Account(h.Node, h.inputs.Cluster.Platform), h.Address)
	if err != nil {
		return failed(err)
	}
	outcome, err := h.Hosts.Bring(ctx, hosts.Wish{Target: target, Node: h.Node, Inputs: h.inputs, Check: h.check, MaxImpact: bundle.ImpactReboot, Reboot: true})
	if err != nil {
		return failed(err)
	}
	if err := h.claim(ctx, outcome.Facts); err != nil {
		return failed(err)
	}
	return h.judge(outcome)
}

// takeUp helps a host on whose agent a run is in the way that another operator has begun, before it was killed.
func (h host) takeUp(ctx context.Context) {
	target, err := h.Hosts.Target(Account(h.Node, h.inputs.Cluster.Platform), h.Address)
	if err == nil {
		err = h.Hosts.TakeUp(ctx, hosts.Wish{Target: target, Node: h.Node, Inputs: h.inputs})
	}
	if err != nil {
		h.Log.V(1).Info("looking for an interrupted run", "host", h.ID(), "error", err)
	}
}

// claim notes on a Node that it is for this entry, where the addresses of the Node do not say so: the entry is a DNS name, and the host
// itself has said which Node is its own.
func (h host) claim(ctx context.Context, facts bundle.Facts) error {
	if h.Name != "" || h.Backing != render.BackingInstance {
		return nil
	}
	node, err := readNode(ctx, h.Reader, nameOf(h.Node, facts, h.inputs.Cluster.Platform))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !facts.HasAddress(a.Address) {
			return nil // another host's
		}
	}
	_, err = h.write(ctx, node, marks{annotations: map[string]string{InstanceAnnotation: h.Address}})
	return err
}

// judge says what an outcome means for a host that is not complete.
func (h host) judge(o hosts.Outcome) Progress {
	p := Progress{State: StateJoining, Node: h.Name, Again: againSoon}
	switch o.Result {
	case applier.ResultSame, applier.ResultApplied:
		p.Reason, p.Message = ReasonRegistering, "the host has its bundle; its kubelet registers the Node when its certificate is approved"
		if h.Name != "" {
			p.Reason, p.Message = ReasonCompleting, "the host has its bundle; its node agent reports when it follows the cluster"
		}
		if len(o.RebootPending) > 0 {
			p.Reason, p.Message = ReasonRebooting, "the host reboots"
		}
	case applier.ResultReboot:
		p.Reason, p.Message = ReasonRebooting, "the host reboots; the rest follows"
	case applier.ResultRolledBack:
		p.State, p.Reason, p.Message, p.Again = StateFailed, ReasonRolledBack, "the host was rolled back: "+o.Message, againLater
		p.Fix = `read the log of the service under C:\var\log on the host, and fix the inputs`
	case applier.ResultPartial, applier.ResultRefused, applier.ResultPlanned, applier.ResultHandedOver:
		p.State, p.Reason, p.Message, p.Fix = StateFailed, ReasonFailed, o.Message, "it is tried again"
	}
	return p
}

// check refuses a host that is another one's already. It is called with the facts of the host, before anything is changed.
func (h host) check(facts bundle.Facts) error {
	for _, other := range h.inputs.All {
		if other.ID() == h.ID() && other.Address == h.Address {
			continue
		}
		if other.Name == "" && other.Address < h.Address && gathers(facts, other) {
			return &refusal{ReasonSameHost, fmt.Sprintf("%s is the same host as %s, which is in the inputs too", h.Address, other.Address), "remove one of the two entries of windows-instances"}
		}
	}
	if h.Name != "" {
		return nil
	}
	name := nameOf(h.Node, facts, h.inputs.Cluster.Platform)
	if i := slices.IndexFunc(h.inputs.All, func(n render.Node) bool { return n.Name == name && !isHost(n, facts) }); i >= 0 {
		return &refusal{ReasonNameTaken, fmt.Sprintf("the host would register as Node %s, which exists and has other addresses (%s)", name, strings.Join(h.inputs.All[i].Addresses, ", ")),
			"rename the computer; if the Node is what is left of this host, delete the Node"}
	}
	return nil
}

// isHost reports whether all addresses of a Node are the host's.
func isHost(n render.Node, facts bundle.Facts) bool {
	return !slices.ContainsFunc(n.Addresses, func(a string) bool { return !facts.HasAddress(a) })
}

// gathers reports whether the facts have the address or the name of a host.
func gathers(f bundle.Facts, n render.Node) bool {
	if f.HasAddress(n.Address) {
		return true
	}
	return slices.ContainsFunc([]string{f.HostName, f.HostName + "." + f.DNSSuffix}, func(name string) bool { return name != "" && strings.EqualFold(name, n.Address) })
}
