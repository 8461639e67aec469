package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/base/apiservers"
	"wmco/controller/base/policies"
	"wmco/controller/configure"
	"wmco/controller/csr"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hostkeys"
	"wmco/controller/hosts"
	"wmco/controller/inputs"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/controller/inputs/warnings"
	"wmco/controller/instance"
	"wmco/controller/keys/signing"
	"wmco/controller/machine"
	"wmco/controller/metrics"
	"wmco/controller/node"
	"wmco/controller/olm"
	"wmco/controller/prerequisites"
	"wmco/controller/rollout"
	"wmco/controller/status"
	"wmco/controller/userdata"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/drain"
	"wmco/render"
)

// shared is what several controllers are given.
type shared struct {
	reader      *inputs.Reader
	read        func(context.Context) (*desired.Hosts, error)
	signs       *signing.Keys
	records     *hosts.Records
	executables *configure.Executables
	// login reaches hosts; nil where the operator reaches none.
	login *hosts.Login
	// servers are asked for their versions.
	servers   *apiservers.Servers
	admission policies.Policies
	// counters and unjoined are how things go, for people and Prometheus alone.
	counters   *metrics.Counters
	unjoined   *configure.Unjoined
	deployment *corev1.ObjectReference
	// clocks are those of hosts that were changed over SSH.
	clocks *hosts.Clocks
	// upgrade is what OLM is told of the rollout.
	upgrade *status.Upgrade
}

func newShared(m base.Manager, o Options, key bundle.Key, admission policies.Policies) (shared, error) {
	servers, err := apiservers.New(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return shared{}, err
	}
	records := &hosts.Records{Live: m.GetAPIReader(), Client: m.GetClient(), Cache: m.GetClient(),
		Namespace: o.Namespace}
	signs := &signing.Keys{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Now: o.Now}
	watched := m.Kinds.WatchedClient(m.GetClient())
	reader := &inputs.Reader{
		Nodes: func(ctx context.Context) ([]windowsnode.Node, error) { return m.Decoded.ListCached(ctx, watched) },
		Keys:  signs.ReadPublicKeys, Records: records.CachedRecords, Log: o.Log.WithName("inputs"), Cache: watched,
		Namespace: o.Namespace, Resolver: o.Resolver, Now: o.Clock.Now,
		Source: desired.Source{
			Objects: objects.NewCachedClusterReader(watched), Set: o.Payload, Key: key,
			Gather: gather.Options{Namespace: o.Namespace, Complete: true, Environment: o.Environment},
		},
	}
	image := ownImage{Live: m.GetAPIReader(), Namespace: o.Namespace, Pod: o.Environment[podVariable], Log: o.Log.WithName("image")}
	reader.Image = image.ReadImage
	var login *hosts.Login
	if o.Hosts != nil {
		login = &hosts.Login{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Records: records,
			RecordKey: key}
		reader.LoginKey = login.ReadPublicKey
	}
	backings := []string{string(render.BackingMachine), string(render.BackingInstance)}
	return shared{
		reader: reader, read: (&base.Coalesced[*desired.Hosts]{Source: reader.Read}).Read, signs: signs,
		records: records, login: login, executables: configure.NewExecutables(o.Payload), servers: servers,
		admission: admission,
		counters: metrics.NewCounters(metrics.Known{Version: o.Version, Backings: backings,
			Reasons: configure.FailureReasons(), Traffic: o.Traffic, Logins: o.Logins}),
		unjoined: &configure.Unjoined{Elapsed: o.elapsed},
		deployment: &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.Namespace,
			Name: operatorName},
		clocks: hosts.NewClocks(o.Now), upgrade: &status.Upgrade{},
	}, nil
}

// addControllers adds all controllers, and the metrics. Those that reach hosts are left out where the operator reaches
// none, upgradeable where OLM gives the operator no OperatorCondition; machines and the records of their hosts are
// worked on when the cluster serves Machines.
func addControllers(ctx context.Context, m base.Manager, o Options, s shared) error {
	publishes := &rollout.Controller{
		Inputs: s.read, Wants: gather.WantedObjects(o.Namespace), Keys: s.signs, Known: s.records.KnownNodes,
		Servers: s.servers.ListVersions, Upgrade: s.upgrade, Deployment: s.deployment, Counters: s.counters,
		Unjoined: s.unjoined, Expected: expectedConditions(o), Silence: o.Silence, Heartbeats: o.heartbeats, Now: o.Now,
		Elapsed: o.elapsed, Log: o.Log,
	}
	if o.Hosts != nil {
		publishes.Executables, publishes.HostClocks, publishes.Login = s.executables.ChooseFor,
			s.clocks.ClockSkews, s.login
	}
	if err := errors.Join(publishes.SetupWithManager(ctx, m), addMetrics(m, o, s), addWarnings(m, o, s)); err != nil {
		return err
	}
	if name := o.Environment[olm.ConditionVariable]; name != "" {
		upgradeable := &olm.Upgradeable{
			Nodes: m.GetClient(), Decoded: m.Decoded, Live: m.GetAPIReader(), Client: m.GetClient(),
			Namespace: o.Namespace, Name: name, Now: o.Now, Silence: o.Silence, Rollout: s.upgrade,
		}
		if err := upgradeable.SetupWithManager(m); err != nil {
			return err
		}
	}
	if o.Hosts == nil {
		return nil
	}
	return addHostControllers(ctx, m, o, s)
}

