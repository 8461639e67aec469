package world

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/kubelet"
	"wmco/internal/test/world/api"
	"wmco/internal/test/world/manager"
)

// worldURL is the API server as hosts see it.
const worldURL = "https://api-int.world.example.com:6443"

// startManagers starts what a cluster has around kubelets: an authority, the life of Nodes, and the network. Certificates are valid for some time.
func (w *world) startManagers(t testing.TB, lifetime time.Duration) {
	t.Helper()
	ca, err := manager.NewAuthority()
	must(t, err)
	w.server.SetAuthority(api.Authority{URL: worldURL, Certificate: ca.Certificate})
	must(t, cluster.ConnectTo(w.ctx, w.admin, cluster.Endpoint{URL: worldURL, CA: ca.PEM, ClientCA: ca.PEM}))
	must(t, manager.MakeRoles(w.ctx, w.admin))
	w.certificates = lifetime
	silent := slog.New(slog.DiscardHandler)
	for _, run := range []func(context.Context) error{
		func(ctx context.Context) error {
			return ca.Run(ctx, w.admin, manager.Signing{Lifetime: lifetime, Log: silent})
		},
		func(ctx context.Context) error {
			return manager.Lifecycle{Every: time.Minute, Grace: leaseGrace, Log: silent}.Run(ctx, w.admin)
		},
		func(ctx context.Context) error { return cluster.Network(ctx, w.admin, silent) },
	} {
		go func() {
			if err := run(w.ctx); err != nil && w.ctx.Err() == nil {
				t.Error(err)
			}
		}()
	}
}

const (
	// leaseEvery is the time between two renewals of the Lease of a Node, leaseGrace how long it may not be renewed.
	leaseEvery = 2 * time.Minute
	leaseGrace = 6 * time.Minute
)

// slowTimes are for days of virtual time: programs look seldom.
func slowTimes() simnode.Times {
	return simnode.Times{Boot: bootTakes, Look: 10 * time.Minute, Kubelet: kubelet.Times{
		Status: 5 * time.Minute, Report: 5 * time.Minute, Fast: 5 * time.Second, Lease: leaseEvery, Certificate: 5 * time.Minute,
	}}
}

// TestAMachineJoins: a host in memory gets the bundles of its Machine, and becomes a Ready Node by certificates that the cluster approves and signs. They
// are renewed before they expire, the Node is not Ready while its host is off, and it is again after a boot.
func TestAMachineJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, options{seed: 1})
		defer w.end(t)
		w.load(t, "golden/clusters/common", "golden/clusters/none/infrastructure.yaml", "golden/clusters/none/controllerconfig.yaml",
			"golden/clusters/none/machineconfigs.yaml", "deploy/rbac", "deploy/admission")
		const lifetime = 3 * time.Hour
		w.startManagers(t, lifetime)
		go func() { _ = cluster.Approve(w.ctx, w.admin, slog.New(slog.DiscardHandler), nil) }()
		m, err := simnode.New(simnode.Options{
			Facts: bundle.Facts{
				Schema: bundle.FactsSchema, HostName: "win-joins", Addresses: []string{"10.2.0.1"}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
				DefaultRoute: bundle.DefaultRoute{Address: "10.2.0.1", Gateway: "10.2.0.254"},
			},
			Times: slowTimes(), Wrap: w.server.Wrap, Agent: seldom(),
		})
		must(t, err)
		defer func() { must(t, m.Close()) }()
		must(t, m.InstallPayload())
		must(t, cluster.AddMachine(w.ctx, w.admin, "win-joins", "10.2.0.1"))
		within, cancel := context.WithTimeout(w.ctx, time.Hour)
		defer cancel()
		must(t, cluster.Joiner{Admin: w.admin, Key: bundle.Key("key"), Pause: 10 * time.Second}.Join(within, m))
		node := func() (n corev1.Node) {
			must(t, w.Get(w.ctx, client.ObjectKey{Name: "win-joins"}, &n))
			return n
		}
		joined := time.Since(w.begun)
		pause(w.ctx, 2*lifetime)
		if n := node(); !observer.IsReady(n) || m.Status(bundle.AgentService) != plan.ServiceRunning || m.Recoveries()["kubelet"] > 0 {
			t.Errorf("after two lifetimes of a certificate: Ready %t, the agent %s, %v", observer.IsReady(n), m.Status(bundle.AgentService), m.Recoveries())
		}
		m.PowerOff()
		pause(w.ctx, 2*leaseGrace)
		if observer.IsReady(node()) {
			t.Error("the Node is Ready while its host is off")
		}
		must(t, m.PowerOn())
		pause(w.ctx, 10*time.Minute)
		if n := node(); !observer.IsReady(n) {
			t.Errorf("after a boot: %+v", n.Status.Conditions)
		}
		t.Logf("joined after %s", joined)
	})
}
