// Package signing signs desired bundles, and verifies signatures.
//
//	Secret (keys, term) --ReadPublicKeys--> Keys --SignDesired--> text of an annotation --on the Node, where others write too--> OpenDesired --> its contents, or an error
//
// An annotation on a Node without a signature by one of these keys was written by others: nothing of it is ever signed.
package signing

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
)

const (
	// SecretName is the Secret in the operator's namespace. Each of its data keys holds one private key (PKCS #8, PEM).
	// All of them sign.
	SecretName = "windows-desired-state-signing"
	// AddAnnotation of the Secret, with any value, asks the operator for another key. The operator removes it when it
	// has made one.
	AddAnnotation = published.Domain + "add-signing-key"
	// TermAnnotation of the Secret is the term of the operator that began last.
	TermAnnotation = published.Domain + "signing-term"
)

// pemPrivateKey is the type of a block in PEM that holds a private key (RFC 7468, section 10).
const pemPrivateKey = "PRIVATE KEY"

// maxKeys is the largest number of keys. Two are there while they are rotated.
const maxKeys = 8

// ErrNotBegun means that nothing can be signed yet.
var ErrNotBegun = errors.New("the operator has not begun to sign")

// Keys are those of one process.
type Keys struct {
	// Live asks the API server: a cache has no such Secret.
	Live      client.Reader
	Client    client.Client
	Namespace string
	Now       func() time.Time

	// mu guards what follows.
	mu sync.Mutex
	// private are the keys that sign, by the name of their data key; public are theirs in the same order.
	private []ed25519.PrivateKey
	public  published.Keys
	// term is that of this process, 0 before it has begun. Sequence is the number of what was signed last.
	term, sequence int64
	// opened is what was opened last of each node: most annotations do not change from one look to the next.
	opened map[string]opened
	// seen is the highest term of what was opened.
	seen int64
	// newest are the counters of what was signed for, or opened of, each node last.
	newest map[string]published.Counter
}

// opened has the contents of an annotation, or why it does not count.
type opened struct {
	node    published.NodeID
	text    string
	desired published.Desired
	err     error
}

// secretReference is where the keys are.
func (k *Keys) secretReference() client.ObjectKey {
	return client.ObjectKey{Namespace: k.Namespace, Name: SecretName}
}

// ReadPublicKeys reads the keys, and returns the public ones in PEM, as hosts keep them. It makes the first key, and
// another one where that is asked for.
func (k *Keys) ReadPublicKeys(ctx context.Context) ([]byte, error) {
	for {
		secret, err := k.readSecret(ctx)
		if err != nil {
			return nil, err
		}
		_, asked := secret.Annotations[AddAnnotation]
		if !asked && len(secret.Data) > 0 {
			return k.useSecret(secret)
		}
		if err := k.addNewKey(secret); err != nil {
			return nil, err
		}
		switch err := k.writeSecret(ctx, secret); {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // another operator was faster
		case err != nil:
			return nil, err
		}
	}
}

// ErrSuperseded means that another operator has begun to sign since. What this one would sign, nodes refuse.
var ErrSuperseded = errors.New("another operator has begun to sign after this one")

// BeginTerm begins a term, once. It is called when this operator is the one that works: what it signs is newer than
// what another one has signed before. An operator after which another one has begun gets ErrSuperseded. Where a Secret
// of an earlier day was restored, it begins again after the counters on Nodes.
func (k *Keys) BeginTerm(ctx context.Context) error {
	own, seen := k.ownAndHighestTerm()
	if own > 0 && seen <= own {
		return nil
	}
	if _, err := k.ReadPublicKeys(ctx); err != nil {
		return err
	}
	for {
		secret, err := k.readSecret(ctx)
		if err != nil {
			return err
		}
		// The time keeps an operator ahead whose Secret was restored from an earlier day.
		stored, now := termOf(secret), k.Now().Unix()
		if stored > now+farTerm {
			return fmt.Errorf("beginning to sign: the annotation %s of Secret %s is %d, which no operator has "+
				"written; fix: remove the annotation", TermAnnotation, SecretName, stored)
		}
		if own > 0 && stored != own {
			return ErrSuperseded
		}
		term := max(stored+1, now, seen+1)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, TermAnnotation, strconv.FormatInt(term, 10))
		switch err := k.writeSecret(ctx, secret); {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			continue
		case err != nil:
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.term = term
		return nil
	}
}

