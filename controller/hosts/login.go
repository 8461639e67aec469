package hosts

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/keys"
	"wmco/controller/windowsnode/record"
)

// Names and keys that the existing operator uses.
const (
	// PinsConfigMap has the host key of each address: the wire form (RFC 4253, 6.6) in base64. It is what a person, the
	// existing operator or an older version of this one has pinned. A key moves from there to the record of its host
	// when that is known.
	PinsConfigMap = "windows-ssh-host-keys"
	// PinAnnotation and PinTypeAnnotation of a Node are a copy for the existing operator.
	PinAnnotation     = "windowsmachineconfig.openshift.io/ssh-host-key"
	PinTypeAnnotation = "windowsmachineconfig.openshift.io/ssh-host-key-type"
)

// requestLimit is for one question to the API server about a host key: a handshake waits for it.
const requestLimit = 15 * time.Second

// Login is what a connection needs. Every connection reads the Secret and the record of the host; nothing secret is
// kept.
type Login struct {
	// Live reads without a cache: a key that was just pinned must be seen, and no Secret is kept in memory.
	Live   client.Reader
	Client client.Client
	// Namespace is that of the operator.
	Namespace string
	// Records are those of the hosts.
	Records *Records
	// RecordKey is the operator's key of digests, with which it seals the keys in Records.
	RecordKey bundle.Key

	// pinning is held while PinsConfigMap is changed.
	pinning sync.Mutex

	// mu guards expected: keys that hosts should have which have none yet, while they are reached for the first time;
	// and used: the keys with which this process has logged in to hosts last.
	mu       sync.Mutex
	expected map[record.ID]expectedKey
	used     map[record.ID]string

	current currentKey
}

// expectedKey is the key of a host as the existing operator has pinned it on a Node.
type expectedKey struct{ key, node string }

// ExpectKey has a host that no key is pinned for refused where it has another one than a Node of the existing operator
// has, until the returned function is called. That is kept nowhere: the Node may not be the host's. An empty key
// expects none.
func (l *Login) ExpectKey(id record.ID, node, key string) (forget func()) {
	if key == "" {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected == nil {
		l.expected = map[record.ID]expectedKey{}
	}
	l.expected[id] = expectedKey{key, node}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.expected, id)
	}
}

func (l *Login) expectedKey(id record.ID) expectedKey {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expected[id]
}

// Signers returns the key to log in with. Its errors hold no part of the key.
func (l *Login) Signers(ctx context.Context) ([]ssh.Signer, error) {
	key, findings, err := l.PrivateKey(ctx)
	if err != nil {
		return nil, err
	}
	if findings.Refused() {
		return nil, &RefusedError{onlyErrors(findings)}
	}
	return []ssh.Signer{key.Signer()}, nil
}

// PrivateKey returns the private key, and its findings.
func (l *Login) PrivateKey(ctx context.Context) (keys.Key, bundle.Findings, error) {
	var secret corev1.Secret
	if err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: keys.SecretName},
		&secret); client.IgnoreNotFound(err) != nil {
		return keys.Key{}, nil, fmt.Errorf("reading Secret %s: %w", keys.SecretName, err)
	}
	key, findings := keys.ReadSecret(secret, l.Namespace)
	l.current.noteKey(key, findings)
	return key, findings, nil
}

// errNoHost is a defect: the operator reaches no host without saying which.
var errNoHost = errors.New("the target does not say which host it is")

// Pinned returns the pinned key of a host: that of its record, or of its address where the record has none yet. There
// is none before the first contact, unless one is expected (ExpectKey). The copy on the Node of a known host never
// counts: a node may write its own annotations.
func (l *Login) Pinned(ctx context.Context, t remote.Target) ([]ssh.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	text, known, err := l.pinnedKeyText(ctx, t)
	if err != nil || !known {
		return nil, err
	}
	key, err := decodeKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading the host key of %s: %w", t.Host(), err)
	}
	return []ssh.PublicKey{key}, nil
}

func (l *Login) pinnedKeyText(ctx context.Context, t remote.Target) (text string, known bool, err error) {
	if t.ID == "" {
		return "", false, errNoHost
	}
	r, _, err := l.Records.GetRecord(ctx, record.ID(t.ID))
	if err != nil || r.HostKey != "" {
		return r.HostKey, err == nil, err
	}
	pins, err := l.pinsConfigMap(ctx)
	if err != nil {
		return "", false, err
	}
	if text, known = pins.Data[t.Host()]; known {
		return text, true, nil
	}
	text = l.expectedKey(record.ID(t.ID)).key
	return text, text != "", nil
}

// PinnedKey returns the pinned key of a host, nil where there is none or it cannot be read.
func (l *Login) PinnedKey(ctx context.Context, t remote.Target) ssh.PublicKey {
	list, err := l.Pinned(ctx, t)
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

// pinsConfigMap returns the ConfigMap, empty if it does not exist.
func (l *Login) pinsConfigMap(ctx context.Context) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: PinsConfigMap}, cm)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", PinsConfigMap, err)
	}
	return cm, nil
}

