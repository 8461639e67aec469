package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/base/skew"
	"wmco/controller/fleet"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
	"wmco/render"
)

// rendering is what the inputs of one moment are for all nodes.
type rendering struct {
	at time.Time
	// wanted are the bundles of the nodes that have joined and whose facts are known. The others keep what they have.
	wanted []layers.Wanted
	// byNode are the same by node, as the rollout reads them at each comparison; nil before the first.
	byNode map[string]layers.Wanted
	// platform and policy are those of the cluster; the settings are refused where the inputs are.
	platform bundle.Platform
	policy   plan.Policy
	closed   func(time.Time) plan.Closed
	// version is the cluster's.
	version string
	// windowsReboots is the setting.
	windowsReboots render.WindowsRebootMode
	// blocking are the findings that keep everything as it is. Nothing is wanted then.
	blocking bundle.Findings
	// refused are nodes whose bundle is refused, each with its most severe finding. What is wrong with one does not
	// concern the others.
	refused []refusedNode
	// unjoined returns the hosts that have not joined; addresses are those of the hosts that have a Node, by its name.
	unjoined func() []status.Host
	// nodeWork returns the current work on the host of a node.
	nodeWork  func(node string) (status.Host, bool)
	addresses map[string]string
	// keys are what the hosts of nodes accept; nil where the operator reaches none. LoginProblem returns why a key is
	// not accepted.
	keys         *loginKeys
	loginProblem func(node string) (status.Host, bool)
	// provenance is steps.Rendered.Provenance.
	provenance func(node string) bundle.Provenance
	// urgent finds what must not wait for nodes with a cluster layer.
	urgent func(bundle.Layer) (steps.Urgent, error)
	// warnings are the findings that keep nothing from anything.
	warnings bundle.Findings
	// deleted are the inputs that are gone, and the nodes that keep what they have until that is confirmed.
	deleted deletions.Found
}

type refusedNode struct {
	name string
	bundle.Finding
}

// renderer renders all nodes at once.
type renderer struct {
	read    func(context.Context) (*desired.Hosts, error)
	nodes   client.Reader
	decoded *nodelist.Cache
	// readDesired returns the desired state of a Node that this operator has signed.
	readDesired windowsnode.DesiredReader
	// unjoined knows which hosts have not joined.
	unjoined Unjoined
	// login knows the key with which the operator logs in; nil where it reaches no hosts.
	login LoginKey
	// executables chooses those of the operator for the cluster, nil where none are copied. keeper is
	// for nodes that do not have them yet.
	executables func(*desired.Hosts) bundle.Digest
	keeper      *keeper
	// layers are those that nodes have and get.
	layers *layers.Cache
	// servers returns the version of each API server.
	servers func(context.Context) ([]string, error)
	now     func() time.Time
	log     logr.Logger
	count   prometheus.Counter
}

func newRenderCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "wmco_renders_total",
		Help: "How often the inputs were read and the bundles of all Windows nodes rendered."})
}

