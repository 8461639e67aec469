package world

import (
	"context"
	"crypto"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/light"
)

const machineNamespace = "openshift-machine-api"

// machine is a light node with its Machine.
type machine struct {
	*light.Node
	name   string
	joined joined
	// address is that of its Node.
	address string
	instance
	// stop ends the node agent; nil while the host is off.
	stop func()
	// on ends when the agent does. Ill reports whether something of the host does not work.
	on  atomic.Pointer[context.Context]
	ill bool
	// cut ends everything on the host at once, which happens after so many changes; none or less is never.
	cut      context.CancelFunc
	cutAfter atomic.Int64
	// stuck reports whether the host does not come back from a boot, booting whether it boots.
	stuck, booting atomic.Bool
}

// joined is what a node has joined with: the version of the operator, and the minor version of Kubernetes.
type joined struct{ operator, minor string }

// addNodes makes new nodes, and starts their agents.
func (w *world) addNodes(t testing.TB, count int) {
	t.Helper()
	for range count {
		w.addNode(t)
	}
	w.writeEntries(t)
	w.try(t, "records of hosts", func() error { return cluster.RecordNodes(w.ctx, w.admin) })
}

func (w *world) addNode(t testing.TB) {
	t.Helper()
	n, facts := w.example.Node(w.made)
	w.made++
	name, is := n.Name, w.present()
	for _, key := range []string{published.VersionAnnotation, published.DesiredVersionAnnotation} {
		n.Annotations[key] = is.version
	}
	x := &machine{name: name, joined: joined{is.version, w.minor()}, address: n.Status.Addresses[0].Address}
	if w.made%2 == 0 { // an instance
		x.entry = x.address
		n.Labels[published.InstanceLabel], n.Annotations[published.InstanceAnnotation] = "true", x.entry
		w.try(t, "making an instance", func() error { return client.IgnoreAlreadyExists(w.Create(w.ctx, n.DeepCopy())) })
	} else {
		w.try(t, "making a node", func() error { return cluster.AddJoined(w.ctx, w, n.DeepCopy()) })
	}
	kubelet := w.server.Transport(&user.DefaultInfo{Name: "system:node:" + name, Groups: []string{user.NodesGroup, user.AllAuthenticated}})
	own, err := identityOf(name)
	must(t, err)
	l, err := light.New(w.ctx, light.Options{
		Facts: facts, Server: own, Boot: func(ctx context.Context) error { return w.boot(ctx, name) }, Registries: &w.registries,
		Agent: seldom(),
		Wrap: func(c *rest.Config) {
			c.Host, c.TLSClientConfig, c.Proxy, c.Transport = "http://world", rest.TLSClientConfig{}, nil, w.counted(name)(kubelet)
		},
	})
	must(t, err)
	l.Host.Place(ofWindows, bundle.AccessUsers, "")
	must(t, is.put(w.ctx, l.Host, w.minor()))
	x.Node = l
	must(t, l.Host.Edit(w.ctx, func(s *simulation.State) { s.Script = hostScript(w.made) }))
	pace := time.Duration(0)
	if w.options.slowest > 0 {
		pace = time.Duration(1 + w.random.Int64N(int64(w.options.slowest)))
	}
	w.watchHost(x, pace)
	w.mu.Lock()
	w.machines[name] = x
	w.mu.Unlock()
	w.start(t, x)
}

// seldom is how often node agents look. No report is later than that of a silent agent (published.SilentAfter).
func seldom() agent.Options {
	return agent.Options{Interval: time.Hour, Full: 12 * time.Hour, Housekeep: 20 * time.Minute}
}

// identityOf returns a configuration with a certificate that names a Node, which the agent reads. The server knows the
// node by its transport.
func identityOf(name string) (*rest.Config, error) {
	text, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	key, err := keyutil.ParsePrivateKeyPEM(text)
	if err != nil {
		return nil, err
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "system:node:" + name, Organization: []string{user.NodesGroup}}, key.(crypto.Signer))
	if err != nil {
		return nil, err
	}
	pair, err := certutil.EncodeCertificates(cert)
	return &rest.Config{Host: "https://world", TLSClientConfig: rest.TLSClientConfig{CAData: pair, CertData: pair, KeyData: text}}, err
}

// start starts the node agent.
func (w *world) start(t testing.TB, m *machine) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	m.on.Store(&ctx)
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the agent of %s: %v", m.name, err)
		}
	}()
	m.cut = cancel
	m.stop = func() { cancel(); <-ended }
}

// bootTakes is how long hosts are away when they boot.
const bootTakes = 3 * time.Minute

// boot is what the cluster sees of a boot.
func (w *world) boot(ctx context.Context, name string) error {
	w.mu.Lock()
	m := w.machines[name]
	w.mu.Unlock()
	w.count(&w.boots)
	w.judgeBoot(name)
	m.booting.Store(true)
	defer m.booting.Store(false)
	if err := w.setReady(name, corev1.ConditionUnknown); err != nil {
		return err
	}
	pause(ctx, bootTakes)
	for m.stuck.Load() && ctx.Err() == nil {
		pause(ctx, time.Minute)
	}
	return w.setReady(name, corev1.ConditionTrue)
}

