// Package controller is the operator: its options, its manager, and the list of its controllers (controllers.go). Each
// controller is a package below, with what it watches and its Reconcile in one file.
//
//	objects of the cluster --watch, cache--> inputs (gather, render) --> rollout --> Secrets, Nodes
//
// What is in the cluster decides. A controller keeps what it has read or rendered until that changes, and what it has
// observed itself, such as for how long a node agent is silent; each is found out again after a restart.
package controller

import (
	"context"
	"net"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/base/policies"
	"wmco/controller/csr"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/inputs/warnings"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
	"wmco/payload"
)

const operatorName = status.OperatorName

// Options are how the operator runs.
type Options struct {
	Config *rest.Config
	// Namespace is that of the operator; empty is gather.OperatorNamespace.
	Namespace string
	// Version is that of the operator, which nodes get as their version when they have joined.
	Version string
	// Pages is where the documents of this release are.
	Pages published.Pages
	// Payload has the digests of the executables.
	Payload payload.Set
	// Environment is that of this process, in which OLM sets the proxy.
	Environment map[string]string
	// HealthAddress and MetricsAddress are host:port; "0" serves nothing there.
	HealthAddress, MetricsAddress string
	// MetricsCertificates is the folder with the certificate of the metrics (metrics.Serving).
	MetricsCertificates string
	// Warnings is where API servers ask what an object will change on the nodes.
	Warnings warnings.Serving
	// SkipNameValidation lets one process run the operator again, as tests do: controller-runtime's metrics know a
	// controller by its name.
	SkipNameValidation bool
	// Resolver looks up instances that are given by name; nil is that of this process.
	Resolver csr.Resolver
	// LeaderElection lets one process of several work.
	LeaderElection bool
	// Lease are the times of leader election; zero are those that OpenShift asks for.
	Lease Lease
	// Hosts reaches hosts over SSH with a Login. Without it, the operator publishes and reaches none.
	Hosts func(*hosts.Login) *hosts.Hosts
	// Traffic returns how many bytes were sent and received over SSH since the process began; nil is none.
	Traffic func() (sent, received int64)
	// Logins returns how often hosts were logged in to over SSH since the process began; nil is none.
	Logins func() int64
	Log    logr.Logger
	// Clock is what everything is decided by, and what all pauses are counted on but those of client-go, of requests
	// and of leader election. It is monotonic. Nil is that of this computer.
	Clock clock.WithTicker
	// Now is the wall clock, which may be set at any time: its times are for people. Nil is that of Clock.
	Now func() time.Time

	// Silence is for how long the agent of a node has been silent; nil is what this process observes.
	Silence windowsnode.Silence
	// heartbeats is what this process observes of the node agents.
	heartbeats *heartbeat.Watch
	// elapsed is how long the operator has run by Clock.
	elapsed func() time.Duration
}

// Run works until the context ends.
func Run(ctx context.Context, o Options) error {
	m, err := New(ctx, o)
	if err != nil {
		return err
	}
	return m.Start(ctx)
}

// New connects to the cluster, and returns the operator, which works once it is started.
func New(ctx context.Context, o Options) (manager.Runnable, error) {
	if o.Namespace == "" {
		o.Namespace = gather.OperatorNamespace
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Now == nil {
		o.Now = o.Clock.Now
	}
	o.elapsed = heartbeat.MonotonicClock(o.Clock)
	o.heartbeats = heartbeat.NewWatch(o.Now, o.elapsed)
	if o.Silence == nil {
		o.Silence = o.heartbeats.SilentFor
	}
	o.Config = base.WithRequestRate(o.Config)
	if err := awaitPredecessor(ctx, o); err != nil {
		return nil, startError("looking for the existing operator", err)
	}
	m, err := newManager(ctx, o)
	if err != nil {
		return nil, startError("starting the operator", err)
	}
	// Before anything else is written. Whoever cannot apply it is told by a condition, once the operator works.
	admission := policies.Policies{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace}
	if err := admission.BindOperator(ctx); err != nil {
		o.Log.Info("no admission policy binds the Secrets that the operator may write", "error", err.Error(),
			"condition", policies.SecretWritesBound)
	}
	if err := admission.LimitPorts(ctx); err != nil {
		o.Log.Info("no NetworkPolicy limits who reaches the ports of the operator", "error", err.Error())
	}
	if o.LeaderElection {
		if err := base.CreateLease(ctx, m.GetClient(),
			types.NamespacedName{Namespace: o.Namespace, Name: operatorName}); err != nil {
			return nil, startError("starting the operator", err)
		}
	}
	key, err := digestKey(ctx, m, o.Namespace)
	if err != nil {
		return nil, startError("starting the operator", err)
	}
	s, err := newShared(m, o, key, admission)
	if err == nil {
		err = addControllers(ctx, m, o, s)
	}
	if err != nil {
		return nil, startError("starting the operator", err)
	}
	return m, nil
}