// farTerm is how far a term may be ahead of the clock, in seconds: 50 years. A term that cannot rise would end all
// updates.
const farTerm = 50 * 365 * 24 * 3600

// termOf returns the term in a Secret; 0 if there is none that can be read.
func termOf(secret *corev1.Secret) int64 {
	term, err := strconv.ParseInt(secret.Annotations[TermAnnotation], 10, 64)
	if err != nil || term < 0 {
		return 0
	}
	return term
}

// ownAndHighestTerm returns the own term and the highest that was seen.
func (k *Keys) ownAndHighestTerm() (own, seen int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.term, k.seen
}

// readSecret returns the Secret, an empty one if there is none.
func (k *Keys) readSecret(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := k.Live.Get(ctx, k.secretReference(), &secret)
	if apierrors.IsNotFound(err) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: SecretName}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", k.secretReference(), err)
	}
	return &secret, nil
}

// addNewKey puts a new key into the Secret.
func (k *Keys) addNewKey(secret *corev1.Secret) error {
	delete(secret.Annotations, AddAnnotation)
	if len(secret.Data) >= maxKeys {
		return nil // it is not more secure with more
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data["key-"+published.KeyID(public)+".pem"] = pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der})
	return nil
}

// writeSecret creates the Secret, or replaces the one that was read. The errors of the API server quote no content.
func (k *Keys) writeSecret(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion == "" {
		if err := k.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", k.secretReference(), err)
		}
		return nil
	}
	if err := k.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("writing Secret %s: %w", k.secretReference(), err)
	}
	return nil
}

// useSecret signs with the keys of a Secret from now on.
func (k *Keys) useSecret(secret *corev1.Secret) ([]byte, error) {
	private, err := privateKeysIn(secret)
	if err != nil {
		return nil, err
	}
	public := publicHalves(private)
	text, err := public.Encode()
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.EqualFunc(public, k.public, func(a, b ed25519.PublicKey) bool { return a.Equal(b) }) {
		k.opened = nil
	}
	k.private, k.public = private, public
	return text, nil
}

// PublicKeysIn returns the public halves of the keys in a Secret, for programs that sign nothing. An error quotes no
// content.
func PublicKeysIn(secret *corev1.Secret) (published.Keys, error) {
	private, err := privateKeysIn(secret)
	return publicHalves(private), err
}

// privateKeysIn returns the keys of the Secret, by the names of their data keys. An error quotes no content.
func privateKeysIn(secret *corev1.Secret) ([]ed25519.PrivateKey, error) {
	var private []ed25519.PrivateKey
	for _, name := range slices.Sorted(maps.Keys(secret.Data)) {
		key, ok := parsePrivateKey(secret.Data[name])
		if !ok {
			return nil, fmt.Errorf("Secret %s: %s is not an Ed25519 key (PKCS #8, PEM) (fix: remove it from the Secret, or replace it)", client.ObjectKeyFromObject(secret), name) //nolint:staticcheck // a kind is written so
		}
		private = append(private, key)
	}
	if len(private) > maxKeys {
		return nil, fmt.Errorf("Secret %s has %d keys, at most %d are allowed (fix: remove those that no node needs)", client.ObjectKeyFromObject(secret), len(private), maxKeys) //nolint:staticcheck // a kind is written so
	}
	return private, nil
}

func publicHalves(private []ed25519.PrivateKey) published.Keys {
	public := make(published.Keys, len(private))
	for i, key := range private {
		public[i] = key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented
	}
	return public
}

