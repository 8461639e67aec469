package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/steps"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/controller/windowsnode/heartbeat"
)

// Counters receives the numbers for Prometheus. metrics.Counters implements it.
type Counters interface {
	// AddPublished counts bytes that were written for nodes.
	AddPublished(bytes int)
	// SetUrgentHeld sets, by the name of each urgent input, how many nodes it cannot reach and when it expires.
	SetUrgentHeld(held map[string]status.UrgentHeld)
	// SetWarnings sets the number of warnings about the inputs, by reason.
	SetWarnings(found map[string]int)
	// SetLoginKeys sets how many nodes accept the operator's current key, an older one, or an unknown one. The keys of the
	// map are current, older and unknown.
	SetLoginKeys(nodes map[string]int)
}

// Controller renders and publishes the bundles of all joined nodes, and gives nodes their turns.
type Controller struct {
	// Inputs reads the inputs. Wants lists the objects that Inputs reads.
	Inputs func(context.Context) (*desired.Hosts, error)
	Wants  []base.Want
	// Keys signs the annotation desired-bundle of each Node.
	Keys *signing.Keys
	// Known is Publisher.Known of package layers: it returns a function that reports whether the operator has recorded a
	// host for a Node.
	Known func(ctx context.Context, live bool) (func(name string, uid types.UID) bool, error)
	// Executables chooses the executables of the operator for a version of Kubernetes; nil where nothing copies them.
	Executables func(*desired.Hosts) bundle.Digest
	// Servers returns the version of each API server.
	Servers func(context.Context) ([]string, error)
	// Deployment is the object of events about the whole fleet, in the namespace of the operator.
	Deployment *corev1.ObjectReference
	// Upgrade is notified which nodes are being changed, and which block the next minor update of the cluster.
	Upgrade *status.Upgrade
	// Unjoined are the hosts that have not joined, and Expected the conditions that the operator always gives.
	Unjoined Unjoined
	Expected []string
	// Counters receives the metrics of the rollout.
	Counters Counters
	// Silence returns how long a node agent has been silent. Heartbeats knows which nodes have a wrong clock.
	Silence    windowsnode.Silence
	Heartbeats *heartbeat.Watch
	// HostClocks returns the hosts whose clocks differ, by address; nil where the operator reaches none.
	HostClocks func() []heartbeat.Skew
	// Login knows the key with which the operator logs in to hosts; nil where it reaches none.
	Login LoginKey
	// Now is the time of day, Elapsed a monotonic clock.
	Now     func() time.Time
	Elapsed func() time.Duration
	Log     logr.Logger
}

// Unjoined knows which hosts have not joined. Nothing is decided by it.
type Unjoined interface {
	// UnjoinedHostsFunc returns a function that lists the hosts of the inputs that have not joined or are being removed.
	UnjoinedHostsFunc(*desired.Hosts) func() []status.Host
	// NodeWork returns the current work on the host of a node; false if there is none.
	NodeWork(node string) (status.Host, bool)
	// LoginProblem returns why the operator could not log in to the host of a node with another key or account; false
	// if nothing is wrong.
	LoginProblem(node string) (status.Host, bool)
	// OnChange registers a function that is called when one of these answers changes.
	OnChange(func())
	// OnStep registers a function that is called when a host reaches its next step. Only its message has changed then.
	OnStep(func())
}

// SetupWithManager watches every kind of input, published objects, and the keys that sign.
func (c *Controller) SetupWithManager(ctx context.Context, m base.Manager) error {
	namespace := c.Deployment.Namespace
	published, err := newLayerCache(m, namespace)
	if err != nil {
		return err
	}
	keys, err := newKeyCache(m, namespace)
	if err != nil {
		return err
	}
	again := base.NewSignal()
	c.Unjoined.OnChange(again.WakeController)
	pauses := m.AddPauses(c.Log.WithName("rollout"), again.WakeController)
	executor, err := c.newExecutor(m, again, pauses.Try)
	if err != nil {
		return err
	}
	publishes, err := c.newPublisher(m, executor, pauses, &layers.Publisher{
		Nodes: m.GetClient(), Decoded: m.Decoded, Layers: published.GetClient(), Live: m.GetAPIReader(),
		Client: m.GetClient(), Known: c.Known, Namespace: namespace, Try: pauses.Try, Now: c.Now,
		Elapsed: c.Elapsed,
	})
	if err != nil {
		return err
	}
	queue, err := m.NewController("rollout", publishes, 1)
	if err != nil {
		return err
	}
	changed := func() {
		publishes.inputs.noteChange() // the inputs are read again, also if there is no object of a kind
		again.WakeController()
	}
	if c.Login != nil {
		c.Login.OnKeyChange(changed)
	}
	m.Kinds.OnChange(changed) // the cached objects of a kind that is refused now do not count
	for _, same := range base.GroupByKind(c.Wants) {
		watch := func() error {
			changed()
			return queue.Watch(publishes.inputs.watchKind(m.GetCache(), base.KindOf(same[0])))
		}
		if err := m.Kinds.WatchWhenServed(ctx, same, watch); err != nil {
			return err
		}
	}
	if err := queue.Watch(again.QueueSource(func(q base.Queue) { publishes.inputs.requestComparison(q) })); err != nil {
		return err
	}
	moved := base.NewSignal()
	c.Unjoined.OnStep(moved.WakeController)
	if err := queue.Watch(moved.QueueSource(func(q base.Queue) { publishes.inputs.requestSteps(q) })); err != nil {
		return err
	}
	if err := queue.Watch(publishes.inputs.watchKeys(keys)); err != nil {
		return err
	}
	for _, object := range publishedObjects() {
		if err := queue.Watch(publishes.inputs.watchPublished(published.GetCache(), object)); err != nil {
			return err
		}
	}
	return nil
}

