package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"wmco/controller/base"
	"wmco/controller/drain"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/hosts"
	"wmco/controller/join"
	"wmco/controller/status"
)

// addJoining adds what is done over SSH: hosts become nodes, and silent node agents are repaired.
func addJoining(ctx context.Context, m base.Manager, o Options, p publishing) error {
	if o.Hosts == nil {
		return nil
	}
	clients, err := kubernetes.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return err
	}
	events, live, cached, log := m.GetEventRecorder(operatorName), m.GetAPIReader(), m.GetClient(), o.Log
	login := &hosts.Login{Live: live, Client: cached, Namespace: o.Namespace, Records: p.records}
	joiner := &join.Joiner{
		Checks: &join.Checks{Live: live, Login: login, Versions: serverVersion(clients), Payload: o.Payload, Now: o.Now},
		Reader: cached, Client: cached, Inputs: p.read, Hosts: o.Hosts(login).GuardedBy(m.MayChangeHosts()), Login: login, Version: o.Version,
		Log: log.WithName("join"), Now: o.Now, Silence: o.Silence, Random: rand.Read, Unjoined: p.say.unjoined, Counters: p.say.counters,
	}
	policies := policies(m, o.Namespace)
	collector := &join.Collector{Live: live, Login: login, Namespace: o.Namespace, Log: log.WithName("collector")}
	machines := &join.Machines{
		Joiner: joiner, Reader: cached, Live: live, Client: cached, Events: events, Log: log.WithName("machines"), Now: o.Now, Elapsed: o.Elapsed,
		Replacements: join.Replacements{Live: live, Client: cached, Namespace: o.Namespace},
	}
	for _, c := range []interface{ SetupWithManager(base.Manager) error }{
		&join.Nodes{
			Reader: cached, Client: cached, Joiner: joiner, Inputs: p.read, Hosts: joiner.Hosts, Drainer: drain.Drainer{Client: clients},
			Namespace: o.Namespace, Version: o.Version, Payload: p.executables, Copying: join.CopyPlaces(),
			Events: events, Log: log.WithName("nodes"), Elapsed: o.Elapsed, APITime: apiTime(m),
		},
		&join.Instances{Joiner: joiner, Namespace: o.Namespace, Events: events, Log: log.WithName("instances")},
		&join.Approver{
			Inputs: p.read, Hosts: joiner.Hosts, Records: p.records, Resolver: o.Resolver, Live: live, Client: cached,
			Namespace: o.Namespace, Events: events, Log: log.WithName("certificates"), Elapsed: o.Elapsed,
		},
		&join.UserData{
			Reader: cached, Live: live, Client: cached, Policies: policies, Say: sayAs(m, o, join.Owner+"-userdata"), Login: login, Events: events, Log: log.WithName("userdata"),
		},
		&join.Cluster{
			Checks: joiner.Checks, Unjoined: joiner.Unjoined, Inputs: p.read, Client: cached, Policies: policies, Say: sayAs(m, o, join.Owner),
			Deployment: &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: o.Namespace, Name: operatorName},
			Events:     events, Log: log.WithName("cluster"),
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
	// Machines join when the cluster serves them.
	wanted := slices.DeleteFunc(gather.Wants(o.Namespace), func(w objects.Want) bool { return base.KindOf(w) != base.MachineKind() })
	return m.Kinds.WatchWhenServed(ctx, wanted, func() error { return errors.Join(machines.SetupWithManager(m), collectMachines()) })
}

// serverVersion returns what asks for the version of the API server.
func serverVersion(clients kubernetes.Interface) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		v, err := clients.Discovery().ServerVersion()
		if err != nil {
			return nil, err
		}
		return []string{v.GitVersion}, nil
	}
}

// sayAs returns what writes all conditions of one field manager. Without the definition of their object they are in events alone, which the
// publisher says.
func sayAs(m base.Manager, o Options, owner string) func(context.Context, []metav1.Condition) error {
	w := status.Writer{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: o.Namespace, Owner: owner, Now: o.Now}
	return func(ctx context.Context, conditions []metav1.Condition) error {
		err := w.Write(ctx, status.Status{Conditions: conditions})
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
}

// policies are those of this cluster.
func policies(m base.Manager, namespace string) join.Policies {
	return join.Policies{Live: m.GetAPIReader(), Client: m.GetClient(), Namespace: namespace}
}