// addHostControllers adds the work over SSH: hosts become nodes, and silent node agents are repaired.
func addHostControllers(ctx context.Context, m base.Manager, o Options, s shared) error {
	clients, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return err
	}
	events, live, cached, log := m.GetEventRecorder(operatorName), m.GetAPIReader(), m.GetClient(), o.Log
	nodes := func(ctx context.Context) ([]windowsnode.Node, error) { return m.Decoded.ListCached(ctx, cached) }
	login := s.login
	joiner := &configure.Joiner{
		Checks: &configure.Checks{Live: live, Login: login, Versions: s.servers.ListVersions, Payload: o.Payload,
			Now: o.Now, Held: deletions.HeldChangesFunc(nodes, windowsnode.VerifyWith(s.signs.OpenDesired))},
		Reader: cached, Client: cached, Inputs: s.read, Executables: s.executables,
		Hosts: o.Hosts(login).WithGuard(m.MayChangeHosts()).NotingClocks(s.clocks), Login: login,
		Version: o.Version, Log: log.WithName("join"), Now: o.Now, Elapsed: o.elapsed, Silence: o.Silence, Random: rand.Read,
		Unjoined: s.unjoined, Counters: s.counters, ReadDesired: windowsnode.VerifyWith(s.signs.OpenDesired),
	}
	collector := &hostkeys.Collector{Live: live, Login: login, Namespace: o.Namespace, Log: log.WithName("hostkeys")}
	machines := &machine.Machines{
		Joiner: joiner, Reader: cached, Live: live, Client: cached, Events: events, Log: log.WithName("machine"),
		Now: o.Now, Elapsed: o.elapsed,
		Replacements: machine.Replacements{Live: live, Client: cached, Namespace: o.Namespace},
	}
	joiner.BeforeMachineJoins = machines.EndReplacing
	for _, c := range []interface{ SetupWithManager(base.Manager) error }{
		node.New(node.Options{
			Decoded: m.Decoded, Joiner: joiner, Drainer: drain.Drainer{Client: clients}, Machines: machines,
			Namespace: o.Namespace, Payload: s.executables, Copying: node.CopyPlaces(),
			ReadDesired: joiner.ReadDesired, Signer: s.signs, Events: events, Log: log.WithName("node"),
			Clock: o.Clock, APITime: s.servers.ServerTime,
		}),
		&instance.Instances{Joiner: joiner, Namespace: o.Namespace, Events: events, Log: log.WithName("instance")},
		&csr.Approver{
			Inputs: s.read, Hosts: joiner.Hosts, Records: s.records, Resolver: o.Resolver, Live: live, Client: cached,
			Namespace: o.Namespace, Events: events, Log: log.WithName("csr"), Elapsed: o.elapsed,
		},
		&userdata.UserData{
			Reader: cached, Live: live, Client: cached, Policies: s.admission,
			Say: conditionsOf(m, o, prerequisites.Owner+"-userdata"), Login: login, Events: events,
			Log: log.WithName("userdata"),
		},
		&prerequisites.Cluster{
			Checks: joiner.Checks, Unjoined: joiner.Unjoined, Inputs: s.read, Client: cached, Decoded: m.Decoded,
			Policies: s.admission, Say: conditionsOf(m, o, prerequisites.Owner),
			Deployment: s.deployment, Events: events, Log: log.WithName("prerequisites"),
		},
	} {
		if err := c.SetupWithManager(m); err != nil {
			return err
		}
	}
	collectMachines, err := collector.SetupWithManager(m)
	if err != nil {
		return err
	}
	wanted := slices.DeleteFunc(gather.WantedObjects(o.Namespace), func(w objects.Want) bool {
		return base.KindOf(w) != base.MachineKind()
	})
	return m.Kinds.WatchWhenServed(ctx, wanted, func() error {
		return errors.Join(machines.SetupWithManager(m), collectMachines())
	})
}

// expectedConditions returns the types of conditions that the operator always gives.
func expectedConditions(o Options) []string {
	expected := []string{status.InputsAccepted, status.Published, status.RolledOut}
	if o.Hosts != nil {
		expected = append(expected, configure.HostsJoined)
	}
	return expected
}

// addWarnings has API servers answered that ask what an object will change.
func addWarnings(m base.Manager, o Options, s shared) error {
	return o.Warnings.AddTo(m, warnings.Warner{Read: s.reader.ReadProposed, Cache: m.Kinds.WatchedClient(m.GetClient()),
		Wants: gather.WantedObjects(o.Namespace), Log: o.Log.WithName("warnings")})
}

// conditionsOf returns what writes all conditions of one field manager.
func conditionsOf(m base.Manager, o Options, owner string) func(context.Context, []metav1.Condition) error {
	w := status.Writer{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Owner: owner, Now: o.Now,
		Expected: expectedConditions(o), AddPage: m.Pages.AddPage}
	return w.WriteConditions
}

// addMetrics has the metrics of the operator served.
func addMetrics(m base.Manager, o Options, s shared) error {
	return m.Add(&metrics.Registration{Registry: registry.Registry, Counters: s.counters, Collector: &metrics.Collector{
		Nodes: m.GetClient(), Decoded: m.Decoded, Live: m.GetAPIReader(), Namespace: o.Namespace,
		Unjoined: s.unjoined.ByReason, Now: o.Now, Silence: o.Silence,
	}})
}
