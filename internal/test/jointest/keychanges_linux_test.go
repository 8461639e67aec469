package jointest_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/controller/gather"
	"wmco/controller/keys"
	"wmco/controller/status"
	"wmco/controller/windowsnode/record"
)

// keyText returns a key with its private half as the Secret has it, under a passphrase if that is not empty.
func keyText(t *testing.T, key crypto.Signer, passphrase string) (ssh.Signer, []byte) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	must(t, err)
	return signer, pem.EncodeToMemory(block)
}

// neverLockedOut checks that each set of keys that a host accepted has one in common with the set before.
func (k *keyWatch) neverLockedOut(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := 1; i < len(k.seen); i++ {
		if !slices.ContainsFunc(k.seen[i].lines, func(line string) bool { return slices.Contains(k.seen[i-1].lines, line) }) {
			t.Errorf("%s accepted %q, and after it %q", k.m.Name(), k.seen[i-1].lines, k.seen[i].lines)
		}
	}
}

// TestTheKeyIsChangedAgainBeforeHostsHaveIt: twice in a row, back to the earlier one, to keys of other kinds and with the line breaks of Windows, while
// one host is off. No host is locked out, and each ends with the key of the Secret. An instance whose entry is removed before it has the key is cleaned up.
func TestTheKeyIsChangedAgainBeforeHostsHaveIt(t *testing.T) {
	w := newWorld(t)
	names, addresses := []string{"instance-on", "instance-away"}, []string{"192.0.2.207", "192.0.2.208"}
	watches := map[string]*keyWatch{}
	for i, name := range names {
		watches[name] = w.watchKeys(w.machine(name, addresses[i]))
	}
	w.instances(addresses...)
	first := w.signer
	firstText := w.secretText()
	w.operate()
	w.allJoin(names)
	accepted := func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue }
	eventually(t, "the first key to be accepted", accepted)
	on, away := watches["instance-on"], watches["instance-away"]
	ends := func(what string, key ssh.Signer) {
		t.Helper()
		eventually(t, what, func() bool {
			return on.accepts(key) && w.acceptedKey(record.OfEntry(addresses[0])) == lineOf(key) && w.node("instance-on").Annotations[keys.HashAnnotation] == keys.HashPublicKey(lineOf(key))
		})
	}

	_, second := newKeyText(t)
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	third, thirdText := keyText(t, curve, "")
	w.setSecret(second)
	w.setSecret(thirdText)
	ends("the second of two keys", third)

	w.machines["instance-away"].PowerOff()
	fourth, fourthText := newKeyText(t)
	w.setSecret(bytes.ReplaceAll(append(fourthText, "  \n\n"...), []byte("\n"), []byte("\r\n")))
	eventually(t, "both keys on the host", func() bool { return !on.accepts(third) })
	w.setSecret(thirdText)
	ends("the earlier key, restored", third)

	long, err := rsa.GenerateKey(rand.Reader, 3072)
	must(t, err)
	locked, lockedText := keyText(t, long, "passphrase")
	w.setSecret(lockedText)
	eventually(t, "a key with a passphrase to be refused", func() bool {
		c := w.condition(status.KeysAccepted)
		return c.Reason == status.ReasonKeyUnusable && strings.Contains(c.Message, "passphrase")
	})
	_, openText := keyText(t, long, "")
	w.setSecret(openText)
	ends("the same key without a passphrase", locked)
	w.setSecret(firstText)
	ends("the first key", first)
	w.setSecret(fourthText)
	ends("the last key", fourth)

	// It has the key that the Secret had when it was switched off. Its entry goes before it is back.
	if !away.accepts(third) {
		t.Error("the host that is off accepts another key than before")
	}
	w.removeEntry(addresses[1])
	w.awaitEvent("InstanceRemovalWaiting", "instance-away", "fix: ")
	must(t, w.machines["instance-away"].PowerOn())
	eventually(t, "the removal of the instance that has an earlier key", func() bool { return !w.hasNode("instance-away") })
	w.machines["instance-away"].isEmpty(t)
	eventually(t, "the last key to be accepted", accepted)
	for _, name := range names {
		watches[name].neverLockedOut(t)
	}
}

// secretText returns what the Secret of the private key has.
func (w *world) secretText() []byte {
	w.t.Helper()
	var secret corev1.Secret
	must(w.t, w.Get(w.t.Context(), types.NamespacedName{Namespace: gather.OperatorNamespace, Name: keys.SecretName}, &secret))
	return secret.Data[keys.SecretKey]
}
