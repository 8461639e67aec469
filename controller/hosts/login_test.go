package hosts

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/controller/keys"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/testenv"
)

var cluster testenv.Environment

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

const namespace = "operator"

// newLogin returns a login to an empty namespace.
func newLogin(t *testing.T) *Login {
	t.Helper()
	c := cluster.Client(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PinsConfigMap}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}},
	} {
		if err := c.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(namespace), client.HasLabels{RecordsLabel}); err != nil {
		t.Fatal(err)
	}
	return loginTo(c)
}

func loginTo(c client.Client) *Login {
	return &Login{Live: c, Client: c, Namespace: namespace, Records: &Records{Live: c, Client: c, Cache: c, Namespace: namespace}}
}

// entryAt is the host of an entry of windows-instances.
func entryAt(address string) remote.Target {
	t := remote.Target{User: "Administrator", Address: address}
	t.ID = string(record.OfEntry(t.Host()))
	return t
}

// hostKey returns one of 256 keys.
func hostKey(t *testing.T, number byte) ssh.PublicKey {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = number
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed).Public())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pinned(t *testing.T, l *Login, address string) string {
	t.Helper()
	keys, err := l.Pinned(t.Context(), entryAt(address))
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) == 0 {
		return ""
	}
	return EncodeKey(keys[0])
}

func TestHostKeysArePinnedForTheLifeOfTheHost(t *testing.T) {
	l := newLogin(t)
	for _, address := range []string{"10.0.0.1:22", "win-2.example.com:22"} {
		if got := pinned(t, l, address); got != "" {
			t.Errorf("%s: %s before the first contact", address, got)
		}
		for range 2 { // again is no change
			if err := l.Pin(t.Context(), entryAt(address), hostKey(t, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := pinned(t, l, address); got != EncodeKey(hostKey(t, 1)) {
			t.Errorf("%s: %q is pinned", address, got)
		}
		if err := l.Pin(t.Context(), entryAt(address), hostKey(t, 2)); !errors.Is(err, ErrPinnedMeanwhile) {
			t.Errorf("%s: another key: %v", address, err)
		}
	}
	if err := l.Records.ForgetRecord(t.Context(), "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if got := pinned(t, l, "10.0.0.1:22"); got != "" {
		t.Errorf("forgotten: %s", got)
	}
	if got := pinned(t, l, "win-2.example.com:22"); got == "" {
		t.Error("another host was forgotten too")
	}
}

// TestOneOfManyFirstContactsPins: as with two operators for a moment.
func TestOneOfManyFirstContactsPins(t *testing.T) {
	l := newLogin(t)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = l.Pin(t.Context(), entryAt("10.0.0.1:22"), hostKey(t, byte(i))) })
	}
	all.Wait()
	accepted := -1
	for i, err := range errs {
		if err == nil && accepted >= 0 {
			t.Errorf("keys %d and %d were pinned", accepted, i)
		}
		if err == nil {
			accepted = i
		}
	}
	if accepted < 0 || pinned(t, l, "10.0.0.1:22") != EncodeKey(hostKey(t, byte(accepted))) {
		t.Errorf("%d was accepted: %v", accepted, errs)
	}
}

// TestManyHostsArePinnedAndForgottenAtOnce: in one ConfigMap, also by two operators for a moment.
func TestManyHostsArePinnedAndForgottenAtOnce(t *testing.T) {
	l := newLogin(t)
	both := []*Login{l, loginTo(l.Client)}
	at := func(i int) string { return fmt.Sprintf("10.0.0.%d:22", i) }
	const hosts = 50
	together := func(do func(l *Login, i int) error) {
		var all sync.WaitGroup
		for i := range hosts {
			all.Go(func() {
				if err := do(both[i%2], i); err != nil {
					t.Errorf("%s: %v", at(i), err)
				}
			})
		}
		all.Wait()
	}
	together(func(l *Login, i int) error { return l.Pin(t.Context(), entryAt(at(i)), hostKey(t, byte(i))) })
	for i := range hosts {
		if got := pinned(t, l, at(i)); got != EncodeKey(hostKey(t, byte(i))) {
			t.Errorf("%s: %q is pinned", at(i), got)
		}
	}
	together(func(l *Login, i int) error { return l.Records.ForgetRecord(t.Context(), record.ID(entryAt(at(i)).ID)) })
	for i := range hosts {
		if got := pinned(t, l, at(i)); got != "" {
			t.Errorf("%s: %q is still pinned", at(i), got)
		}
	}
}