// newExecutor returns what makes the steps of the rollout, with what drains nodes. Changed is signalled when a drain
// has got further.
func (c *Controller) newExecutor(m base.Manager, changed base.Signal, try tryFunc) (*steps.Executor, error) {
	clients, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	recorder := m.GetEventRecorder(c.Deployment.Name)
	drained := &drains.Drains{Drainer: drain.Drainer{Client: clients}, Live: m.GetAPIReader(), Events: recorder,
		Changed: changed.WakeController}
	if err := drained.SetupWithManager(m); err != nil {
		return nil, err
	}
	return &steps.Executor{
		Nodes: m.Kinds.WatchedClient(m.GetClient()), Decoded: m.Decoded, Live: m.GetAPIReader(), Client: m.GetClient(),
		Pods: clients, Drains: drained, Notary: c.Keys,
		Namespace: c.Deployment.Namespace, Deployment: c.Deployment, Events: recorder, Try: try,
		Layers: &layers.Cache{Live: m.GetAPIReader(), Namespace: c.Deployment.Namespace},
		Log:    c.Log.WithName("rollout"), Now: c.Now, Elapsed: c.Elapsed, Heartbeats: c.Silence,
	}, nil
}

// newPublisher returns the reconciler.
func (c *Controller) newPublisher(m base.Manager, executor *steps.Executor, pauses *base.Pauses,
	to *layers.Publisher) (*publisher, error) {
	renders, err := registerRenderCounter()
	if err != nil {
		return nil, err
	}
	log := c.Log.WithName("rollout")
	r := &renderer{
		read: c.Inputs, nodes: m.GetClient(), decoded: m.Decoded, readDesired: windowsnode.VerifyWith(c.Keys.OpenDesired),
		unjoined: c.Unjoined, login: c.Login, executables: c.Executables, servers: c.Servers,
		keeper: &keeper{cache: executor.Layers, readDesired: windowsnode.VerifyWith(c.Keys.OpenNewest), log: log},
		layers: executor.Layers, now: m.Clock().Now, log: log, count: renders,
	}
	reporter := &statusReporter{
		writer: &status.Writer{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: to.Namespace,
			Owner: c.Deployment.Name + "-publish", Now: c.Now, Expected: c.Expected, AddPage: m.Pages.AddPage},
		deployment: c.Deployment, nodes: executor.CachedNodes, events: m.GetEventRecorder(c.Deployment.Name), log: log,
		now: m.Clock().Now, try: pauses.Try,
		counters: c.Counters, upgrade: c.Upgrade, silence: c.Silence, heartbeats: c.Heartbeats,
		hostClocks: c.HostClocks,
	}
	return &publisher{
		inputs: &debouncer{now: m.Clock().Now, settle: settle}, pauses: pauses, now: m.Clock().Now, log: log,
		render: r.renderJoined, publish: countPublished(c.Counters, to.PublishLayers), roll: executor.RunSteps,
		removeConfirmations: removeConfirmations(m.GetClient(), pauses.Try, log), report: reporter.reportOutcome,
	}, nil
}

// tryFunc is Pauses.Try.
type tryFunc = func(ctx context.Context, what string, do func(context.Context) error) error

// recount is how long after an error the Nodes are counted again for the status.
const recount = 10 * time.Second

// recheck is how long after a rendering everything is read and rendered again, although nothing was seen to change.
const recheck = 10 * time.Minute

// recheckServers is the same while an API server is older than the kubelet that nodes get.
const recheckServers = time.Minute

