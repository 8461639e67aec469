package jointest_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/windowsnode"
	"wmco/internal/test/faults"
)

// expire makes the client certificate of a machine's kubelet one that no API server accepts and that ends some time from now, with the key that
// it has, and boots the machine: it was off for long. What the cluster keeps of its requests is cleaned up in that time (kube-controller-manager,
// csrcleaner).
func (w *world) expire(name string, ends time.Duration) {
	w.t.Helper()
	const folder = `C:\var\lib\kubelet\pki`
	m := w.machines[name]
	pair, err := tls.X509KeyPair([]byte(m.Text(folder+`\kubelet-client-current.pem`)), []byte(m.Text(folder+`\kubelet-client-current.pem`)))
	must(w.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(ends), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pair.Leaf.PublicKey, pair.PrivateKey)
	must(w.t, err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(w.t, err)
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	m.PowerOff()
	must(w.t, w.DeleteAllOf(w.t.Context(), &certificatesv1.CertificateSigningRequest{}))
	must(w.t, m.WriteFile(w.t.Context(), folder+`\kubelet-client-current.pem`, bundle.AccessAdmins, text))
	must(w.t, m.PowerOn())
}

// operateBy runs the operator with a monotonic clock that is moved on, and a wall clock that is two days ahead.
func (w *world) operateBy(clock *clocktesting.FakeClock) (stop func()) {
	w.t.Helper()
	options, err := w.settings().options(w.output())
	must(w.t, err)
	options.Now, options.Clock = func() time.Time { return time.Now().Round(0).Add(48 * time.Hour) }, clock
	return w.operateWith(options)
}

// lose has the cluster lose kubelets, ten minutes ago by the clock of the operator.
func (w *world) lose(clock *clocktesting.FakeClock, names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.setLost(name)
		eventually(w.t, "an operator that sees that "+name+" is lost", func() bool {
			return strings.Contains(w.log.String(), `msg="a kubelet is lost" logger=node node=`+name+" ")
		})
	}
	clock.Step(10 * time.Minute)
}

// wakeUntil has the operator look at a Node, again and again, until something is done. Alone it looks only after minutes if the host was busy or
// did not answer.
func (w *world) wakeUntil(name, what string, done func() bool) {
	w.t.Helper()
	woken := time.Time{}
	eventually(w.t, what, func() bool {
		if done() {
			return true
		}
		// A Node that changes all the time is in the way of the operator's own writes.
		if time.Since(woken) > 2*time.Second {
			woken = time.Now()
			must(w.t, client.IgnoreNotFound(w.tryAnnotate(name, "example.com/woken", woken.String())))
		}
		return false
	})
}

// reachedAgain returns a condition: the operator has tried to reach a host after now.
func (w *world) reachedAgain(address string) func() bool {
	w.t.Helper()
	before := w.at.dialed(w.t, address)
	return func() bool { return w.at.dialed(w.t, address) > before }
}

// TestAHostWithAnExpiredCertificateJoinsAgain with what users have set on its Node, although the operator is another one by then. The host
// of a Machine cannot, which an Event of the Machine reports.
func TestAHostWithAnExpiredCertificateJoinsAgain(t *testing.T) {
	w := newWorld(t)
	w.machine("instance-r", "192.0.2.61")
	w.machine("machine-r", "192.0.2.62")
	w.machine("instance-s", "192.0.2.63")
	w.machine("instance-v", "192.0.2.64")
	w.machineObject("machine-r", "192.0.2.62")
	w.instances("192.0.2.61", "192.0.2.63", "192.0.2.64")
	clock := faults.NewClock(t.Context())
	stop := w.operateBy(clock)
	for _, name := range []string{"instance-r", "machine-r", "instance-s", "instance-v"} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
	}
	before := w.node("instance-r")
	const own = `{"key":"os","value":"Windows","effect":"NoSchedule"}`
	set := func(spec string) {
		must(t, w.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"example.com/owner":"b"}},"spec":{`+spec+`}}`))))
	}
	set(`"unschedulable":true,"taints":[` + own + `,{"key":"quarantine","value":"true","effect":"NoExecute"}]`)

	// One that is off for another reason stays as it is, and so does one whose certificate has expired by the clock of the operator alone.
	valid := w.node("instance-v").UID
	w.machines["instance-s"].PowerOff()
	w.expire("instance-v", 24*time.Hour)
	w.expire("instance-r", -24*time.Hour)
	w.expire("machine-r", -24*time.Hour)
	askedV, askedS := w.reachedAgain("192.0.2.64"), w.reachedAgain("192.0.2.63")
	w.lose(clock, "instance-v", "instance-s", "machine-r", "instance-r")
	w.wakeUntil("instance-v", "a question to instance-v", askedV)
	w.wakeUntil("instance-s", "a question to instance-s", askedS)
	w.wakeUntil("machine-r", "an event on the Machine", func() bool {
		return slices.ContainsFunc(w.events(configure.ReasonExpired, "machine-r"), func(note string) bool { return strings.Contains(note, "fix: delete the Machine") })
	})
	eventually(t, "a condition about its node", func() bool {
		c := w.condition(configure.HostsJoined)
		return c.Status == metav1.ConditionFalse && c.Reason == configure.ReasonExpired && strings.Contains(c.Message, "node machine-r: ")
	})
	// That its certificate has expired is for the host alone to say. It is not rid of a taint by that.
	w.wakeUntil("instance-r", "an event about the taint", func() bool {
		return slices.ContainsFunc(w.events(configure.ReasonExpired, "windows-instances"), func(note string) bool {
			return strings.Contains(note, "it has a taint (quarantine)") && strings.Contains(note, "fix: if it may join, remove the taint (oc adm taint node instance-r quarantine-)")
		})
	})
	if w.node("instance-r").UID != before.UID {
		t.Error("a node with a taint was deleted")
	}
	set(`"taints":[` + own + `]`)
	w.wakeUntil("instance-r", "the end of the Node", func() bool {
		n := w.findNode("instance-r")
		return n == nil || n.UID != before.UID
	})
	// An operator that stops may lose the event that it has just recorded.
	eventually(t, "an event that the host joins again", func() bool { return len(w.events(configure.ReasonRejoining, "windows-instances")) > 0 })
	w.awaitJudged("instance-s")
	w.awaitJudged("instance-v")
	stop()
	w.operateBy(clock)
	eventually(t, "a new Node that is complete", func() bool {
		n := w.findNode("instance-r")
		return n != nil && n.UID != before.UID && windowsnode.IsJoined(n.Annotations) && isReady(n)
	})
	n := w.node("instance-r")
	if n.Labels["team"] != "a" || n.Annotations["example.com/owner"] != "b" || !n.Spec.Unschedulable {
		t.Errorf("of what was set there are labels %v, annotations %v, unschedulable %t", n.Labels, n.Annotations, n.Spec.Unschedulable)
	}
	var kept corev1.ConfigMap
	must(t, w.Get(t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-rejoining-nodes"}, &kept))
	if len(kept.Data) > 0 {
		t.Errorf("what was set again is still kept: %v", kept.Data)
	}
	for _, name := range []string{"machine-r", "instance-s"} {
		if !w.hasNode(name) {
			t.Errorf("Node %s is gone", name)
		}
	}
	if n := w.findNode("instance-v"); n == nil || n.UID != valid {
		t.Error("a host whose certificate is valid has joined again")
	}
}