func decodeKey(text string) (ssh.PublicKey, error) {
	wire, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePublicKey(wire)
}

// EncodeKey returns the form in which a key is pinned.
func EncodeKey(key ssh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Marshal()) }

// ErrPinnedMeanwhile means that another key was pinned for the host after this connection began.
var ErrPinnedMeanwhile = errors.New("another key was pinned for this host at the same time")

// Pin stores the key of a host in its record on first contact. Of two that pin different keys for one host at the same
// time, one gets an error.
func (l *Login) Pin(ctx context.Context, t remote.Target, key ssh.PublicKey) error {
	if t.ID == "" {
		return errNoHost
	}
	return l.Records.UpdateRecord(ctx, record.ID(t.ID), func(r record.Record) (record.Record, error) {
		return withPinnedKey(r, EncodeKey(key), t)
	})
}

// withPinnedKey returns the record with a pinned key. Another one is never replaced.
func withPinnedKey(r record.Record, key string, t remote.Target) (record.Record, error) {
	if r.HostKey != "" && r.HostKey != key {
		return r, fmt.Errorf("%w: %s", ErrPinnedMeanwhile, t.Host())
	}
	r.HostKey, r.Address = key, t.Host()
	return r, nil
}

// BindRecord notes the facts of a host that was reached under its pinned key: its address, its account and, where
// it is one, its Node. The key that was pinned for its address moves to the record.
func (l *Login) BindRecord(ctx context.Context, t remote.Target,
	know func(record.Record) (record.Record, error)) error {
	pinned, known, err := l.pinnedKeyText(ctx, t)
	if err != nil {
		return err
	}
	err = l.Records.UpdateRecord(ctx, record.ID(t.ID), func(r record.Record) (record.Record, error) {
		if known {
			var err error
			if r, err = withPinnedKey(r, pinned, t); err != nil {
				return r, err
			}
		}
		return know(r)
	})
	if err != nil {
		return err
	}
	return l.ForgetPins(ctx, func(p Pin) bool { return p.Address == t.Host() && p.Key == pinned })
}

// Pin is a key of PinsConfigMap.
type Pin struct {
	Address, Key string
	// Written is until when the key may have been written, by the API server's clock and record of who writes which
	// field (metadata.managedFields), in seconds. It has one time for all fields that a client has written, that of the
	// last one. Zero is not known.
	Written time.Time
}

// writtenUntil returns Pin.Written for an address.
func writtenUntil(cm *corev1.ConfigMap, address string) time.Time {
	var last time.Time
	for _, m := range cm.ManagedFields {
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if m.FieldsV1 == nil || m.Time == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Data["f:"+address]; ok && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// ForgetPins removes the keys of PinsConfigMap that a condition is true of. It writes nothing if there are none.
func (l *Login) ForgetPins(ctx context.Context, forget func(Pin) bool) error {
	l.pinning.Lock()
	defer l.pinning.Unlock()
	return retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		cm, err := l.pinsConfigMap(ctx)
		if err != nil {
			return err
		}
		remove := map[string]any{}
		for address, key := range cm.Data {
			if forget(Pin{Address: address, Key: key, Written: writtenUntil(cm, address)}) {
				remove[address] = nil
			}
		}
		if len(remove) == 0 {
			return nil
		}
		// The resourceVersion makes the API server refuse the patch if it was changed since.
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion},
			"data": remove})
		if err != nil {
			return err
		}
		return l.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
	})
}

// Unpin returns the command with which a person removes the pinned key of a host.
func (l *Login) Unpin(t remote.Target) string {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	if r, _, err := l.Records.GetRecord(ctx, record.ID(t.ID)); err == nil && r.HostKey == "" {
		if pins, err := l.pinsConfigMap(ctx); err == nil && pins.Data[t.Host()] == "" {
			if e := l.expectedKey(record.ID(t.ID)); e.key != "" {
				return UnpinNodeCommand(e.node)
			}
		}
		return fmt.Sprintf(`oc -n %s patch configmap %s --type=json -p '[{"op":"remove","path":"/data/%s"}]'`,
			l.Namespace, PinsConfigMap, t.Host())
	}
	return l.Records.RemoveCommand(record.ID(t.ID))
}

// UnpinNodeCommand returns the command with which a person removes from a Node the key that the existing operator has
// pinned.
func UnpinNodeCommand(node string) string {
	return "oc annotate node " + node + " " + PinAnnotation + "- " + PinTypeAnnotation + "-"
}

// SamePin reports whether a key is the one that an annotation of a Node has.
func SamePin(key ssh.PublicKey, text string) bool {
	want, err := decodeKey(strings.TrimSpace(text))
	return err == nil && key != nil && bytes.Equal(want.Marshal(), key.Marshal())
}
