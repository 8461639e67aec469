package hosts

import (
	"crypto/ed25519"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/controller/keys"
	"wmco/controller/windowsnode/record"
)

// privateKey returns a private key as the Secret has it.
func privateKey(t *testing.T, seed byte) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed)), "")
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

// TestASecretThatCannotBeUsedWithdrawsNoKey: the last key that was read stays, with why there is no other, and those who asked are told of each change.
func TestASecretThatCannotBeUsedWithdrawsNoKey(t *testing.T) {
	l := newLogin(t)
	calls := 0
	l.OnKeyChange(func() { calls++ })
	read := func(what string, wantKey, wantProblem string, wantCalls int) string {
		t.Helper()
		got, err := l.ReadPublicKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		public, problem := l.PublicKey()
		if got != public || wantKey != "any" && got != wantKey || problem.Reason != wantProblem || calls != wantCalls {
			t.Errorf("%s: %q, %q, %d calls; want %q, %q, %d", what, got, problem.Reason, calls, wantKey, wantProblem, wantCalls)
		}
		return got
	}
	read("without a Secret", "", "PrivateKeyMissing", 1)
	read("again", "", "PrivateKeyMissing", 1)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: keys.SecretName}, Data: map[string][]byte{keys.SecretKey: privateKey(t, 1)}}
	if err := l.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	first := read("with a key", "any", "", 2)
	change := func(text []byte) {
		t.Helper()
		secret.Data[keys.SecretKey] = text
		if err := l.Client.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	change([]byte("damaged"))
	read("damaged", first, "PrivateKeyNotPEM", 3)
	change(append(privateKey(t, 1), privateKey(t, 2)...))
	read("two keys", first, "PrivateKeyAmbiguous", 4)
	change(privateKey(t, 1))
	read("the same key", first, "", 5)
	change(privateKey(t, 2))
	if second := read("another key", "any", "", 6); second == first || second == "" {
		t.Errorf("the second key is %q", second)
	}
	if err := l.Client.Delete(t.Context(), secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// TestTheKeyOfALoginIsNoted by the host, not by its address.
func TestTheKeyOfALoginIsNoted(t *testing.T) {
	l := &Login{}
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	at := remote.Target{User: "Administrator", Address: "10.0.0.1:22", ID: "machine_a"}
	if got := l.UsedKey(record.OfMachine("a")); got != "" {
		t.Errorf("before a login: %q", got)
	}
	l.NoteLogin(at, signer.PublicKey())
	const want = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0Cpvf02Rw3G4gwYIhyNdyRhl7Qz2"
	if got := l.UsedKey(record.OfMachine("a")); len(got) != len(want) || got[:20] != want[:20] {
		t.Errorf("%q", got)
	}
	if got := l.UsedKey(record.OfMachine("b")); got != "" {
		t.Errorf("another host at the address: %q", got)
	}
}
