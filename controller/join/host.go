package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/desired"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/controller/keys/username"
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

// State is where a host is on its way to becoming a node.
type State string

const (
	// StateJoined means that the node is complete.
	StateJoined State = "Joined"
	// StateJoining means that something is on its way, and nothing went wrong.
	StateJoining State = "Joining"
	// StateWaiting means that somebody else has to do something first.
	StateWaiting State = "Waiting"
	// StateFailed means that a step failed; it is tried again.
	StateFailed State = "Failed"
	// StateGone means that the inputs do not have the host.
	StateGone State = "Gone"
)

// Progress is what a call has found and done. Message and Fix are for people.
type Progress struct {
	State   State
	Reason  string
	Message string
	Fix     string
	// Finished reports whether this call completed the node.
	Finished bool
	// Node is the name of the host's Node, empty before there is one.
	Node string
	// Again is when to call again although nothing was seen to change; zero is never.
	Again time.Duration
	// Err is why a step failed.
	Err error
}

// Reasons of a Progress, beside those of findings.
const (
	ReasonJoined       = "Joined"
	ReasonUnreachable  = "Unreachable"
	ReasonLoginRefused = "LoginRefused"
	ReasonHostKey      = "HostKeyChanged"
	ReasonRolledBack   = "RolledBack"
	ReasonRebooting    = "Rebooting"
	ReasonRegistering  = "WaitingForNode"
	ReasonCompleting   = "Completing"
	ReasonSameHost     = "SameHost"
	ReasonNameTaken    = "NodeNameTaken"
	ReasonFailed       = "JoinFailed"
)

// FailureReasons returns those of a host that could not be brought further. Those of findings and of node agents are besides.
func FailureReasons() []string {
	return []string{ReasonUnreachable, ReasonLoginRefused, ReasonHostKey, ReasonRolledBack, ReasonSameHost, ReasonNameTaken, ReasonExpired, ReasonFailed}
}

// Pauses between two calls.
const (
	// againSoon is for what another program does meanwhile: a kubelet registers, a machine boots.
	againSoon = 15 * time.Second
	// againDrain is for pods that end.
	againDrain = 5 * time.Second
	// againLater is for what a person has to do.
	againLater = time.Minute
)

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
	case applier.ResultPartial, applier.ResultRefused, applier.ResultPlanned:
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

// refusal is a reason of this package with what to do.
type refusal struct{ reason, message, fix string }

func (e *refusal) Error() string { return e.message }

// failed says what an error means.
func failed(err error) Progress {
	p := Progress{State: StateFailed, Reason: ReasonFailed, Message: err.Error(), Fix: remote.Fix(err), Again: againLater, Err: err}
	var unreachable *remote.UnreachableError
	var auth *remote.AuthError
	var key *remote.HostKeyError
	var refused *hosts.RefusedError
	var own *refusal
	switch {
	case apierrors.IsConflict(err):
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: "the Node has changed meanwhile", Again: againSoon}
	case errors.Is(err, hosts.ErrBusy):
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: err.Error(), Again: againSoon}
	case errors.As(err, &own):
		p.Reason, p.Fix = own.reason, own.fix
	case errors.As(err, &refused):
		p.State, p.Reason, p.Fix = StateWaiting, refused.Findings.Sorted()[0].Reason, refused.Fix()
	case errors.As(err, &key):
		p.Reason = ReasonHostKey
	case errors.As(err, &auth):
		p.Reason = ReasonLoginRefused
	case errors.As(err, &unreachable):
		// A new machine may still boot, or run its user data.
		p.Reason, p.Again = ReasonUnreachable, againSoon
	}
	return p
}

// complete is for a host that has a Node.
func (h host) complete(ctx context.Context, node *corev1.Node) (Progress, error) {
	if IsJoined(node.Annotations) {
		return Progress{State: StateJoined, Reason: ReasonJoined, Node: node.Name}, nil
	}
	if done, err := h.mark(ctx, node); done || err != nil {
		return Progress{State: StateJoining, Reason: ReasonCompleting, Message: "the Node is labelled, and cordoned until it has joined", Node: node.Name, Again: againSoon}, err
	}
	row := fleet.Of(*node, h.Now())
	if row.Reported.IsZero() || row.State == fleet.StateSilent {
		return h.bring(ctx), nil
	}
	whole, err := h.isWhole(node, row)
	if err != nil || !whole {
		p := Progress{State: StateJoining, Reason: ReasonCompleting, Message: "the node agent follows the cluster; " + h.lacks(node, row), Node: node.Name, Again: againSoon}
		if row.State == fleet.StateFailed {
			h.takeUp(ctx)
			p.State, p.Reason, p.Message, p.Fix = StateFailed, row.Reason, row.Message, row.Fix
		}
		return p, err
	}
	if err := h.finish(ctx, node); err != nil {
		return Progress{}, err
	}
	h.Counters.Node(string(h.Backing), h.Now().Sub(node.CreationTimestamp.Time))
	return Progress{State: StateJoined, Reason: ReasonJoined, Message: "node " + node.Name + " has joined", Node: node.Name, Finished: true}, nil
}

