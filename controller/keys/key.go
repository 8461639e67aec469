package keys

import (
	"crypto/dsa" //nolint:staticcheck // to say that a key is of this kind
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render/machines"
)

// The Secret that the user makes, and its key.
const (
	SecretName = "cloud-private-key"
	SecretKey  = "private-key.pem"
)

// HashAnnotation of a Node holds Key.PublicKeyHash of the key whose public half its host accepts.
const HashAnnotation = "windowsmachineconfig.openshift.io/pub-key-hash"

// Key is a private key that is fit for logging in.
type Key struct {
	signer ssh.Signer
	text   bundle.Secret
	public string
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.signer == nil }

// Signer logs in with the key.
func (k Key) Signer() ssh.Signer { return k.signer }

// SecretText is the whole text of the Secret's key, with which user names are encrypted.
func (k Key) SecretText() bundle.Secret { return k.text }

// PublicKey returns the public half as a line of authorized_keys, without a comment.
func (k Key) PublicKey() string { return k.public }

// PublicKeyHash is HashPublicKey of PublicKey.
func (k Key) PublicKeyHash() string { return HashPublicKey(k.public) }

// HashPublicKey returns the SHA-256 of a line of authorized_keys without a comment, in hexadecimal, as the existing
// operator writes it on Nodes.
func HashPublicKey(public string) string {
	sum := sha256.Sum256([]byte(public))
	return hex.EncodeToString(sum[:])
}

// ReadSecret judges the Secret of the operator's namespace; one without a name is absent. A key that cannot be used is
// one finding of severity error.
func ReadSecret(secret corev1.Secret, namespace string) (Key, bundle.Findings) {
	r := reader{ref: bundle.Ref{Kind: "Secret", Namespace: namespace, Name: SecretName}}
	if secret.Name == "" {
		return r.refuseKey(reason.PrivateKeyMissing, "the Secret with the private key does not exist", r.createFix())
	}
	r.field = `data["` + SecretKey + `"]`
	text, ok := secret.Data[SecretKey]
	if !ok {
		message := "the Secret has no key " + SecretKey
		if len(secret.Data) > 0 {
			message += ", only " + strings.Join(slices.Sorted(maps.Keys(secret.Data)), ", ")
		}
		return r.refuseKey(reason.PrivateKeyMissing, message, r.createFix())
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return r.refuseKey(reason.PrivateKeyMissing, "the private key is empty", r.createFix())
	}
	block, ok := r.onlyPrivateKey(text)
	if !ok {
		return Key{}, r.findings
	}
	return r.parseKey(block, text)
}

const (
	convertFix = "give the file that ssh-keygen wrote, unchanged: oc create secret generic " + SecretName +
		" --from-file=" + SecretKey + "=<file>"
	strongFix = "create another key, such as ssh-keygen -t ed25519 or -t rsa -b 3072, and give it in its place"
)

func (r *reader) createFix() string {
	return "create the Secret with a key without a passphrase: ssh-keygen -t ed25519 -N '' -f key; oc create secret " +
		"generic " + SecretName + " --from-file=" + SecretKey + "=key -n " + r.ref.Namespace
}

// reader collects the findings about one Secret.
type reader struct {
	ref      bundle.Ref
	field    string
	findings bundle.Findings
}

func (r *reader) addFinding(why, message, fix string) {
	r.findings = append(r.findings, bundle.Finding{Severity: bundle.SeverityError, Reason: why, Object: r.ref,
		Field: r.field, Message: message, Fix: fix})
}

func (r *reader) refuseKey(why, message, fix string) (Key, bundle.Findings) {
	r.addFinding(why, message, fix)
	return Key{}, r.findings
}

const (
	privateKey   = "PRIVATE KEY"
	encryptedKey = "ENCRYPTED " + privateKey
)

// onlyPrivateKey returns the one private key of a PEM text. Other blocks, such as the parameters that openssl writes
// before a key on a curve, are skipped.
func (r *reader) onlyPrivateKey(text []byte) (*pem.Block, bool) {
	var found []*pem.Block
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, privateKey) {
			found = append(found, block)
		}
	}
	switch len(found) {
	case 0:
		r.explainNotPEM(string(text))
		return nil, false
	case 1:
		return found[0], true
	}
	r.addFinding(reason.PrivateKeyAmbiguous, fmt.Sprintf("there are %d private keys, and hosts accept one", len(found)),
		"give the one whose public key the hosts have")
	return nil, false
}

// explainNotPEM describes what a text without a PEM block of a private key seems to be.
func (r *reader) explainNotPEM(text string) {
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	switch {
	case strings.Contains(text, privateKey+"-----"):
		r.addFinding(reason.PrivateKeyMalformed,
			"the private key is incomplete, or its lines are indented or joined", convertFix)
	case err == nil && strings.Contains(string(decoded), "-----BEGIN "):
		r.addFinding(reason.PrivateKeyNotPEM, "the private key was encoded as base64 twice",
			"put the base64 text of the file into data, or the file itself into stringData")
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		r.addFinding(reason.PrivateKeyNotPEM, "the private key has the format of PuTTY",
			"export it as an OpenSSH key with PuTTYgen (Conversions)")
	case strings.Contains(text, "PUBLIC KEY-----") || isPublicKey(text):
		r.addFinding(reason.PrivateKeyNotPEM, "it is a public key, not a private one", convertFix)
	default:
		r.addFinding(reason.PrivateKeyNotPEM, "it is not a private key in PEM", convertFix)
	}
}

func isPublicKey(text string) bool {
	_, err := machines.PublicKey(text)
	return err == nil
}

// parseKey reads the key as the SSH library does. Its errors are not shown: they may contain parts of the key.
func (r *reader) parseKey(block *pem.Block, text []byte) (Key, bundle.Findings) {
	raw, err := ssh.ParseRawPrivateKey(pem.EncodeToMemory(block))
	locked := (*ssh.PassphraseMissingError)(nil)
	_, isDSA := raw.(*dsa.PrivateKey)
	switch {
	case errors.As(err, &locked) || block.Type == encryptedKey:
		return r.refuseKey(reason.PrivateKeyLocked, "the private key has a passphrase, which the operator cannot know",
			"remove it from a copy: ssh-keygen -p -N '' -f <copy>; access to the Secret protects the key")
	case isDSA:
		return r.refuseKey(reason.PrivateKeyWeak, "the private key is a DSA key, which OpenSSH refuses", strongFix)
	case err != nil:
		return r.refuseKey(reason.PrivateKeyMalformed,
			"the private key is damaged, or of a kind that SSH does not have", convertFix)
	}
	signer, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		return r.refuseKey(reason.PrivateKeyWeak,
			"the private key is of a kind or on a curve that SSH does not have", strongFix)
	}
	public, err := machines.PublicKey(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	if err != nil {
		// The error is about the public key alone, and has no part of it.
		return r.refuseKey(reason.PrivateKeyWeak, "the private key is too weak: "+strings.TrimPrefix(err.Error(),
			machines.ErrPublicKey.Error()+": "), strongFix)
	}
	return Key{signer: signer, text: bundle.NewSecret(string(text)), public: public}, nil
}
