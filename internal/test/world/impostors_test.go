package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/status"
	"wmco/internal/hostsim/simulation"
)

// Rules about hosts and nodes that say something else of themselves than they are (docs/security.md).
const (
	ruleLie   = "a host is changed that says that it is another node, or is one of another cluster"
	ruleTwice = "a host with a second entry becomes another node"
	ruleTaken = "a node becomes that of an impostor, or is forgotten while its host is off"
	ruleMoved = "a node is removed whose entry was replaced by another one of its host"
	// ruleUnsaid is about nodes that keep their bundles until a person does something.
	ruleUnsaid = "a node gets nothing any longer, and the status does not name it"
)

// freeAddress returns an address that no host has.
func (w *world) freeAddress() string {
	w.addressesMade++
	return fmt.Sprintf("10.2.1.%d", w.addressesMade)
}

// joinImpostor has the entry of a host that says that it is a node, a host of Linux, or something of the cluster. Some have the address of that, some are
// nodes of another cluster.
func (w *world) joinImpostor(t *testing.T) bool {
	owners := w.owners()
	victims := append(slices.Sorted(maps.Keys(owners)), linuxNode)
	victim := victims[w.random.IntN(len(victims))]
	owners[linuxNode] = addressOfLinux
	switch w.random.IntN(6) { //nolint:mnd // a third, and half of the others
	case 0, 1:
		x := w.addImpostor(t, "")
		w.joinOther(t, x)
		w.listImpostor(t, x)
	case 2, 3:
		w.listImpostor(t, w.addImpostor(t, victim, owners[victim]))
	default:
		w.listImpostor(t, w.addImpostor(t, victim))
	}
	return true
}

// replaceHost has a host that is off lose its entry to an impostor with its name and address. The host comes back, and is removed or listed again.
func (w *world) replaceHost(t testing.TB, h *host) {
	t.Helper()
	node := w.observer.Snapshot()[h.name]
	before, known := w.recordOf(t, node)
	w.powerOffHost(h)
	w.listHost(t, h, false)
	w.listImpostor(t, w.addImpostor(t, h.name, h.address))
	if after, _ := w.recordOf(t, node); known && after.HostKey != before.HostKey {
		w.observer.Violate(ruleTaken, "%s: %+v, before %+v", h.name, after, before)
	}
	w.powerOnHost(t, h)
	if w.random.IntN(2) == 0 {
		w.listHost(t, h, true)
	}
}

// addImpostor makes a host that says that it is another one, and has other addresses too.
func (w *world) addImpostor(t testing.TB, says string, addresses ...string) *host {
	t.Helper()
	x := &host{name: fmt.Sprintf("impostor-%d", w.hostsMade), address: w.freeAddress(), impostor: true, says: says}
	w.hostsMade++
	w.install(t, x)
	must(t, x.Host.Edit(w.ctx, func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, addresses...) }))
	w.mu.Lock()
	w.hosts[x.name] = x
	w.mu.Unlock()
	w.tell("(%s says that it is %q, with %v)", x.name, says, addresses)
	return x
}

// listImpostor has the entry of an impostor for an hour or two. The impostor becomes no node, and nothing is changed on it.
func (w *world) listImpostor(t testing.TB, x *host) {
	t.Helper()
	before := x.Starts()
	w.listHost(t, x, true)
	pause(w.ctx, time.Hour+time.Duration(w.random.Int64N(int64(time.Hour))))
	if now := x.Starts(); !maps.Equal(now, before) {
		w.observer.Violate(ruleLie, "%s, which says that it is %q: %v, before %v", x.name, x.says, now, before)
	}
	w.listHost(t, x, false)
	pause(w.ctx, 10*time.Minute)
	w.removeImpostor(t, x)
}

func (w *world) removeImpostor(t testing.TB, x *host) {
	t.Helper()
	w.connect(x, nil)
	must(t, x.Close())
	w.mu.Lock()
	delete(w.hosts, x.name)
	w.mu.Unlock()
}

