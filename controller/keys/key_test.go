package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render/machines"
)

const namespace = "openshift-windows-machine-config-operator"

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func curve(c elliptic.Curve) *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(c, rand.Reader)) }

func edKey() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

// Forms of a key in PEM.
func openssh(key crypto.PrivateKey) string {
	return string(pem.EncodeToMemory(must(ssh.MarshalPrivateKey(key, "a comment"))))
}

func pkcs8(key any) string { return block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))) }
func sec1(key *ecdsa.PrivateKey) string {
	return block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(key)))
}

func pkcs1(key *rsa.PrivateKey) string {
	return block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func secret(text string) corev1.Secret {
	return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName}, Data: map[string][]byte{SecretKey: []byte(text)}}
}

func TestKeysThatAreFit(t *testing.T) {
	long, p256, ed := must(rsa.GenerateKey(rand.Reader, 2048)), curve(elliptic.P256()), edKey()
	parameters := block("EC PARAMETERS", must(asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7})))
	for name, c := range map[string]struct {
		text   string
		public crypto.PublicKey
	}{
		"RSA of 2048 bits, PKCS #1":      {pkcs1(long), long.Public()},
		"RSA, PKCS #8":                   {pkcs8(long), long.Public()},
		"RSA, OpenSSH":                   {openssh(long), long.Public()},
		"P-256, SEC 1":                   {sec1(p256), p256.Public()},
		"P-256 as openssl writes it":     {parameters + sec1(p256), p256.Public()},
		"Ed25519, OpenSSH":               {openssh(ed), ed.Public()},
		"Ed25519, PKCS #8":               {pkcs8(ed), ed.Public()},
		"line breaks of Windows":         {strings.ReplaceAll(openssh(ed), "\n", "\r\n"), ed.Public()},
		"no line break at the end":       {strings.TrimSpace(openssh(ed)), ed.Public()},
		"text before and after":          {"Proc: x\n\n" + openssh(ed) + "\nend\n", ed.Public()},
		"a certificate beside it":        {block("CERTIFICATE", []byte("x")) + openssh(ed), ed.Public()},
		"a byte order mark, then a line": {"\ufeff\n" + openssh(ed), ed.Public()},
	} {
		key, findings := ReadSecret(secret(c.text), namespace)
		if len(findings) > 0 || key.IsZero() {
			t.Errorf("%s: %+v", name, findings)
			continue
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(must(ssh.NewPublicKey(c.public)))))
		if key.PublicKey() != line || key.SecretText().Reveal() != c.text || string(ssh.MarshalAuthorizedKey(key.Signer().PublicKey())) != line+"\n" {
			t.Errorf("%s: %q, want %q", name, key.PublicKey(), line)
		}
	}
}

// dsaKey is of the form that OpenSSL writes. The numbers are no real key.
func dsaKey() string {
	n := big.NewInt(12345)
	return block("DSA PRIVATE KEY", must(asn1.Marshal(struct {
		Version         int
		P, Q, G, Y, Xxx *big.Int
	}{0, n, n, n, n, n})))
}

// shortRSA makes a key that Go only makes if it is told to. Read is not told.
func shortRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Setenv("GODEBUG", "rsa1024min=0")
	defer os.Unsetenv("GODEBUG") //nolint:errcheck // its name is valid
	return must(rsa.GenerateKey(rand.Reader, bits))
}

func TestKeysThatAreRefused(t *testing.T) {
	ed, p224 := edKey(), curve(elliptic.P224())
	right := openssh(ed)
	passphrase := string(pem.EncodeToMemory(must(ssh.MarshalPrivateKeyWithPassphrase(ed, "", []byte("x")))))
	//nolint:staticcheck // old keys are written so
	oldPassphrase := string(pem.EncodeToMemory(must(x509.EncryptPEMBlock(rand.Reader, "RSA PRIVATE KEY", []byte("x"), []byte("x"), x509.PEMCipherAES128))))
	public := string(ssh.MarshalAuthorizedKey(must(ssh.NewPublicKey(ed.Public()))))
	for name, c := range map[string]struct {
		secret            corev1.Secret
		reason, inMessage string
		withoutField      bool
	}{
		"no Secret":                {corev1.Secret{}, reason.PrivateKeyMissing, "does not exist", true},
		"an empty Secret":          {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName}}, reason.PrivateKeyMissing, "has no key private-key.pem", false},
		"another name of the key":  {corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: SecretName}, Data: map[string][]byte{"ssh-privatekey": []byte(right), "a": nil}}, reason.PrivateKeyMissing, "only a, ssh-privatekey", false},
		"an empty key":             {secret(" \n"), reason.PrivateKeyMissing, "is empty", false},
		"text":                     {secret("hello"), reason.PrivateKeyNotPEM, "not a private key in PEM", false},
		"bytes":                    {secret("\x00\xff"), reason.PrivateKeyNotPEM, "not a private key in PEM", false},
		"a public key":             {secret(public), reason.PrivateKeyNotPEM, "public key", false},
		"a public key in PEM":      {secret(block("PUBLIC KEY", []byte("x"))), reason.PrivateKeyNotPEM, "public key", false},
		"a certificate":            {secret(block("CERTIFICATE", []byte("x"))), reason.PrivateKeyNotPEM, "not a private key in PEM", false},
		"a key of PuTTY":           {secret("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n"), reason.PrivateKeyNotPEM, "PuTTY", false},
		"base64 twice":             {secret(base64.StdEncoding.EncodeToString([]byte(right))), reason.PrivateKeyNotPEM, "twice", false},
		"the first half":           {secret(right[:len(right)/2]), reason.PrivateKeyMalformed, "incomplete", false},
		"indented lines":           {secret("  " + strings.ReplaceAll(right, "\n", "\n  ")), reason.PrivateKeyMalformed, "indented", false},
		"lines joined by blanks":   {secret(strings.ReplaceAll(right, "\n", " ")), reason.PrivateKeyMalformed, "joined", false},
		"a body that is no key":    {secret(block("OPENSSH PRIVATE KEY", []byte("x"))), reason.PrivateKeyMalformed, "damaged", false},
		"an unknown kind of key":   {secret(block("ANY PRIVATE KEY", []byte("x"))), reason.PrivateKeyMalformed, "kind", false},
		"a passphrase":             {secret(passphrase), reason.PrivateKeyLocked, "passphrase", false},
		"a passphrase, PKCS #1":    {secret(oldPassphrase), reason.PrivateKeyLocked, "passphrase", false},
		"a passphrase, PKCS #8":    {secret(block("ENCRYPTED PRIVATE KEY", []byte("x"))), reason.PrivateKeyLocked, "passphrase", false},
		"RSA of 1024 bits":         {secret(pkcs1(shortRSA(t, 1024))), reason.PrivateKeyWeak, "RSA key of 1024 bits", false},
		"RSA of 512 bits, PKCS #8": {secret(pkcs8(shortRSA(t, 512))), reason.PrivateKeyWeak, "RSA key of 512 bits", false},
		"DSA":                      {secret(dsaKey()), reason.PrivateKeyWeak, "DSA", false},
		"P-224":                    {secret(sec1(p224)), reason.PrivateKeyWeak, "curve", false},
		"P-224, PKCS #8":           {secret(pkcs8(p224)), reason.PrivateKeyWeak, "curve", false},
		"two keys":                 {secret(right + openssh(edKey())), reason.PrivateKeyAmbiguous, "2 private keys", false},
	} {
		key, findings := ReadSecret(c.secret, namespace)
		if !key.IsZero() || len(findings) != 1 {
			t.Errorf("%s: %+v, want one finding", name, findings)
			continue
		}
		f := findings[0]
		if f.Severity != bundle.SeverityError || f.Reason != c.reason || !strings.Contains(f.Message, c.inMessage) || f.Fix == "" {
			t.Errorf("%s: %+v", name, f)
		}
		if f.Object.String() != "Secret/"+namespace+"/"+SecretName || (f.Field == "") != c.withoutField {
			t.Errorf("%s: on %s %s", name, f.Object, f.Field)
		}
		hasNothingOf(t, name, f, c.secret)
	}
}