// setReady is what the cluster says of a kubelet. A Node that was removed is no error.
func (w *world) setReady(name string, ready corev1.ConditionStatus) error {
	return w.attempt(func() error {
		var n corev1.Node
		if err := w.Get(w.ctx, client.ObjectKey{Name: name}, &n); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := n.DeepCopy()
		for i, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				n.Status.Conditions[i].Status, n.Status.Conditions[i].LastTransitionTime, n.Status.Conditions[i].LastHeartbeatTime = ready, metav1.Now(), metav1.Now()
			}
		}
		return client.IgnoreNotFound(w.Status().Patch(w.ctx, &n, client.StrategicMergeFrom(before)))
	})
}

// powerOff ends what runs on a host.
func (w *world) powerOff(t testing.TB, m *machine) {
	t.Helper()
	m.stop()
	m.stop = nil
	w.observer.Excuse(m.name, true)
	must(t, w.setReady(m.name, corev1.ConditionUnknown))
}

// powerOn boots a host that is off.
func (w *world) powerOn(t testing.TB, m *machine) {
	t.Helper()
	must(t, m.Restart(w.ctx))
	must(t, w.setReady(m.name, corev1.ConditionTrue))
	w.observer.Excuse(m.name, false)
	w.start(t, m)
}

// remove removes a machine as the cluster autoscaler does: a taint, the Machine, the host, the Node.
func (w *world) remove(t testing.TB, m *machine) {
	t.Helper()
	w.edit(t, m.name, `{"spec":{"taints":[{"key":"os","value":"Windows","effect":"NoSchedule"},{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	w.try(t, "the end of a Machine", func() error {
		return client.IgnoreNotFound(w.Delete(w.ctx, &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: m.name}}))
	})
	if m.stop != nil {
		m.stop()
	}
	w.mu.Lock()
	delete(w.machines, m.name)
	w.mu.Unlock()
	w.try(t, "the end of a Node", func() error {
		return client.IgnoreNotFound(w.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}))
	})
}

// named returns the machines for which this holds, by name.
func (w *world) named(is func(*machine) bool) []*machine {
	var list []*machine
	for _, name := range slices.Sorted(maps.Keys(w.machines)) {
		if m := w.machines[name]; is(m) {
			list = append(list, m)
		}
	}
	return list
}

func runs(m *machine) bool { return m.stop != nil }

// isOn is for machines that are on, and are not about to leave.
func isOn(m *machine) bool { return runs(m) && !m.ends }

// isWell is for machines that follow.
func isWell(m *machine) bool { return isOn(m) && !m.ill }

// The values of maxPods with which kubelets end: all of them, those of machines with an even number, and the others.
const failsEverywhere, failsOnEven, failsOnOdd = 96, 97, 98

// hostScript is what hosts have against: a kubelet that ends with some values, which the operator does not know to be wrong.
func hostScript(number int) simulation.Script {
	var needs []simulation.Condition
	for _, value := range []int{failsEverywhere, failsOnEven + number%2} {
		needs = append(needs, simulation.Condition{File: `C:\k\kubelet.conf`, Lacks: fmt.Sprintf("maxPods: %d", value)})
	}
	return simulation.Script{Services: map[string]simulation.Behaviour{"kubelet": {Needs: needs}}}
}

// breakHost is what does not work on a host until it is healed.
func (w *world) breakHost(t testing.TB, m *machine, change func(*simulation.Script)) {
	t.Helper()
	m.ill = true
	must(t, m.Host.Edit(w.ctx, func(s *simulation.State) { change(&s.Script) }))
}

// heal lets everything of a host work again.
func (w *world) heal(t testing.TB, m *machine) {
	t.Helper()
	m.ill = false
	m.stuck.Store(false)
	must(t, m.Host.Edit(w.ctx, func(s *simulation.State) { s.Script = simulation.Script{Services: s.Script.Services} }))
}

// stopAgent ends the node agent of a host that does not boot.
func (w *world) stopAgent(m *machine) {
	for m.booting.Load() && !m.stuck.Load() {
		pause(w.ctx, time.Minute)
	}
	m.stop()
}

// askWindows has Windows wait for a boot. The agent looks at once.
func (w *world) askWindows(t testing.TB, m *machine, why bundle.BootReason) {
	t.Helper()
	w.stopAgent(m)
	must(t, m.Host.Edit(w.ctx, func(s *simulation.State) { s.Facts.PendingBoots = []bundle.BootReason{why} }))
	w.start(t, m)
}

// loseFeature takes a Windows feature from a host, which can only be added again with a boot. The agent looks at once.
func (w *world) loseFeature(t testing.TB, m *machine) {
	t.Helper()
	w.stopAgent(m)
	must(t, m.Host.Edit(w.ctx, func(x *simulation.State) { delete(x.Settings, simulation.SettingKey(bundle.KindFeature, "Containers")) }))
	w.start(t, m)
}

// drifting is the file that drift changes.
const drifting = `C:\k\kube-proxy.conf`

// drift changes a file by hand. The agent looks at once.
func (w *world) drift(t testing.TB, m *machine) {
	t.Helper()
	w.stopAgent(m)
	must(t, m.Host.WriteFile(w.ctx, drifting, bundle.AccessAdmins, []byte("something else")))
	w.start(t, m)
}

// edit changes a Node, as oc patch does.
func (w *world) edit(t testing.TB, node, patch string) {
	t.Helper()
	w.try(t, "a change of a Node", func() error {
		return w.Patch(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, mergePatch(patch))
	})
}
