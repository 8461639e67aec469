package jointest_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/keys/username"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// keyWatch has the SSH server of a machine accept what administrators_authorized_keys of the simulated Windows has, and no other key.
type keyWatch struct {
	m  *joinedMachine
	mu sync.Mutex
	// seen are the keys that were accepted, one entry for each change, each with whether a login with another key was seen before.
	seen []acceptedKeys
}

type acceptedKeys struct {
	lines []string
	// log is what the SSH server had logged before.
	log string
}

func lineOf(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

// watchKeys begins with the key that the machine accepts now.
func (w *world) watchKeys(m *joinedMachine) *keyWatch {
	w.t.Helper()
	k := &keyWatch{m: m}
	must(w.t, m.Edit(w.t.Context(), func(s *simulation.State) { must(w.t, s.Authorize(lineOf(w.signer))) }))
	if w.memory != nil { // an exchange of keys may take no time
		end := m.Host.End
		m.Host.End = func(op simulation.Operation) error { return errors.Join(end(op), k.follow()) }
		must(w.t, k.follow())
		return k
	}
	w.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := k.follow(); err != nil && ctx.Err() == nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	return k
}

// follow gives the SSH server the keys of the host.
func (k *keyWatch) follow() error {
	var lines []string
	if err := k.m.Look(context.Background(), func(state *simulation.State) { lines = state.AuthorizedKeys() }); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.seen); n > 0 && slices.Equal(k.seen[n-1].lines, lines) {
		return nil
	}
	log, err := k.m.ssh.log()
	if err != nil {
		return err
	}
	k.seen = append(k.seen, acceptedKeys{lines, log})
	return k.m.ssh.acceptOnly(lines...)
}

// accepts reports whether the host accepts exactly these keys.
func (k *keyWatch) accepts(signers ...ssh.Signer) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen) > 0 && slices.Equal(k.seen[len(k.seen)-1].lines, sortedLines(signers))
}

func sortedLines(signers []ssh.Signer) []string {
	var lines []string
	for _, s := range signers {
		lines = append(lines, lineOf(s))
	}
	return slices.Sorted(slices.Values(lines))
}

// checkExchange checks that the host accepted the old key, then both, then the new one, and whether the operator had logged in with the new one before
// the old one was removed.
func (k *keyWatch) checkExchange(t *testing.T, before, now ssh.Signer, byLogin bool) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	want := [][]string{sortedLines([]ssh.Signer{before}), sortedLines([]ssh.Signer{before, now}), sortedLines([]ssh.Signer{now})}
	if !slices.EqualFunc(k.seen, want, func(a acceptedKeys, b []string) bool { return slices.Equal(a.lines, b) }) {
		t.Errorf("%s accepted, one after the other: %v", k.m.Name(), k.seen)
		return
	}
	if login := ssh.FingerprintSHA256(now.PublicKey()); strings.Contains(k.seen[2].log, login) != byLogin {
		t.Errorf("%s: a login with %s before the old key was removed: %t, want %t", k.m.Name(), login, !byLogin, byLogin)
	}
}

// forgetEarlier has the exchange begin with what the host accepts now.
func (k *keyWatch) forgetEarlier() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = k.seen[len(k.seen)-1:]
}

// mayLogIn reports whether the machine accepts a login with this key.
func (w *world) mayLogIn(m *joinedMachine, key ssh.Signer) bool {
	w.t.Helper()
	c, err := m.ssh.dial(w.t.Context())
	must(w.t, err)
	defer c.Close()
	transport, _, _, err := ssh.NewClientConn(c, m.ssh.address(), &ssh.ClientConfig{
		User: m.ssh.user(), Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // a test asks its own server
	})
	if err != nil {
		return false
	}
	must(w.t, transport.Close())
	return true
}

// setSecret gives the Secret of the private key another text; none deletes it.
func (w *world) setSecret(text []byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: keys.SecretName}}
	if text == nil {
		must(w.t, w.Delete(w.t.Context(), secret))
		return
	}
	secret.Data = map[string][]byte{keys.SecretKey: text}
	err := w.Update(w.t.Context(), secret)
	if client.IgnoreNotFound(err) == nil && err != nil {
		err = w.Create(w.t.Context(), secret)
	}
	must(w.t, err)
}

