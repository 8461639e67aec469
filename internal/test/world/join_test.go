package world

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/controller/node"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/kubelet"
	"wmco/internal/test/world/manager"
)

// worldURL is the API server as hosts see it.
const worldURL = "https://api-int.world.example.com:6443"

// startManagers starts what a cluster has around kubelets: an authority, the life of Nodes, and the network. Certificates are valid for some time.
func (w *world) startManagers(t testing.TB, lifetime time.Duration) {
	t.Helper()
	w.certificates = lifetime
	silent := slog.New(slog.DiscardHandler)
	_, err := manager.Start(w.ctx, w.server, w.admin, manager.Options{
		URL: worldURL, Certificates: lifetime, Nodes: manager.Lifecycle{Every: time.Minute, Grace: leaseGrace}, Report: func(err error) { t.Error(err) },
		Run: []func(context.Context) error{
			func(ctx context.Context) error { return cluster.Network(ctx, w.admin, silent) },
			func(ctx context.Context) error { return cluster.Approve(ctx, w.admin, silent, w.hasMachine) },
		},
	})
	must(t, err)
}

// hasMachine reports whether a node is that of a Machine: its requests are approved by the cluster.
func (w *world) hasMachine(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[node] != nil && w.hosts[node].ofMachine
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
		w.hosts["win-joins"] = &host{Machine: m, ofMachine: true}
		defer delete(w.hosts, "win-joins")
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

// TestHosts plays what happens to hosts that join, without anything in the middle.
func TestHosts(t *testing.T) {
	o := options{nodes: 1, hosts: 1, certificates: time.Hour, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		w.rest(t)
		node := w.observer.Snapshot()[h.name]
		if h.ssh.Logins() == 0 || node.Name == "" {
			t.Fatalf("%d logins, Node %q", h.ssh.Logins(), node.Name)
		}
		joined := h.ssh.Logins()
		w.putMirrorSet(t, 0)
		w.rest(t)
		pause(w.ctx, 2*o.certificates) // its certificates are renewed
		w.rest(t)
		w.changeLoginKey(t)
		w.rest(t)
		if h.ssh.Logins() != joined {
			t.Errorf("%d logins to join, %d afterwards", joined, h.ssh.Logins()-joined)
		}
		w.powerOffHost(h)
		pause(w.ctx, o.certificates+10*time.Minute)
		w.powerOnHost(t, h)
		w.rest(t)
		if again := w.observer.Snapshot()[h.name]; again.UID == node.UID || h.ssh.Logins() == joined {
			t.Error("it has not joined again after its certificate has expired")
		}
		joined = h.ssh.Logins()
		w.listHost(t, h, false)
		w.rest(t)
		if h.ssh.Logins() != joined {
			t.Errorf("%d logins to remove a host whose agent reports", h.ssh.Logins()-joined)
		}
		w.listHost(t, h, true)
		w.rest(t)
		w.reinstallHost(t, h)
		w.rest(t)
		w.print(t)
	})
}

// TestASilentNodeAgentIsRepaired: a person has stopped and disabled the service of a node agent. Half an hour later the operator starts it over SSH. A
// host that cannot be reached is tried every ten minutes, and no more often because its kubelet lives. One whose clock is wrong is not silent.
func TestASilentNodeAgentIsRepaired(t *testing.T) {
	o := options{nodes: 2, hosts: 1, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		w.rest(t)
		pause(w.ctx, time.Hour)
		w.setClock(t, h)
		must(t, h.StopService(w.ctx, bundle.AgentService))
		must(t, h.Edit(w.ctx, func(s *simulation.State) {
			service := s.Services[simulation.Key(bundle.AgentService)]
			service.Start = plan.StartDisabled
			s.Services[simulation.Key(bundle.AgentService)] = service
		}))
		h.ssh.Stop()
		h.dials.Store(0)
		// Its last sign of life was up to twenty minutes ago.
		pause(w.ctx, 9*time.Minute)
		if n := h.dials.Load(); n != 0 {
			t.Errorf("%d attempts to reach it before its agent is silent", n)
		}
		pause(w.ctx, 20*time.Minute)
		w.disturbHost(h)
		pause(w.ctx, 41*time.Minute)
		if n, notes := h.dials.Load(), w.notes(t, node.EventAgentSilent, h.name); n < 4 || n > 7 || len(notes) == 0 {
			t.Errorf("%d attempts to reach it in seventy minutes, the events are %q", n, notes)
		}
		must(t, h.ssh.Restart())
		w.disturbHost(h)
		pause(w.ctx, 11*time.Minute)
		notes := w.notes(t, node.EventAgentRepaired, h.name)
		if h.Status(bundle.AgentService) != plan.ServiceRunning || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "1 service started") }) {
			t.Errorf("the agent is %s, the events are %q", h.Status(bundle.AgentService), notes)
		}
		w.rest(t)
		w.print(t)
	})
}

// notes are the texts of the Events of a reason about an object; one without a name is any.
func (w *world) notes(t testing.TB, reason, about string) (texts []string) {
	t.Helper()
	var list eventsv1.EventList
	must(t, w.List(w.ctx, &list))
	for _, e := range list.Items {
		if e.Reason == reason && (about == "" || e.Regarding.Name == about) {
			texts = append(texts, e.Note)
		}
	}
	return texts
}

// TestTheLawsOfHosts: a login that is not needed, and a certificate for the key of another one, break them.
func TestTheLawsOfHosts(t *testing.T) {
	o := options{nodes: 1, hosts: 1, certificates: time.Hour, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		w.rest(t)
		pause(w.ctx, 2*calmFor)
		login := func() {
			config := &ssh.ClientConfig{User: "Administrator", Auth: []ssh.AuthMethod{ssh.PublicKeys(w.loginKey)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()} //nolint:gosec // it is in this process
			raw, err := w.dial(w.ctx, "tcp", h.address+":22")
			must(t, err)
			c, _, _, err := ssh.NewClientConn(raw, h.address, config)
			must(t, err)
			must(t, c.Close())
		}
		if found := w.observer.Violations(); len(found) > 0 {
			t.Fatalf("before: %+v", found)
		}
		login()
		found := w.observer.Violations()
		if len(found) != 1 || found[0].Rule != ruleLogin {
			t.Fatalf("a login to a host that works: %+v", found)
		}
		w.noteLogins()
		w.listHost(t, h, true) // no attempt is judged now
		login()
		w.checkLogins()
		if again := w.observer.Violations(); len(again) != 2 { //nolint:mnd // of both laws
			t.Errorf("a login at rest: %+v", again)
		}
		for name, want := range map[string]string{h.name: h.name + " has another key", "none": "no host has the name none"} {
			made, err := w.ask(firstRequest(name))
			must(t, err)
			if got := w.judgeApproval(made); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}