// registerRenderCounter registers the counter of renderings.
func registerRenderCounter() (prometheus.Counter, error) {
	renders := newRenderCounter()
	if err := registry.Registry.Register(renders); err != nil {
		var again prometheus.AlreadyRegisteredError
		if !errors.As(err, &again) {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
		renders, _ = again.ExistingCollector.(prometheus.Counter) // an operator ran in this process before
	}
	return renders, nil
}

// renderJoined reads the inputs and renders every node that has joined.
func (r *renderer) renderJoined(ctx context.Context) (rendering, error) {
	r.count.Inc()
	result := rendering{at: r.now()}
	// Before the inputs: these are no older then.
	nodes, err := r.decoded.ListCached(ctx, r.nodes)
	if err != nil {
		return rendering{}, err
	}
	hosts, err := r.read(ctx)
	if err != nil {
		return rendering{}, fmt.Errorf("reading the inputs: %w", err)
	}
	result.platform, result.version, result.policy = hosts.Cluster.Platform, hosts.Cluster.Version,
		fleet.Policy(hosts.Cluster.Settings)
	result.closed = fleet.ClosedWindows(hosts.Cluster.Settings.Rollout)
	result.windowsReboots = hosts.Cluster.Settings.WindowsReboots
	result.unjoined, result.nodeWork, result.addresses = r.unjoined.UnjoinedHostsFunc(hosts), r.unjoined.NodeWork,
		map[string]string{}
	for _, n := range hosts.All {
		result.addresses[n.Name] = n.Address
	}
	result.keys, result.loginProblem = readLoginKeys(r.login, hosts), r.unjoined.LoginProblem
	result.blocking = desired.BlockingFindings(hosts.Findings)
	if len(result.blocking) == 0 {
		if result.blocking, err = r.checkVersionSkew(ctx, hosts.Cluster.KubeletVersion()); err != nil {
			return rendering{}, err
		}
	}
	if len(result.blocking) > 0 {
		r.log.Info(inputsRefused, "reason", result.blocking[0].Reason, "message",
			findingSentence(result.blocking[0]))
		return result, nil
	}
	result.deleted = r.findDeleted(hosts, nodes)
	list, findings, err := hosts.RenderBundlesSharing(asJoinedHosts(result.deleted, hosts.ListJoined()),
		r.layers.LookupLayer)
	if err != nil {
		return rendering{}, err
	}
	result.warnings = warningsOf(hosts.MarkAccepted(findings))
	var executables bundle.Digest
	if r.executables != nil {
		executables = r.executables(hosts)
	}
	kept := r.keeper.keepWaitingBundles(ctx, list, nodes, executables)
	dropProvenance(list, kept)
	result.provenance = provenanceFunc(hosts, result.deleted)
	result.urgent = func(has bundle.Layer) (steps.Urgent, error) { return urgentFor(hosts, has) }
	if err := result.packBundles(r.layers, list); err != nil {
		return rendering{}, err
	}
	result.nameUnrendered(hosts)
	inputs, from := deletions.BundleInputMarks(hosts), digestsOf(nodes)
	for i, w := range result.wanted {
		w.Inputs, w.Payload, w.From = inputs, executables, from[w.Node]
		if d, ok := kept[w.Node]; ok {
			w.Inputs, w.Payload, w.PayloadKept = inputsOfKeptBundle(inputs, d), d.Payload, true
		}
		result.wanted[i] = w
	}
	r.logRefused(result)
	return result, nil
}

func (r *renderer) logRefused(result rendering) {
	for _, n := range result.refused {
		r.log.Info("the bundle of a node is refused, its published one stays", "node", n.name, "reason",
			n.Reason, "message", findingSentence(n.Finding))
	}
}

// dropProvenance drops the provenance of bundles, which takes much memory for many nodes. Nodes that keep their
// published bundle share theirs.
func dropProvenance(list []desired.Rendered, kept map[string]published.Desired) {
	for i, n := range list {
		if _, ok := kept[n.Node.Name]; !ok {
			list[i].Bundle.Provenance = nil
		}
	}
}

// provenanceFunc returns what renders the bundle of a node again for its provenance, which is nil where there is none.
func provenanceFunc(hosts *desired.Hosts, deleted deletions.Found) func(node string) bundle.Provenance {
	return func(node string) bundle.Provenance {
		joined := hosts.ListJoined()
		i := slices.IndexFunc(joined, func(n render.Node) bool { return n.Name == node })
		if i < 0 {
			return nil
		}
		return hosts.RenderProvenance(deleted.AsJoinedHost(joined[i]))
	}
}

// checkVersionSkew returns why that kubelet may not be published, empty if it may: no API server may be older.
func (r *renderer) checkVersionSkew(ctx context.Context, kubelet string) (bundle.Findings, error) {
	versions, err := r.servers(ctx)
	if apierrors.IsForbidden(err) {
		return bundle.Findings{skew.MayNotAsk(err)}, nil
	}
	if err != nil {
		return nil, err
	}
	if f, ok := skew.CheckKubelet(kubelet, versions); !ok {
		return bundle.Findings{f}, nil
	}
	return nil, nil
}

// validFor is how long a rendering serves although nothing was seen to change. API servers that are updated send no
// event.
func (r rendering) validFor() time.Duration {
	if len(r.blocking) > 0 && (r.blocking[0].Reason == reason.KubeletTooNew ||
		r.blocking[0].Reason == reason.APIServerVersionUnknown) {
		return recheckServers
	}
	return recheck
}

// digestsOf returns what of each Node bundles are rendered from, by name.
func digestsOf(nodes []windowsnode.Node) map[string]bundle.Digest {
	all := map[string]bundle.Digest{}
	for _, n := range nodes {
		all[n.Name] = digestOfNode(n)
	}
	return all
}

// digestOfNode is the same for one Node.
func digestOfNode(n windowsnode.Node) bundle.Digest {
	text, _ := json.Marshal(inputOfNode(n)) // of strings and facts
	return bundle.Of(text)
}

// packBundles packs the bundles of nodes. A bundle that is refused, or that is too large to be published, is left out
// and named.
func (r *rendering) packBundles(cache *layers.Cache, list []desired.Rendered) error {
	r.wanted = slices.Grow(r.wanted, len(list))
	for _, n := range list {
		name := n.Node.Name
		if n.Own.Refused() {
			r.refused = append(r.refused, refusedNode{name, n.Own.Sorted()[0]})
			continue
		}
		if r.deleted.KeepsPublished(name) {
			continue
		}
		switch w, err := cache.PackWanted(name, n.Bundle.Bundle, n.Bundle.ClusterDigest, n.Bundle.NodeDigest); {
		case errors.Is(err, archive.ErrTooLarge):
			r.refused = append(r.refused, refusedNode{name, tooLargeFinding(name, err)})
		case err != nil:
			return fmt.Errorf("packing the bundle of %s: %w", name, err)
		default:
			w.Target = plan.TargetDigest(n.Bundle.ClusterDigest, n.Bundle.Bundle.Node)
			r.wanted = append(r.wanted, w)
		}
	}
	return nil
}

// nameUnrendered names the nodes that keep their bundles because nothing is rendered for them: those whose reported
// facts are not used, and those of Machines that cannot be listed.
func (r *rendering) nameUnrendered(hosts *desired.Hosts) {
	unused, machines := map[string]bundle.Finding{}, -1
	for i, f := range hosts.Findings {
		switch f.Reason {
		case reason.FactsContradicted, reason.FactsUnmatched:
			unused[f.Node] = f
		case reason.MachinesRefused:
			machines = i
		}
	}
	for _, n := range hosts.All {
		of, recorded := hosts.Records.RecordOfNode(n.Name)
		if f, ok := unused[n.Name]; ok && recorded && n.Facts.IsZero() {
			r.refused = append(r.refused, refusedNode{n.Name, f})
		} else if machines >= 0 && recorded && of.Machine != "" && n.Unconfirmed {
			r.refused = append(r.refused, refusedNode{n.Name, hosts.Findings[machines]})
		}
	}
}

func tooLargeFinding(node string, err error) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.BundleTooLarge, Node: node,
		Object:  bundle.Ref{Kind: "Node", Name: node},
		Message: err.Error(), Fix: "make the inputs of the node smaller, such as mirror sets, trusted CAs and what the host reports about itself",
	}
}