// IsJoined reports whether an operator has finished with a node, by the Node's annotations.
func IsJoined(annotations map[string]string) bool {
	return annotations[VersionAnnotation] != "" && annotations[JoiningAnnotation] == ""
}

// isWhole reports whether the node has the bundle that is rendered from its facts, with nothing that waits for its network, and is Ready.
func (h host) isWhole(node *corev1.Node, row fleet.Row) (bool, error) {
	list, _, err := h.inputs.Render([]render.Node{h.Node})
	if err != nil || len(list) == 0 {
		return false, err
	}
	waits := slices.ContainsFunc(list[0].Own, func(f bundle.Finding) bool { return f.Reason == reason.NetworkPending })
	return row.State == fleet.StateCurrent && row.Applied == list[0].Bundle.Digest && !waits && isReady(node), nil
}

// lacks says what a node that is not whole waits for.
func (h host) lacks(node *corev1.Node, row fleet.Row) string {
	switch {
	case h.Subnet == "":
		return "the cluster network has not given it a subnet yet"
	case row.State != fleet.StateCurrent:
		return "its bundle is " + strings.ToLower(string(row.State))
	case !isReady(node):
		return "its kubelet is not Ready yet"
	}
	return "its overlay network is set up"
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// mark labels and cordons a new Node. It reports whether there was anything to write.
func (h host) mark(ctx context.Context, node *corev1.Node) (bool, error) {
	m := marks{labels: map[string]string{RoleLabel: ""}, annotations: map[string]string{}}
	key, findings, err := h.Login.Key(ctx)
	if err != nil || findings.Refused() {
		return false, err
	}
	m.annotations[keys.HashAnnotation] = key.Hash()
	if pin := h.Login.PinOf(h.Address); pin != nil {
		m.annotations[hosts.PinAnnotation], m.annotations[hosts.PinTypeAnnotation] = hosts.EncodeKey(pin), pin.Type()
	}
	if h.Backing == render.BackingInstance {
		m.labels[InstanceLabel], m.annotations[InstanceAnnotation] = valueTrue, h.Address
		if have, err := username.Decrypt(node.Annotations[UsernameAnnotation], key.Text()); err != nil || have != h.Username {
			text, err := username.Encrypt(reader(h.Random), h.Username, key.Text())
			if err != nil {
				return false, fmt.Errorf("encrypting the user name of %s: %w", h.Address, err)
			}
			m.annotations[UsernameAnnotation] = text
		}
	}
	before, err := h.rejoining().of(ctx, node, h.Address)
	if err != nil {
		return false, err
	}
	before.onto(&m, node)
	// A node whose agent has reported was joined by hand (wmco apply): it has pods already. The cordon of an administrator stays theirs.
	if !before.Cordoned && node.Annotations[published.ReportAnnotation] == "" && !node.Spec.Unschedulable {
		m.annotations[JoiningAnnotation], m.cordon = valueTrue, new(true)
	}
	if done, err := h.write(ctx, node, m); done || err != nil || before.Name == "" {
		return done, err
	}
	return false, h.rejoining().forget(ctx, node.Name)
}

// reader makes a reader of a function.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// finish lifts the cordon, if it is the operator's, and writes the version last.
func (h host) finish(ctx context.Context, node *corev1.Node) error {
	m := marks{annotations: map[string]string{VersionAnnotation: h.Version, DesiredVersionAnnotation: h.Version, JoiningAnnotation: ""}}
	if node.Annotations[JoiningAnnotation] != "" {
		m.cordon = new(false)
	}
	_, err := h.write(ctx, node, m)
	return err
}

func (h host) write(ctx context.Context, node *corev1.Node, m marks) (bool, error) {
	patch, err := m.patch(node)
	if err != nil || patch == nil {
		return false, err
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	if err := h.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("writing labels and annotations of Node %s: %w", node.Name, err)
	}
	return true, nil
}

// Text is what people read of a Progress.
func (p Progress) Text() string {
	text := p.Message
	if p.Fix != "" {
		text += "; fix: " + p.Fix
	}
	return published.Shorten(text)
}