// TestUnpinIsACommandThatWorks runs its patch: for a key in the record of the host, and for one that is pinned for its address.
func TestUnpinIsACommandThatWorks(t *testing.T) {
	l := newLogin(t)
	target := entryAt("10.0.0.1:22")
	byAddress := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PinsConfigMap}, Data: map[string]string{"10.0.0.1": EncodeKey(hostKey(t, 2))}}
	for where, pin := range map[string]func() error{
		"windows-ssh-host-keys":          func() error { return l.Client.Create(t.Context(), byAddress) },
		record.ConfigMapName("10.0.0.1"): func() error { return l.Pin(t.Context(), target, hostKey(t, 1)) },
	} {
		if err := pin(); err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`^oc -n operator patch configmap (\S+) --type=json -p '(.*)'$`).FindStringSubmatch(l.Unpin(target))
		if m == nil || m[1] != where {
			t.Fatalf("%s: %s", where, l.Unpin(target))
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: m[1]}}
		if err := l.Client.Patch(t.Context(), cm, client.RawPatch(types.JSONPatchType, []byte(m[2]))); err != nil {
			t.Fatal(err)
		}
		if got := pinned(t, l, "10.0.0.1:22"); got != "" {
			t.Errorf("%s: still pinned: %s", where, got)
		}
	}
}

