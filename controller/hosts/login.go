package hosts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/keys"
)

// Names and keys that the existing operator uses.
const (
	// PinsConfigMap has the host key of each address: the wire form (RFC 4253, 6.6) in base64.
	PinsConfigMap = "windows-ssh-host-keys"
	// PinAnnotation and PinTypeAnnotation of a Node are a copy.
	PinAnnotation     = "windowsmachineconfig.openshift.io/ssh-host-key"
	PinTypeAnnotation = "windowsmachineconfig.openshift.io/ssh-host-key-type"
)

// requestLimit is for one question to the API server about a host key: a handshake waits for it.
const requestLimit = 15 * time.Second

// Login is what a connection needs. It keeps nothing: every connection reads the Secret and the ConfigMap.
type Login struct {
	// Live reads without a cache: a pin that was just written must be seen, and no Secret is kept in memory.
	Live   client.Reader
	Client client.Client
	// Namespace is that of the operator.
	Namespace string

	// pinning is held while the pins are changed: those of many new hosts are in one ConfigMap, and each change is of what was read.
	pinning sync.Mutex
}

// Signers returns the key to log in with. Its errors hold no part of the key.
func (l *Login) Signers(ctx context.Context) ([]ssh.Signer, error) {
	key, findings, err := l.Key(ctx)
	if err != nil {
		return nil, err
	}
	if findings.Refused() {
		return nil, &RefusedError{errorsOf(findings)}
	}
	return []ssh.Signer{key.Signer()}, nil
}

// Key returns the private key, and what is wrong with it.
func (l *Login) Key(ctx context.Context) (keys.Key, bundle.Findings, error) {
	var secret corev1.Secret
	if err := l.Live.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: keys.SecretName}, &secret); client.IgnoreNotFound(err) != nil {
		return keys.Key{}, nil, fmt.Errorf("reading Secret %s: %w", keys.SecretName, err)
	}
	key, findings := keys.Read(secret, l.Namespace)
	return key, findings, nil
}

// Pinned returns the pinned key of a host, none before the first contact. The copy on the Node never counts: a node may write its own
// annotations.
func (l *Login) Pinned(address string) ([]ssh.PublicKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
	defer cancel()
	pins, err := l.pins(ctx)
	if err != nil {
		return nil, err
	}
	text, ok := pins.Data[hostOf(address)]
	if !ok {
		return nil, nil
	}
	key, err := decodeKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading the host key of %s: %w", hostOf(address), err)
	}
	return []ssh.PublicKey{key}, nil
}

// PinOf returns the pinned key of a host, nil where there is none or it cannot be read.
func (l *Login) PinOf(address string) ssh.PublicKey {
	list, err := l.Pinned(address)
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

// PinnedHosts are the addresses with a pinned key, sorted.
func (l *Login) PinnedHosts(ctx context.Context) ([]string, error) {
	cm, err := l.pins(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(cm.Data)), nil
}

// pins returns the ConfigMap, empty if it does not exist.
func (l *Login) pins(ctx context.Context) (*corev1.ConfigMap, error) {
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

// ErrPinnedMeanwhile says that somebody else pinned a key for the host after this connection began.
var ErrPinnedMeanwhile = errors.New("another key was pinned for this host at the same time")

// Pin stores the key of a host on first contact. Of two that pin different keys for one host at the same time, one gets an error.
func (l *Login) Pin(address string, key ssh.PublicKey) error {
	return l.change(context.Background(), func(ctx context.Context) error { return l.pin(ctx, address, key) })
}

// change changes the pins, again and again while somebody else does: a person, or an operator that is the leader no longer.
func (l *Login) change(ctx context.Context, do func(context.Context) error) error {
	l.pinning.Lock()
	defer l.pinning.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	pauses := wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 1} // 7 s in all
	return retry.OnError(pauses, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error { return do(ctx) })
}

func (l *Login) pin(ctx context.Context, address string, key ssh.PublicKey) error {
	cm, err := l.pins(ctx)
	if err != nil {
		return err
	}
	host, text := hostOf(address), EncodeKey(key)
	switch pinned, ok := cm.Data[host]; {
	case ok && pinned == text:
		return nil
	case ok:
		return fmt.Errorf("%w: %s", ErrPinnedMeanwhile, host)
	case cm.UID == "":
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: PinsConfigMap}, Data: map[string]string{host: text}}
		return l.Client.Create(ctx, cm)
	}
	return l.patchPins(ctx, cm, map[string]any{host: text})
}

// Forget removes the pinned key of a host that is a host of this cluster no longer.
func (l *Login) Forget(ctx context.Context, address string) error {
	return l.change(ctx, func(ctx context.Context) error {
		cm, err := l.pins(ctx)
		if err != nil {
			return err
		}
		if _, ok := cm.Data[hostOf(address)]; !ok {
			return nil
		}
		return l.patchPins(ctx, cm, map[string]any{hostOf(address): nil})
	})
}

// patchPins changes what was read: the resourceVersion makes the API server refuse the patch if somebody changed it since.
func (l *Login) patchPins(ctx context.Context, cm *corev1.ConfigMap, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": cm.ResourceVersion}, "data": data})
	if err != nil {
		return err
	}
	return l.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
}

// Unpin returns the command with which a person removes the pinned key of a host.
func (l *Login) Unpin(address string) string {
	return fmt.Sprintf(`oc -n %s patch configmap %s --type=json -p '[{"op":"remove","path":"/data/%s"}]'`, l.Namespace, PinsConfigMap, hostOf(address))
}

// hostOf returns the name or address without the port. ConfigMaps have no keys with a colon; the operator reaches every host at the same
// port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