// joinOther gives a host a kubelet of another cluster.
func (w *world) joinOther(t testing.TB, h *host) {
	t.Helper()
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: other, contexts: [{name: other, context: {cluster: other, user: node}}],
  clusters: [{name: other, cluster: {server: "https://api-int.other.example.com:6443"}}], users: [{name: node, user: {}}]}`
	must(t, h.Host.WriteFile(w.ctx, `C:\k\kubeconfig`, bundle.AccessAdmins, []byte(kubeconfig)))
	must(t, h.Host.Edit(w.ctx, func(s *simulation.State) {
		s.Services[simulation.Key("kubelet")] = simulation.Service{ServiceConfig: plan.ServiceConfig{Name: "kubelet", CommandLine: `C:\k\kubelet.exe`}, Status: plan.ServiceStopped}
	}))
}

// secondEntry has another entry for a host that is a node, at another of its addresses. It stays the node that it is.
func (w *world) secondEntry(t testing.TB, h *host) {
	t.Helper()
	node := w.observer.Snapshot()[h.name]
	second := w.freeAddress()
	w.addAddress(t, h, second)
	w.disturbHost(h)
	w.setSecond(second)
	w.writeEntries(t)
	pause(w.ctx, time.Hour)
	w.setSecond("")
	w.writeEntries(t)
	pause(w.ctx, 10*time.Minute)
	w.judgeSame(ruleTwice, node)
	w.disturbHost(h)
}

func (w *world) setSecond(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.second = address
}

// moveEntry has the entry of a host become another of its addresses. It stays the node that it is, and gets nothing new, because its overlay network is at
// the address before: the status says so, and an administrator restores the former entry.
func (w *world) moveEntry(t testing.TB, h *host) {
	t.Helper()
	node := w.observer.Snapshot()[h.name]
	before, after := h.address, w.freeAddress()
	w.addAddress(t, h, after)
	w.setAddress(h, after)
	w.listHost(t, h, true)
	named := func() bool {
		return slices.ContainsFunc(w.readStatus(t).Refused, func(r status.Refused) bool { return r.Node == h.name })
	}
	// Later its kubelet may ask for a certificate for its former address, about which the host is asked.
	for begun := time.Now(); !named() && time.Since(begun) < calmFor; pause(w.ctx, time.Minute) {
		w.revive()
	}
	if _, is := w.observer.Snapshot()[h.name]; is && !named() {
		w.observer.Violate(ruleUnsaid, "%s", h.name)
	}
	w.judgeSame(ruleMoved, node)
	w.setAddress(h, before)
	w.listHost(t, h, true)
}

// moveName has the name of a host, which is its entry, lead to another of its addresses, to one of something else, or to an impostor.
func (w *world) moveName(t testing.TB, h *host) {
	t.Helper()
	expires := w.random.IntN(2) == 0
	switch others := w.strangeAddresses(h.name); w.random.IntN(3) { //nolint:mnd // of three
	case 0:
		to := w.freeAddress()
		w.addAddress(t, h, to)
		w.nameAs(t, h, to, expires)
	case 1:
		w.nameAs(t, h, others[w.random.IntN(len(others))], expires)
	default:
		w.nameAsImpostor(t, h, expires)
	}
}

func (w *world) nameAsImpostor(t testing.TB, h *host, expires bool) {
	t.Helper()
	x := w.addImpostor(t, h.name, h.address)
	w.nameAs(t, h, x.address, expires)
	w.removeImpostor(t, x)
}

// nameAs has the name of a host lead to an address for a while, in which the certificate of its kubelet may expire. It stays the node that it is until
// then, and nothing that answers at the address is logged in to in its place.
func (w *world) nameAs(t testing.TB, h *host, address string, expires bool) {
	t.Helper()
	node, logins := w.observer.Snapshot()[h.name], w.loginsAt(address)
	w.tell("(the name of %s leads to %s)", h.name, address)
	w.setNameOf(h, address)
	w.putMirrorSet(t, 0)
	if expires {
		w.expireCertificate(t, h)
	}
	pause(w.ctx, time.Hour+time.Duration(w.random.Int64N(int64(time.Hour))))
	if now := w.loginsAt(address); now != logins {
		w.observer.Violate(ruleImpostor, "%d logins at %s, for %s", now-logins, address, h.name)
	}
	if !expires {
		w.judgeSame(ruleMoved, node)
	}
	w.setNameOf(h, h.address)
}

// loginsAt is how many logins there were at an address of a host.
func (w *world) loginsAt(address string) int {
	for _, h := range w.allHosts() {
		if h.address == address {
			return h.ssh.Logins()
		}
	}
	return 0
}

func (w *world) setAddress(h *host, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.address = address
}

// addAddress gives a host another address.
func (w *world) addAddress(t testing.TB, h *host, address string) {
	t.Helper()
	w.mu.Lock()
	h.had = append(h.had, h.address, address)
	w.mu.Unlock()
	w.network.Connect(address, h.ssh)
	must(t, h.Host.Edit(w.ctx, func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, address) }))
}

// judgeSame checks that a Node is the object that it was, if it was one.
func (w *world) judgeSame(rule string, before corev1.Node) {
	if now := w.observer.Snapshot()[before.Name]; before.UID != "" && now.UID != before.UID {
		w.observer.Violate(rule, "%s is %q, and was %q", before.Name, now.UID, before.UID)
	}
}

// lie is what a node writes of itself, and what an administrator writes afterwards, as merge patches.
type lie struct{ says, status, undo string }

// lies are those that a kubelet's certificate permits.
func (w *world) lies(n corev1.Node, other string) []lie {
	annotation := func(key, value string) lie {
		undo := "null"
		if was, ok := n.Annotations[key]; ok {
			undo = fmt.Sprintf("%q", was)
		}
		return lie{says: fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value), undo: fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, undo)}
	}
	label := func(key, value string) lie {
		return lie{says: fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value), undo: fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, n.Labels[key])}
	}
	list := []lie{
		label(corev1.LabelOSStable, `"linux"`),
		annotation(published.FetchAnnotation, fmt.Sprintf("%q", "sha256:"+strings.Repeat("0", 64))),
		annotation(published.VersionAnnotation, "null"),
		annotation(published.DesiredVersionAnnotation, `"1.0.0"`),
		annotation(published.ReportAnnotation, "null"),
		annotation(published.ReportAnnotation, `"{}"`),
		annotation(published.RolloutAnnotation, "null"),
		annotation(published.JoiningAnnotation, `"true"`),
		annotation(published.AdoptAnnotation, `"true"`),
		{status: fmt.Sprintf(`{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"Hostname","address":%q}]}}`, other, n.Name), undo: `{}`},
	}
	if n.Labels[published.InstanceLabel] != "" {
		list = append(list, annotation(published.InstanceAnnotation, fmt.Sprintf("%q", other)), label(published.InstanceLabel, `"false"`))
	}
	return list
}

// lieOf has a node say something else of itself than it is, with the address of another one. Every other node is as before. Sometimes its entry goes: it is
// removed all the same.
func (w *world) lieOf(t testing.TB, m *machine) {
	t.Helper()
	n, ok := w.observer.Snapshot()[m.name]
	owners := w.owners()
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(owners)), func(name string) bool { return name == m.name })
	if !ok || len(others) == 0 {
		return
	}
	list := w.lies(n, owners[others[w.random.IntN(len(others))]])
	says := list[w.random.IntN(len(list))]
	w.tell("(%s says %s%s)", m.name, says.says, says.status)
	w.sayOf(t, m.name, says)
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Hour))))
	if m.entry != "" && w.random.IntN(3) == 0 {
		w.list(t, m, false)
		pause(w.ctx, time.Hour)
		return
	}
	w.edit(t, m.name, says.undo)
	if says.status != "" {
		w.try(t, "the addresses of a Node", func() error {
			before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
			if err := w.Get(w.ctx, client.ObjectKeyFromObject(before), before); err != nil {
				return client.IgnoreNotFound(err)
			}
			after := before.DeepCopy()
			after.Status.Addresses = n.Status.Addresses
			return client.IgnoreNotFound(w.Status().Patch(w.ctx, after, client.MergeFrom(before)))
		})
	}
}

// sayOf writes it with the identity of the node.
func (w *world) sayOf(t testing.TB, name string, x lie) {
	t.Helper()
	own, err := client.New(w.server.Config(asNode(name)), client.Options{Scheme: w.Scheme()})
	must(t, err)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.try(t, "a node's change of its Node", func() error {
		if x.status != "" {
			return client.IgnoreNotFound(own.Status().Patch(w.ctx, n, mergePatch(x.status)))
		}
		return client.IgnoreNotFound(own.Patch(w.ctx, n, mergePatch(x.says)))
	})
}

// TestEntriesOfAHost: a host that is a node stays the node that it is when it gets a second entry, and when its entry becomes another of its addresses.
// Hosts that say that they are other nodes do not become these.
func TestEntriesOfAHost(t *testing.T) {
	o := options{nodes: 2, hosts: 2, certificates: 6 * time.Hour, seed: 1, patience: time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		w.rest(t)
		for range 2 {
			w.joinImpostor(t)
		}
		w.secondEntry(t, h)
		w.rest(t)
		w.moveEntry(t, h)
		w.rest(t)
		pause(w.ctx, 2*calmFor)
		w.rest(t)
		w.replaceHost(t, h)
		w.listHost(t, h, true)
		w.rest(t)
		named := w.addHostWith(t, true)
		w.listHost(t, named, true)
		w.rest(t)
		pause(w.ctx, 2*calmFor)
		w.nameAs(t, named, h.address, false)
		w.rest(t)
		w.nameAs(t, named, h.address, true)
		w.rest(t)
		pause(w.ctx, 2*calmFor)
		w.nameAsImpostor(t, named, true)
		w.rest(t)
		w.listHost(t, h, false)
		w.rest(t)
		w.print(t)
	})
}