// newKeyText returns a new key with its private half as the Secret has it.
func newKeyText(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	signer, private := newKey(t)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

// acceptedKey returns the key of the record of a host.
func (w *world) acceptedKey(id record.ID) string {
	w.t.Helper()
	r, _, err := w.login().Records.GetRecord(w.t.Context(), id)
	must(w.t, err)
	return r.AcceptedKey
}

// TestTheKeyOfTheOperatorIsExchanged on a host of a Machine and on two instances, one of which is off when the Secret gets another key, while
// operators are killed. A host accepts the new key beside the old one until its agent has reported both, or the operator has logged in with the new one, as
// the setting ssh has it; nothing is restarted, drained or booted for it. A Node's annotations about keys are written back. A Secret that is damaged or deleted changes nothing.
func TestTheKeyOfTheOperatorIsExchanged(t *testing.T) {
	w := newWorld(t)
	names := []string{"machine-keys", "instance-keys", "instance-off"}
	addresses := map[string]string{"machine-keys": "192.0.2.201", "instance-keys": "192.0.2.202", "instance-off": "192.0.2.203"}
	watches := map[string]*keyWatch{}
	for _, name := range names {
		watches[name] = w.watchKeys(w.machine(name, addresses[name]))
	}
	w.machineObject("machine-keys", addresses["machine-keys"])
	w.instances(addresses["instance-keys"], addresses["instance-off"])
	ids := map[string]record.ID{"machine-keys": w.machineID("machine-keys"), "instance-keys": record.OfEntry(addresses["instance-keys"]), "instance-off": record.OfEntry(addresses["instance-off"])}
	before := w.signer
	o := w.process(w.settings())
	w.allJoin(names)
	for _, name := range names {
		eventually(t, "the key of "+name+" to be recorded", func() bool { return w.acceptedKey(ids[name]) == lineOf(before) })
	}
	eventually(t, "the keys to be accepted", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })
	o.kill()
	starts := map[string]map[string]int{}
	for _, name := range names {
		starts[name] = w.machines[name].Starts()
	}
	off := w.machines["instance-off"]
	off.PowerOff()

	next, text := newKeyText(t)
	w.setSecret(text)
	on := names[:2]
	// Killed after each step of a host: both keys, and the record.
	for _, step := range []struct {
		what string
		done func(name string) bool
	}{
		{"both keys on a host", func(name string) bool { return !watches[name].accepts(before) }},
		{"the new key in a record", func(name string) bool { return w.acceptedKey(ids[name]) == lineOf(next) }},
	} {
		o = w.process(w.settings())
		eventually(t, step.what, func() bool { return slices.ContainsFunc(on, step.done) })
		o.kill()
	}
	stop := w.operate()
	for _, name := range on {
		eventually(t, "the new key alone on "+name, func() bool { return watches[name].accepts(next) })
		watches[name].checkExchange(t, before, next, false)
		eventually(t, "the annotations of "+name, func() bool {
			n := w.node(name)
			return n.Annotations[keys.HashAnnotation] == keys.HashPublicKey(lineOf(next))
		})
		if !w.mayLogIn(w.machines[name], next) || w.mayLogIn(w.machines[name], before) {
			t.Errorf("%s does not accept the new key alone", name)
		}
		if got := w.machines[name].Starts(); !maps.Equal(got, starts[name]) {
			t.Errorf("%s has started services %v, before %v", name, got, starts[name])
		}
		if n := w.machines[name].Boots(); n > 2 { // the one of its join
			t.Errorf("%s was booted %d times", name, n)
		}
		if w.node(name).Spec.Unschedulable {
			t.Errorf("%s is cordoned", name)
		}
	}
	account, err := username.DecryptName(w.node("instance-keys").Annotations[username.Annotation], bundle.NewSecret(string(text)))
	if err != nil || account != "Administrator" {
		t.Errorf("the account on the Node: %q, %v", account, err)
	}

	// The host that is off is reported, and keeps the old key.
	eventually(t, "the condition about the host that is off", func() bool {
		c := w.condition(status.KeysAccepted)
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "1 of 3 nodes") && strings.Contains(c.Message, "instance-off")
	})
	if w.acceptedKey(ids["instance-off"]) != lineOf(before) || !watches["instance-off"].accepts(before) {
		t.Error("the host that is off does not keep the old key")
	}
	// A kubelet may write the annotations of its Node. They are no evidence about keys.
	w.annotate("instance-keys", keys.HashAnnotation, keys.HashPublicKey(lineOf(before)))
	eventually(t, "the annotation to be written back", func() bool {
		return w.node("instance-keys").Annotations[keys.HashAnnotation] == keys.HashPublicKey(lineOf(next))
	})
	if w.acceptedKey(ids["instance-keys"]) != lineOf(next) || !watches["instance-keys"].accepts(next) {
		t.Error("an annotation about its key has changed it")
	}
	// Who can write the records, and read no Secret, cannot have a host accept a key, nor keep the operator from knowing what it accepts.
	stranger, _ := newKey(t)
	must(t, w.login().Records.UpdateRecord(t.Context(), ids["instance-keys"], func(r record.Record) (record.Record, error) {
		r.AcceptedKey = lineOf(stranger)
		return r, nil
	}))
	w.annotate("instance-keys", "example.com/look", "again")
	eventually(t, "the record to be written back", func() bool { return w.acceptedKey(ids["instance-keys"]) == lineOf(next) })
	watches["instance-keys"].checkExchange(t, before, next, false)
	must(t, off.PowerOn())
	eventually(t, "the new key alone on instance-off", func() bool { return watches["instance-off"].accepts(next) })
	watches["instance-off"].checkExchange(t, before, next, false)
	eventually(t, "all keys to be accepted", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })

	// A Secret that cannot be used.
	desired := w.desired(names)
	for what, broken := range map[string][]byte{"damaged": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"), "two keys": slices.Concat(text, text), "gone": nil} {
		w.setSecret(broken)
		eventually(t, "the condition about a Secret that is "+what, func() bool { return w.condition(status.KeysAccepted).Reason == status.ReasonKeyUnusable })
		for _, name := range names {
			if !watches[name].accepts(next) || w.acceptedKey(ids[name]) != lineOf(next) {
				t.Errorf("the Secret is %s: %s accepts other keys than before", what, name)
			}
		}
	}
	stop()
	stop = w.operate() // which has never read a key
	eventually(t, "the condition after a restart", func() bool { return w.condition(status.KeysAccepted).Reason == status.ReasonKeyUnusable })
	w.awaitPublished(names[1])
	if got := w.desired(names); !maps.Equal(got, desired) {
		t.Errorf("a Secret that cannot be used published %v, before %v", got, desired)
	}
	w.setSecret(text)
	eventually(t, "the key to be accepted again", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })
	if got := w.desired(names); !maps.Equal(got, desired) {
		t.Errorf("the same key published %v, before %v", got, desired)
	}

	w.configure("ssh: Always\n")
	for _, name := range names {
		watches[name].forgetEarlier()
	}
	last, text := newKeyText(t)
	w.setSecret(text)
	for _, name := range names {
		eventually(t, "the last key alone on "+name, func() bool { return watches[name].accepts(last) })
		watches[name].checkExchange(t, next, last, true)
	}
	stop()
}