// urgentFor returns what of a rendering must not wait for nodes with a cluster layer.
func urgentFor(hosts *desired.Hosts, has bundle.Layer) (steps.Urgent, error) {
	found, err := hosts.UrgentInputs(has)
	if err != nil {
		return steps.Urgent{}, err
	}
	u := steps.Urgent{Layer: found.Layer}
	for _, i := range found.Inputs {
		u.Inputs = append(u.Inputs, plan.UrgentInput{Name: string(i.Name), Expires: i.Expires, Text: i.String()})
	}
	if n := len(found.Left); n > 0 {
		u.Mixed = "the pull secret for the mirrors of " + found.Left[0] + countMoreText(n-1, "registry host")
	}
	return u, nil
}

// wantedLayers are the layers to publish, with urgent ones. The list is only read.
func (r *rendering) wantedLayers(urgent []layers.Wanted) []layers.Wanted {
	if len(urgent) == 0 {
		return r.wanted
	}
	return slices.Concat(r.wanted, urgent)
}

// rolloutInput is what the rollout is about. Unpublished is why not all layers are published, ready are urgent bundles
// whose layers are.
func (r *rendering) rolloutInput(unpublished error, ready []layers.Wanted) steps.Rendered {
	if r.byNode == nil {
		r.byNode = make(map[string]layers.Wanted, len(r.wanted))
		for i := range r.wanted {
			r.byNode[r.wanted[i].Node] = r.wanted[i]
		}
	}
	x := steps.Rendered{Wanted: r.byNode, Platform: r.platform, Policy: r.policy, Closed: r.closed,
		Provenance: r.provenance, Urgent: r.urgent, Ready: map[bundle.Digest]bool{}, From: digestOfNode}
	if unpublished != nil {
		x.Held = func(w layers.Wanted) bool { return !layers.IsPublished(w, unpublished) }
	}
	for _, w := range ready {
		x.Ready[w.Bundle] = true
	}
	return x
}

type publishFunc = func(context.Context, []layers.Wanted) (layers.Changes, error)

// countPublished counts the bytes that are published. A call that fails in the middle is repeated with the rest,
// and counts that twice.
func countPublished(counters Counters, do publishFunc) publishFunc {
	return func(ctx context.Context, wanted []layers.Wanted) (layers.Changes, error) {
		changes, err := do(ctx, wanted)
		n := 0
		for _, secret := range changes.Create {
			n += len(secret.Data)
		}
		counters.AddPublished(n)
		return changes, err
	}
}