// TestAPinOfAnAddressMovesToTheRecordOfItsHost: the next host with the address is another one.
func TestAPinOfAnAddressMovesToTheRecordOfItsHost(t *testing.T) {
	l := newLogin(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PinsConfigMap}, Data: map[string]string{"10.0.0.1": EncodeKey(hostKey(t, 1)), "10.0.0.2": EncodeKey(hostKey(t, 2))}}
	if err := l.Client.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	first, second := entryAt("10.0.0.1:22"), entryAt("10.0.0.1:22")
	first.ID, second.ID = string(record.OfMachine("a")), string(record.OfMachine("b"))
	if err := l.Pin(t.Context(), first, hostKey(t, 2)); err != nil {
		t.Fatal(err) // whoever pins has not asked for the pin
	}
	if err := l.Records.ForgetRecord(t.Context(), record.OfMachine("a")); err != nil {
		t.Fatal(err)
	}
	err := l.BindRecord(t.Context(), first, func(r record.Record) (record.Record, error) {
		r.Node, r.NodeUID = "win-a", "uid"
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r, ok, err := l.Records.GetRecord(t.Context(), record.OfMachine("a"))
	if err != nil || !ok || r.HostKey != EncodeKey(hostKey(t, 1)) || r.Address != "10.0.0.1" || !r.IsNode("win-a", "uid") {
		t.Errorf("%+v, %t, %v", r, ok, err)
	}
	if keys, err := l.Pinned(t.Context(), second); err != nil || len(keys) > 0 {
		t.Errorf("another host with the address: %v, %v", keys, err)
	}
	if err := l.Client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil || len(cm.Data) != 1 {
		t.Errorf("left: %v, %v", cm.Data, err)
	}
	if _, err := l.Pinned(t.Context(), remote.Target{Address: "10.0.0.1:22"}); err == nil {
		t.Error("a target that does not say which host it is has a pin")
	}
}

// TestAPinSaysUntilWhenItMayHaveBeenWritten: by the API server's record of who has written the key, not by that of another key.
func TestAPinSaysUntilWhenItMayHaveBeenWritten(t *testing.T) {
	l := newLogin(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PinsConfigMap}, Data: map[string]string{"10.0.0.1": EncodeKey(hostKey(t, 1))}}
	if err := l.Client.Create(t.Context(), cm, client.FieldOwner("existing-operator")); err != nil {
		t.Fatal(err)
	}
	created := cm.CreationTimestamp.Time
	time.Sleep(time.Until(created.Add(2 * time.Second))) // times of the API server are in seconds
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"win.example.com":%q}}`, EncodeKey(hostKey(t, 2))))
	if err := l.Client.Patch(t.Context(), cm, patch, client.FieldOwner("a-person")); err != nil {
		t.Fatal(err)
	}
	written := map[string]time.Time{}
	err := l.ForgetPins(t.Context(), func(p Pin) bool {
		written[p.Address] = p.Written
		return false
	})
	if err != nil || len(written) != 2 || written["10.0.0.1"].After(created) || written["10.0.0.1"].IsZero() || !written["win.example.com"].After(created) {
		t.Errorf("%v, created %s, %v", written, created, err)
	}
	if w := writtenUntil(&corev1.ConfigMap{Data: cm.Data}, "10.0.0.1"); !w.IsZero() {
		t.Errorf("of an object that does not say it: %s", w)
	}
}

func TestDamagedPinsAreErrors(t *testing.T) {
	l := newLogin(t)
	for _, text := range []string{"", "%", "AAAA", "c3NoLWVkMjU1MTk="} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PinsConfigMap}, Data: map[string]string{"10.0.0.1": text}}
		if err := l.Client.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		if keys, err := l.Pinned(t.Context(), entryAt("10.0.0.1:22")); err == nil {
			t.Errorf("%q is %v", text, keys)
		}
		if err := l.Client.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheKeyIsReadFromItsSecret(t *testing.T) {
	l := newLogin(t)
	refused := (*RefusedError)(nil)
	if _, err := l.Signers(t.Context()); !errors.As(err, &refused) || refused.Fix() == "" {
		t.Errorf("without a Secret: %v", err)
	}
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "")
	if err != nil {
		t.Fatal(err)
	}
	good := pem.EncodeToMemory(block)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: good}}
	if err := l.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	signers, err := l.Signers(t.Context())
	if err != nil || len(signers) != 1 || signers[0].PublicKey().Type() != ssh.KeyAlgoED25519 {
		t.Errorf("%v, %v", signers, err)
	}
	body := strings.Split(string(good), "\n")[1]
	secret.Data[keys.SecretKey] = []byte(strings.Replace(string(good), body, body[:40], 1))
	if err := l.Client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Signers(t.Context()); err == nil || strings.Contains(err.Error(), body[:20]) {
		t.Errorf("a damaged key: %v", err)
	}
}

// TestAnExpectedKeyIsKeptNowhere: it decides while the host is reached for the first time, after pinned keys, and is in no object. The message about
// another key is how to remove it from the Node.
func TestAnExpectedKeyIsKeptNowhere(t *testing.T) {
	l, own, other := newLogin(t), hostKey(t, 1), hostKey(t, 2)
	at := entryAt("10.0.0.9:22")
	forget := l.ExpectKey(record.ID(at.ID), "win-old", EncodeKey(other))
	if got := l.PinnedKey(t.Context(), at); got == nil || EncodeKey(got) != EncodeKey(other) {
		t.Errorf("the expected key does not count: %v", got)
	}
	if command := l.Unpin(at); command != UnpinNodeCommand("win-old") {
		t.Errorf("what to do about another key: %s", command)
	}
	if r, known, err := l.Records.GetRecord(t.Context(), record.ID(at.ID)); known || err != nil {
		t.Errorf("it was kept: %+v, %v", r, err)
	}
	if err := l.Pin(t.Context(), at, own); err != nil {
		t.Fatal(err)
	}
	if got := l.PinnedKey(t.Context(), at); EncodeKey(got) != EncodeKey(own) {
		t.Error("a pinned key does not win")
	}
	next := entryAt("10.0.0.10:22")
	l.ExpectKey(record.ID(next.ID), "win-old", EncodeKey(other))()
	forget()
	if got := l.PinnedKey(t.Context(), next); got != nil {
		t.Error("a key is expected for ever")
	}
	if !SamePin(own, EncodeKey(own)+"\n") || SamePin(own, EncodeKey(other)) || SamePin(own, "?") || SamePin(nil, EncodeKey(own)) {
		t.Error("keys are not compared as they are")
	}
}