func parsePrivateKey(text []byte) (ed25519.PrivateKey, bool) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, false
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	return key, ok && err == nil
}

// SignDesired returns the text of the annotation for a Node, newer than everything that this process has signed before.
func (k *Keys) SignDesired(node published.NodeID, d published.Desired) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.term == 0 || len(k.private) == 0 {
		return "", ErrNotBegun
	}
	if k.seen > k.term {
		return "", ErrSuperseded
	}
	k.sequence++
	d.NodeName, d.NodeUID, d.Term, d.Sequence = node.Name, node.UID, k.term, k.sequence
	text, err := d.Sign(k.private)
	if err != nil {
		return "", fmt.Errorf("signing the desired state of Node %s: %w", node.Name, err)
	}
	d.Schema = published.Schema // as the text has it
	k.noteOpened(node.Name, opened{node: node, text: text, desired: d})
	return text, nil
}

// noteOpened is called with the mutex held.
func (k *Keys) noteOpened(node string, o opened) {
	if k.opened == nil || len(k.opened) >= maxOpened {
		k.opened = map[string]opened{}
	}
	k.opened[node] = o
}

// noteNewest is called with the mutex held.
func (k *Keys) noteNewest(node string, d published.Desired) {
	if k.newest == nil || len(k.newest) >= maxOpened {
		k.newest = map[string]published.Counter{}
	}
	if d.Counter().Compare(k.newest[node]) > 0 {
		k.newest[node] = d.Counter()
	}
}

// ErrOlder means that an annotation was signed before another one for the same Node.
var ErrOlder = errors.New("it is an earlier one: it was put back, or the cache is behind")

// OpenNewest is OpenDesired for what something new is made of: an annotation that is older than one that OpenDesired has
// had for the Node is ErrOlder. What was signed and could not be written is none.
func (k *Keys) OpenNewest(node published.NodeID, text string) (published.Desired, error) {
	d, err := k.OpenDesired(node, text)
	if err != nil {
		return d, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.Counter().Compare(k.newest[node.Name]) < 0 {
		return published.Desired{}, ErrOlder
	}
	return d, nil
}

// ErrOtherNode means that an annotation was signed for another Node, which may have had the same name.
var ErrOtherNode = errors.New("it is signed for another node")

// OpenDesired decodes the annotation of a Node, if this operator, or one before it with the same keys, has
// signed it for this Node. What a newer operator has written is a *bundle.SchemaError.
func (k *Keys) OpenDesired(node published.NodeID, text string) (published.Desired, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o, ok := k.opened[node.Name]; ok && o.node == node && o.text == text {
		o.text = text // of the newest Node, which has it anyway: that of an earlier one would be kept beside it
		k.opened[node.Name] = o
		if o.err == nil {
			k.noteNewest(node.Name, o.desired)
		}
		return o.desired, o.err
	}
	o := opened{node: node, text: text}
	o.desired, o.err = k.public.Open(text)
	if o.err == nil && !o.desired.IsSignedFor(node) {
		o.desired, o.err = published.Desired{}, ErrOtherNode
	}
	if errors.Is(o.err, published.ErrUnsigned) {
		// Of an operator before signatures, or of a newer one that signs in another form.
		if _, err := published.DecodeDesired(text); isNewerSchema(err) {
			o.err = err
		}
	}
	k.noteOpened(node.Name, o)
	if o.err == nil {
		k.noteNewest(node.Name, o.desired)
		k.seen = max(k.seen, o.desired.Term)
		if o.desired.Term == k.term && o.desired.Sequence > k.sequence {
			k.seen = max(k.seen, k.term+1) // a term that was forgotten, and given again
		}
	}
	return o.desired, o.err
}

// maxOpened is more than the number of nodes of any cluster.
const maxOpened = 10_000

func isNewerSchema(err error) bool {
	var newer *bundle.SchemaError
	return errors.As(err, &newer)
}
