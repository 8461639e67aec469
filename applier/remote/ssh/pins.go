package ssh

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"wmco/applier/remote"
)

// Pins store the host keys of hosts, by their address or by Target.ID.
type Pins interface {
	// Pinned returns the pinned keys of a host, none before the first contact.
	Pinned(ctx context.Context, t remote.Target) ([]ssh.PublicKey, error)
	// Pin stores the key of a host on first contact. A revoked key is an error.
	Pin(ctx context.Context, t remote.Target, key ssh.PublicKey) error
	// Unpin returns the command line with which a person removes the pinned keys of a host.
	Unpin(t remote.Target) string
}

// hostKeyCheck is the check of one connection.
type hostKeyCheck struct {
	target remote.Target
	pins   Pins
	// pin stores a key of the target, until the context of the connection ends.
	pin    func(ssh.PublicKey) error
	pinned []ssh.PublicKey
	// first is the key, if it was pinned on this first contact.
	first ssh.PublicKey
	// passed reports whether the host key was accepted; err is why it was not.
	passed bool
	err    error
}

func newHostKeyCheck(ctx context.Context, t remote.Target, pins Pins) (*hostKeyCheck, error) {
	pinned, err := pins.Pinned(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("reading the pinned host keys of %s: %w", t, err)
	}
	return &hostKeyCheck{target: t, pins: pins, pinned: pinned, pin: func(key ssh.PublicKey) error { return pins.Pin(ctx, t, key) }}, nil
}

// checkOffered is called with the key that the host has proved to hold.
func (c *hostKeyCheck) checkOffered(key ssh.PublicKey) error {
	if len(c.pinned) == 0 {
		if err := c.pin(key); err != nil {
			c.err = fmt.Errorf("pinning the host key of %s: %w", c.target, err)
			return c.err
		}
		c.first = key
	} else if !slices.ContainsFunc(c.pinned, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) }) {
		c.err = c.changedKeyError(key)
		return c.err
	}
	c.passed = true
	return nil
}

func (c *hostKeyCheck) changedKeyError(offered ssh.PublicKey) error {
	e := &remote.HostKeyError{Target: c.target, Offered: describeKey(offered), Unpin: c.pins.Unpin(c.target)}
	for _, key := range c.pinned {
		e.Pinned = append(e.Pinned, describeKey(key))
	}
	return e
}

func describeKey(key ssh.PublicKey) string { return key.Type() + " " + ssh.FingerprintSHA256(key) }

// keyAlgorithms returns the host key algorithms to ask for, the pinned types first: a host that also has a key of
// another type still shows the pinned one. Certificates are not asked for: nothing here pins their authorities.
func (c *hostKeyCheck) keyAlgorithms() []string {
	var first, others []string
	for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
		switch keyType, certificate := keyTypeOf(algorithm); {
		case certificate:
		case slices.ContainsFunc(c.pinned, func(k ssh.PublicKey) bool { return k.Type() == keyType }):
			first = append(first, algorithm)
		default:
			others = append(others, algorithm)
		}
	}
	return append(first, others...)
}

// keyTypeOf returns the key type of an algorithm. RSA keys have several algorithms.
func keyTypeOf(algorithm string) (keyType string, certificate bool) {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSA:
		return ssh.KeyAlgoRSA, false
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return algorithm, false
	}
	return algorithm, true
}

// KnownHosts are pins in a file of OpenSSH's format (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Names in it may be hashed;
// new names are hashed if the file has a hashed one. Existing lines stay as they are. Authorities (@cert-authority) are
// not used.
type KnownHosts struct {
	path string
	mu   sync.Mutex
}

// NewKnownHosts uses the file at path, which need not exist.
func NewKnownHosts(path string) *KnownHosts { return &KnownHosts{path: path} }

// Pinned implements Pins.
func (k *KnownHosts) Pinned(_ context.Context, t remote.Target) ([]ssh.PublicKey, error) {
	return k.pinnedAt(t.Address)
}

// pinnedAt returns the keys of an address, host:port.
func (k *KnownHosts) pinnedAt(address string) ([]ssh.PublicKey, error) {
	check, err := knownhosts.New(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A key that no host has: the error lists all keys of the address.
	noKey, err := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return nil, err
	}
	var known *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, noKey); !errors.As(err, &known) {
		return nil, err
	}
	var keys []ssh.PublicKey
	for _, want := range known.Want {
		// A revoked key is not accepted.
		if err := check(address, &net.TCPAddr{}, want.Key); err == nil {
			keys = append(keys, want.Key)
		}
	}
	return keys, nil
}

// Pin implements Pins. It appends one line in one write, so that several programs can at once.
func (k *KnownHosts) Pin(_ context.Context, t remote.Target, key ssh.PublicKey) error {
	address := t.Address
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.checkRevoked(address, key); err != nil {
		return err
	}
	old, err := os.ReadFile(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := KnownHostsLine(address, key)
	if hashesNames(old) {
		line = knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(address))}, key)
	}
	line += "\n"
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		line = "\n" + line
	}
	return appendLine(k.path, line)
}

// ErrRevoked means that known_hosts lists a key as revoked.
var ErrRevoked = errors.New("the key is revoked in known_hosts")

func (k *KnownHosts) checkRevoked(address string, key ssh.PublicKey) error {
	check, err := knownhosts.New(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var revoked *knownhosts.RevokedError
	if errors.As(check(address, &net.TCPAddr{}, key), &revoked) {
		return fmt.Errorf("%w, line %d of %s", ErrRevoked, revoked.Revoked.Line, revoked.Revoked.Filename)
	}
	return nil
}

func hashesNames(file []byte) bool {
	return slices.ContainsFunc(bytes.Split(file, []byte("\n")), func(line []byte) bool { return bytes.HasPrefix(line, []byte("|1|")) })
}

func appendLine(path, line string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line)
	return errors.Join(err, file.Sync(), file.Close())
}

// Unpin implements Pins.
func (k *KnownHosts) Unpin(t remote.Target) string {
	path := k.path
	if strings.ContainsAny(path, ` '"`) {
		path = "'" + path + "'"
	}
	return fmt.Sprintf("ssh-keygen -f %s -R '%s'", path, knownhosts.Normalize(t.Address))
}

// KnownHostsLine returns the line of a known_hosts file that pins the key of the host at address (host:port). It may be
// written before the first contact.
func KnownHostsLine(address string, key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize(address)}, key)
}