// awaitPublished waits until the operator has looked at the annotations of all nodes: that of one of them is not from it.
func (w *world) awaitPublished(name string) {
	w.t.Helper()
	const foreign = "not from the operator"
	w.annotate(name, published.DesiredAnnotation, foreign)
	eventually(w.t, "what the operator publishes for "+name, func() bool { return w.told(name) != foreign })
}

// desired returns the digests of the bundles that are published for nodes.
func (w *world) desired(names []string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, name := range names {
		n := windowsnode.Decode(*w.node(name))
		must(w.t, n.DesiredError)
		all[name] = fmt.Sprint(n.Desired.Bundle)
	}
	return all
}

// TestAnotherAccountOfAnEntryIsTakenUp once the operator has logged in with it.
func TestAnotherAccountOfAnEntryIsTakenUp(t *testing.T) {
	w := newWorld(t)
	const name, address = "instance-account", "192.0.2.205"
	w.machine(name, address)
	w.instances(address)
	w.operate()
	w.allJoin([]string{name})
	id := record.OfEntry(address)
	account := func() string {
		r, _, err := w.login().Records.GetRecord(t.Context(), id)
		must(t, err)
		return r.Account
	}
	eventually(t, "the account of the join", func() bool { return account() == "Administrator" })
	must(t, w.machines[name].ssh.forgetKeys())
	w.changeEntries(func(data map[string]string) { data[address] = "username=operator" })
	w.awaitEvent("LoginNotConfirmed", name, "fix: ")
	if account() != "Administrator" {
		t.Error("an account that was refused is recorded")
	}
	eventually(t, "a row of the status", func() bool { h := w.host(name); return h.Reason == "LoginRefused" && h.Fix != "" })
	must(t, w.machines[name].ssh.authorize(nil))
	w.changeEntries(func(data map[string]string) { data[address] = "username=operator2" })
	eventually(t, "the new account", func() bool { return account() == "operator2" })
	var secret corev1.Secret
	must(t, w.Get(t.Context(), types.NamespacedName{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, &secret))
	got, err := username.DecryptName(w.node(name).Annotations[username.Annotation], bundle.NewSecret(string(secret.Data[keys.SecretKey])))
	if err != nil || got != "operator2" {
		t.Errorf("the account on the Node: %q, %v", got, err)
	}
	eventually(t, "nothing more to report", func() bool { return w.host(name).Reason == "" })
}