// publisher publishes the bundles of all joined nodes, and gives the nodes their turns. What is rendered is kept until
// an input changes: what nodes report and what others do to published objects is compared with it.
type publisher struct {
	inputs *debouncer
	// pauses are those of each layer, each Node and the status: what fails for one keeps no other one waiting.
	pauses *base.Pauses
	now    func() time.Time
	log    logr.Logger
	// render reads the inputs and renders all nodes, publish writes the layers, roll executes the next steps of the
	// rollout, and report writes status and Events; it returns the delay until the next report.
	render  func(context.Context) (rendering, error)
	publish func(context.Context, []layers.Wanted) (layers.Changes, error)
	roll    func(context.Context, steps.Rendered) (steps.Result, error)
	report  func(context.Context, outcome) (time.Duration, error)
	// removeConfirmations removes from Nodes the confirmations that nothing waits for. It returns those of which it
	// could not.
	removeConfirmations func(context.Context, []windowsnode.Node) []windowsnode.Node

	kept *rendering
	// last is the last outcome, while its rendering is kept.
	last *outcome
	// used are the Nodes whose confirmations nothing waits for.
	used []windowsnode.Node
	// compared is when the nodes were last compared with their wanted bundles, comparedNodes how many there were.
	compared      time.Time
	comparedNodes int
	// urgent are the bundles of steps.Result.Urgent: their layers are wanted as those of the rendering are.
	urgent []layers.Wanted
}

// outcome is the result of a call of Reconcile. Fresh reports whether the inputs were rendered by this call.
type outcome struct {
	rendering
	fresh bool
	// err is why not everything is published.
	err error
	// rollout is where the fleet is, rollErr why no step was made.
	rollout steps.Result
	rollErr error
	// damaged are the names of Secrets of layers that were not what was published, and were replaced.
	damaged []string
}

// Reconcile publishes what differs. Inputs that are refused leave everything as it is published. Its error is why
// nothing was done; failures of single layers or Nodes are in the status, and are retried.
func (p *publisher) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req == stepsOfHosts {
		return p.reportSteps(ctx)
	}
	if wait := p.inputs.untilSettled(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	fresh := p.inputs.takeChange() || p.kept == nil || p.now().Sub(p.kept.at) >= p.kept.validFor()
	if wait := p.untilComparison(); wait > 0 && !fresh {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	p.pauses.BeginPass()
	if fresh {
		p.kept, p.last = nil, nil
		r, err := p.render(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		p.kept, p.used = &r, r.deleted.Used
	}
	if len(p.used) > 0 {
		p.used = p.removeConfirmations(ctx, p.used)
	}
	now := p.publishAndRoll(ctx)
	p.compared, p.comparedNodes = p.now(), len(now.rollout.Nodes)
	now.rendering, now.fresh = *p.kept, fresh
	delay, reportErr := p.report(ctx, now)
	now.fresh, now.damaged = false, nil
	p.last = &now
	if err := errors.Join(ignorePartial(now.err), now.rollErr); err != nil {
		return reconcile.Result{}, err
	}
	if reportErr != nil { // it delays nothing else
		p.log.Error(reportErr, "reporting the status")
		delay = recount
	}
	requeueAfter := max(p.kept.validFor()-p.now().Sub(p.kept.at), 0)
	for _, sooner := range []time.Duration{now.rollout.Again, delay, p.pauses.NextTry()} {
		if sooner > 0 {
			requeueAfter = min(requeueAfter, sooner)
		}
	}
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// reportSteps reports the progress of hosts that join. Nothing else has changed.
func (p *publisher) reportSteps(ctx context.Context) (reconcile.Result, error) {
	if p.last == nil { // the next rendering reports it
		return reconcile.Result{}, nil
	}
	p.pauses.BeginPass()
	delay, err := p.report(ctx, *p.last)
	if err != nil {
		p.log.Error(err, "writing the progress of hosts")
		delay = recount
	}
	if next := p.pauses.NextTry(); next > 0 && (delay == 0 || next < delay) {
		delay = next
	}
	return reconcile.Result{RequeueAfter: delay}, nil
}

// publishAndRoll publishes the layers, and makes the next steps of the rollout.
func (p *publisher) publishAndRoll(ctx context.Context) outcome {
	changes, err := p.publish(ctx, p.kept.wantedLayers(p.urgent))
	result, rollErr := p.roll(ctx, p.kept.rolloutInput(err, p.urgent))
	// urgent layers are made for the layers of nodes, so they are known only now
	if len(result.Unready) > 0 && ignorePartial(err) == nil {
		urgent := slices.Concat(p.urgent, result.Unready)
		more, failed := p.publish(ctx, p.kept.wantedLayers(urgent))
		changes.Create, changes.Damaged, err = append(changes.Create, more.Create...),
			append(changes.Damaged, more.Damaged...), failed
		if ignorePartial(err) == nil {
			result, rollErr = p.roll(ctx, p.kept.rolloutInput(err, urgent))
		}
	}
	if rollErr == nil && result.Failed == nil {
		p.urgent = result.Urgent
	}
	if !changes.IsZero() || result.Published > 0 {
		p.log.Info("published", "nodes", result.Published, "secrets", len(changes.Create), "deleted",
			len(changes.Delete), "checked", len(changes.Check))
	}
	return outcome{err: err, rollout: result, rollErr: rollErr, damaged: changes.Damaged}
}

// ignorePartial returns an error of publish that is about all layers; nil if it is about some, whose pauses are their own.
func ignorePartial(err error) error {
	if errors.As(err, new(*layers.UnwrittenError)) {
		return nil
	}
	return err
}
