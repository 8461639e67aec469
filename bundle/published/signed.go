package published

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wmco/bundle"
)

// A signed annotation is the text that Encode returns, with one more field at its end:
//
//	{"schema":1,"bundle":"sha256:...","nodeName":"win-a","term":1790000000,"sequence":7,...,"signatures":[{"key":"0123456789ab","sig":"..."}]}
//	\----------------------------- the signed text, with its closing brace --------------/
//
// The bytes themselves are signed, and the annotation is decoded from these bytes alone. So a reader does not have to write
// a value as its writer did, a field that it does not know is signed too, and a program that knows no signatures reads
// the same annotation.

// payloadType is what the signatures are about: a signature for something else is none for a desired bundle.
const payloadType = "application/vnd.windowsmachineconfig.openshift.io.desired-bundle.v1+json"

// signaturesField begins the signatures. It cannot occur within a text of JSON, where quotes are escaped.
const signaturesField = `,"signatures":`

// maxSignatures is the largest number of signatures that is read.
const maxSignatures = 16

var (
	// ErrUnsigned means that an annotation has no signatures.
	ErrUnsigned = errors.New("it is not signed")
	// ErrUntrusted means that no signature of an annotation is by one of the keys.
	ErrUntrusted = errors.New("none of its signatures is by a key that is trusted")
)

// Counter orders the signed states of a node: it only rises. Of two, the one with the larger term is newer, within a
// term the one with the larger sequence. Each start of an operator begins a term.
type Counter struct{ Term, Sequence int64 }

// Compare returns a negative number if c is older than other, 0 if they are the same, and a positive number if it is
// newer.
func (c Counter) Compare(other Counter) int {
	return cmp.Or(cmp.Compare(c.Term, other.Term), cmp.Compare(c.Sequence, other.Sequence))
}

// String is the counter for people.
func (c Counter) String() string {
	return strconv.FormatInt(c.Term, 10) + "." + strconv.FormatInt(c.Sequence, 10)
}

// Signature is one signature of an annotation.
type Signature struct {
	// Key is the KeyID of the key, a hint which key to try.
	Key string `json:"key"`
	// Value is the signature: Ed25519 (RFC 8032) of the pre-authentication encoding of DSSE
	// (github.com/secure-systems-lab/dsse, protocol.md).
	Value []byte `json:"sig"`
}

// Sign returns the text of the annotation with a signature by each of the keys.
func (d Desired) Sign(keys []ed25519.PrivateKey) (string, error) {
	text, err := d.Encode()
	if err != nil {
		return "", err
	}
	if len(keys) == 0 || len(keys) > maxSignatures {
		return "", fmt.Errorf("%w: a desired bundle is signed by 1 to %d keys, not by %d", ErrInvalid, maxSignatures, len(keys))
	}
	message := preAuthenticated([]byte(text))
	var list []Signature
	for _, k := range keys {
		public, _ := k.Public().(ed25519.PublicKey) // it documents that it is one
		list = append(list, Signature{Key: KeyID(public), Value: ed25519.Sign(k, message)})
	}
	signatures, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("encoding signatures: %w", err)
	}
	signed := strings.TrimSuffix(text, "}") + signaturesField + string(signatures) + "}"
	if len(signed) > maxAnnotation {
		return "", fmt.Errorf("%w: the annotation has %d bytes, at most %d are allowed", ErrInvalid, len(signed), maxAnnotation)
	}
	return signed, nil
}

// Signatures returns the signed text of an annotation, and its signatures. An annotation without any is ErrUnsigned.
func Signatures(text string) (string, []Signature, error) {
	if len(text) > maxAnnotation {
		return "", nil, fmt.Errorf("%w: the annotation has %d bytes, at most %d are allowed", ErrInvalid, len(text), maxAnnotation)
	}
	at := strings.LastIndex(text, signaturesField)
	rest, closed := strings.CutSuffix(text, "}")
	if at < 0 || !closed || at+len(signaturesField) > len(rest) {
		return "", nil, ErrUnsigned
	}
	var list []Signature
	if err := json.Unmarshal([]byte(rest[at+len(signaturesField):]), &list); err != nil {
		return "", nil, fmt.Errorf("%w: the signatures are not JSON of the right form: %v", ErrInvalid, err) //nolint:errorlint // the error of the library is no contract
	}
	switch {
	case len(list) == 0:
		return "", nil, ErrUnsigned
	case len(list) > maxSignatures:
		return "", nil, fmt.Errorf("%w: %d signatures, at most %d are allowed", ErrInvalid, len(list), maxSignatures)
	}
	return text[:at] + "}", list, nil
}

// Keys are public keys that are trusted.
type Keys []ed25519.PublicKey

// Open decodes an annotation, if one of the keys has signed it. It is ErrUnsigned or ErrUntrusted otherwise,
// and for a text that is signed and that this program cannot read, the error of DecodeDesired.
func (k Keys) Open(text string) (Desired, error) {
	payload, list, err := Signatures(text)
	if err != nil {
		return Desired{}, err
	}
	message := preAuthenticated([]byte(payload))
	for _, s := range list {
		for _, key := range k {
			if KeyID(key) == s.Key && ed25519.Verify(key, message, s.Value) {
				return DecodeDesired(payload)
			}
		}
	}
	return Desired{}, ErrUntrusted
}

// Signers returns the IDs of the keys that have signed an annotation, sorted.
func (k Keys) Signers(text string) []string {
	payload, list, err := Signatures(text)
	if err != nil {
		return nil
	}
	message := preAuthenticated([]byte(payload))
	var ids []string
	for _, key := range k {
		if id := KeyID(key); slices.ContainsFunc(list, func(s Signature) bool {
			return s.Key == id && ed25519.Verify(key, message, s.Value)
		}) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Has reports whether one of the keys has one of these IDs.
func (k Keys) Has(ids []string) bool {
	return slices.ContainsFunc(k, func(key ed25519.PublicKey) bool { return slices.Contains(ids, KeyID(key)) })
}

// preAuthenticated is DSSE's pre-authentication encoding: no bytes can be moved between the type and the text.
func preAuthenticated(payload []byte) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	out.Write(payload)
	return out.Bytes()
}

// KeyID names a key for people and in signatures: the first 12 hex digits of the SHA-256 of its PKIX form. It is empty
// for an invalid key.
func KeyID(key ed25519.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return ""
	}
	return bundle.Of(der).Short()
}

// pemPublicKey is the type of a block in PEM that holds a public key (RFC 7468, section 13).
const pemPublicKey = "PUBLIC KEY"

// Encode returns the keys in PEM, as nodes keep them.
func (k Keys) Encode() ([]byte, error) {
	var out bytes.Buffer
	for _, key := range k {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			return nil, fmt.Errorf("encoding a public key: %w", err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: pemPublicKey, Bytes: der}); err != nil {
			return nil, fmt.Errorf("encoding a public key: %w", err)
		}
	}
	return out.Bytes(), nil
}

// DecodeKeys reads what Encode wrote. A text that holds anything else, or no key, is ErrInvalid.
func DecodeKeys(text []byte) (Keys, error) {
	var keys Keys
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		block, after := pem.Decode(rest)
		if block == nil || block.Type != pemPublicKey || !bytes.HasPrefix(rest, []byte("-----BEGIN")) {
			return nil, fmt.Errorf("%w: it holds something else than public keys in PEM", ErrInvalid)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		key, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: key %d is not an Ed25519 key", ErrInvalid, len(keys)+1)
		}
		keys, rest = append(keys, key), after
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: it holds no key", ErrInvalid)
	}
	return keys, nil
}
