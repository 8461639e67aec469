package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	remotessh "wmco/applier/remote/ssh"
	"wmco/bundle"
	"wmco/controller/hosts"
	"wmco/gateway/registry"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/memoryssh"
	"wmco/payload"
	"wmco/payload/fetch"
)

// certificateLifetime is how long certificates are valid in a world with hosts that join, if its options have nothing else.
const certificateLifetime = 6 * time.Hour

// host is a whole machine with an entry in windows-instances, or of a Machine, which joins over SSH.
type host struct {
	*simnode.Machine
	name, address string
	// dns is the name that its entry has in the place of the address; empty for none.
	dns string
	ssh *memoryssh.Server
	// returned reports whether the existing operator has had it.
	returned bool
	// had are all addresses that it has or had, if it has had several.
	had []string
	// impostor reports whether it is no host that joins; says is the name that it says it has.
	impostor bool
	says     string
	// ofMachine reports whether it has a Machine, and no entry.
	ofMachine bool
	// refuses reports whether it is the host of a Machine that is to be replaced: it accepts no key.
	refuses bool
	// listed reports whether it has its entry or its Machine, and since is when that was changed last. Its power or its SSH server was changed last at disturbed.
	listed           bool
	since, disturbed time.Time
	// rested reports whether it is at rest, and logins how many logins there were when it came to rest.
	rested bool
	logins int
	// dials is how often operators have tried to reach it.
	dials atomic.Int64
}

// beginHosts has a world in which hosts join: with a key to log in with, and what a cluster has around kubelets.
func (w *world) beginHosts(t testing.TB) {
	t.Helper()
	if w.options.hosts == 0 {
		return
	}
	w.startManagers(t, cmp.Or(w.options.certificates, certificateLifetime))
	w.setLoginKey(t)
}

// reachHosts returns how an operator reaches hosts. Those of light nodes it does not.
func (w *world) reachHosts(is release) func(*hosts.Login) *hosts.Hosts {
	if w.options.hosts == 0 {
		return unreachableHosts
	}
	return func(login *hosts.Login) *hosts.Hosts {
		dialer := remotessh.Dialer{Limits: remotessh.DefaultLimits(), Pins: login, Signers: login.Signers, OnLogin: login.NoteLogin, Dial: w.dial}
		o := hosts.Options{Program: is.program(), Executables: is.source}
		o.Transports.Kept = remotessh.NewTransport(dialer)
		dialer.Limits.Kept = 0
		o.Transports.Fresh = remotessh.NewTransport(dialer)
		return hosts.New(o)
	}
}

// program is the node agent that an operator uploads to hosts. What runs is the code of this process.
func (r release) program() remote.Program {
	var text []byte
	for path, data := range r.files[payload.TestedKubernetes] { // it is for all
		if strings.HasPrefix(path, strings.TrimSuffix(payload.Find(payload.Agent).Path, ".exe")) {
			text = data
		}
	}
	return memoryssh.NewProgram(text)
}

// domain is that of entries that are names.
const domain = ".hosts.example.com"

// addHost makes a host that accepts the key of the operator, without an entry. The entry of every third one is a name.
func (w *world) addHost(t testing.TB) *host {
	t.Helper()
	return w.addHostWith(t, w.hostsMade%3 == 2) //nolint:mnd // of three
}

// addHostWith makes one at the first address that no other has. Every second address is one of Machines, which have no entry.
func (w *world) addHostWith(t testing.TB, dns bool) *host {
	t.Helper()
	w.hostsMade++
	step := map[bool]int{true: 2, false: 1}[dns]
	x := &host{name: fmt.Sprintf("winhost-%d", w.hostsMade)}
	for number := 1; x.address == "" || slices.ContainsFunc(w.allHosts(), func(h *host) bool { return h.address == x.address }); number += step {
		x.address, x.ofMachine = fmt.Sprintf("10.2.0.%d", number), number%2 == 0
	}
	if dns {
		x.dns = x.name + domain
	}
	w.install(t, x)
	w.mu.Lock()
	w.hosts[x.name] = x
	w.mu.Unlock()
	return x
}

// listHost writes the entry of a host, or removes it. The Machine of a host is made; for its end see deleteMachine.
func (w *world) listHost(t testing.TB, x *host, is bool) {
	t.Helper()
	w.mu.Lock()
	x.listed, x.since = is, time.Now()
	w.mu.Unlock()
	if x.ofMachine {
		w.tell("(the Machine of %s)", x.name)
		must(t, cluster.AddMachine(w.ctx, w.admin, x.name, x.address))
		return
	}
	w.tell("(the entry of %s, listed: %t)", x.name, is)
	w.writeEntries(t)
	var n corev1.Node
	if !is && w.Get(w.ctx, client.ObjectKey{Name: x.name}, &n) == nil {
		w.confirmLast(t, x.name)
	}
}

// deleteMachine is what machine-api does: the Machine ends, then its host, then its Node.
func (w *world) deleteMachine(t testing.TB, x *host) {
	t.Helper()
	w.try(t, "the end of a Machine", func() error { return client.IgnoreNotFound(w.Delete(w.ctx, machineOf(x))) })
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Minute))))
	w.endHost(t, x)
}

// endHost ends the host of a Machine that is gone, and its Node.
func (w *world) endHost(t testing.TB, x *host) {
	t.Helper()
	w.connect(x, nil)
	must(t, x.Close())
	w.mu.Lock()
	delete(w.hosts, x.name)
	w.mu.Unlock()
	w.try(t, "the end of a Node", func() error {
		return client.IgnoreNotFound(w.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: x.name}}))
	})
}

// install gives a host a new Windows, with its name and address.
func (w *world) install(t testing.TB, x *host) {
	t.Helper()
	var err error
	x.returned = false
	x.Machine, err = simnode.New(simnode.Options{
		Facts: bundle.Facts{
			Schema: bundle.FactsSchema, HostName: strings.ToUpper(cmp.Or(x.says, x.name)), Addresses: []string{x.address}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
			DefaultRoute: bundle.DefaultRoute{Address: x.address, Gateway: "10.2.0.254"},
		},
		Times: slowTimes(), Agent: seldom(), Wrap: w.server.Wrap, Program: "world",
		Registry: &fetch.Single{Client: &registry.Client{Verified: &w.registries, Insecure: &w.registries, Now: time.Now}},
	})
	must(t, err)
	hostKey, _, err := memoryssh.NewKey()
	must(t, err)
	x.ssh = memoryssh.New(x.Machine, hostKey)
	must(t, x.ssh.Authorize(w.loginKey.PublicKey()))
	x.ssh.Registries = &w.registries
	w.connect(x, x.ssh)
}

// connect puts the SSH server of a host at its address, to which its name leads; nil removes it.
func (w *world) connect(x *host, s *memoryssh.Server) {
	w.network.Connect(x.address, s)
	w.setNameOf(x, x.address)
}

// setNameOf has the resolver know addresses of the name of a host, if it has one.
func (w *world) setNameOf(x *host, addresses ...string) {
	if x.dns != "" {
		w.names.setAddresses(x.dns, addresses)
	}
}

// entry is the text of its entry.
func (h *host) entry() string { return cmp.Or(h.dns, h.address) }

// allHosts are the hosts in their order.
func (w *world) allHosts() (list []*host) {
	for _, name := range slices.Sorted(maps.Keys(w.hosts)) {
		list = append(list, w.hosts[name])
	}
	return list
}