// hasNothingOf checks that eight characters of the text are not in a finding.
func hasNothingOf(t *testing.T, name string, f bundle.Finding, s corev1.Secret) {
	t.Helper()
	shown := string(must(json.Marshal(f)))
	for _, line := range strings.Fields(string(s.Data[SecretKey])) {
		if strings.Contains(line, "-----") || strings.HasPrefix(line, "PuTTY") {
			continue
		}
		for ; len(line) >= 8; line = line[8:] {
			if strings.Contains(shown, line[:8]) {
				t.Errorf("%s: %s has a part of the key", name, shown)
			}
		}
	}
}

func TestAKeyIsNotPrinted(t *testing.T) {
	text := openssh(edKey())
	key, _ := ReadSecret(secret(text), namespace)
	for _, verb := range []string{"%v", "%+v", "%s"} {
		if shown := fmt.Sprintf(verb, key.SecretText()); strings.Contains(shown, "PRIVATE") {
			t.Errorf("%s prints the key", verb)
		}
	}
}

// TestHash has a key and what the existing operator writes for it: sha256sum of the line without its end.
func TestHash(t *testing.T) {
	key := Key{public: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICaAOGe/oo8a/3wxU9zjAX+EEg36wyXSUC+BwD6oNl+W"}
	if got := key.PublicKeyHash(); got != "a82230dcbf0caa25e27d37744e39f0264eec45c8405fb090640cc7f72d36305d" {
		t.Errorf("%s", got)
	}
}

func TestUserDataSecrets(t *testing.T) {
	key, _ := ReadSecret(secret(openssh(edKey())), namespace)
	for _, p := range machines.Platforms() {
		list, err := UserDataSecrets(p, key, []string{machines.Namespace, machines.ClusterAPINamespace})
		if err != nil || len(list) != 2 {
			t.Fatalf("%s: %d Secrets, %v", p, len(list), err)
		}
		text := must(machines.UserData(p, key.PublicKey()))
		for i, namespace := range []string{"openshift-machine-api", "openshift-cluster-api"} {
			want := corev1.Secret{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "windows-user-data"},
				Type:       "Opaque",
				Data:       map[string][]byte{"userData": []byte(text)},
			}
			if diff := cmp.Diff(want, list[i]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", p, diff)
			}
		}
		if !strings.Contains(text, key.PublicKey()) || strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s: the user data lacks the public key, or has the private one", p)
		}
	}
	if list, err := UserDataSecrets(bundle.PlatformNone, key, []string{machines.Namespace}); len(list) > 0 || err != nil {
		t.Errorf("platform None: %v, %v", list, err)
	}
	if _, err := UserDataSecrets(bundle.PlatformAWS, Key{}, []string{machines.Namespace}); err == nil {
		t.Error("user data without a key")
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{openssh(edKey()), sec1(curve(elliptic.P256())), pkcs8(edKey()), dsaKey(), "x", block("ENCRYPTED PRIVATE KEY", nil)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		key, findings := ReadSecret(secret(string(text)), namespace)
		if key.IsZero() != (len(findings) == 1) {
			t.Fatalf("a key: %t, findings %+v", !key.IsZero(), findings)
		}
		if key.IsZero() {
			return
		}
		if _, err := machines.PublicKey(key.PublicKey()); err != nil {
			t.Errorf("%q is accepted, and its public key is not: %v", text, err)
		}
	})
}
