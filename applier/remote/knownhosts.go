package remote

import (
	"bytes"
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
)

// KnownHosts are pins in a file of OpenSSH's format (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Names in it may be hashed; new
// ones are where the file has hashed names already. Lines of other programs stay as they are. Authorities
// (@cert-authority) are not used.
type KnownHosts struct {
	path string
	mu   sync.Mutex
}

// NewKnownHosts uses the file at path, which need not be there yet.
func NewKnownHosts(path string) *KnownHosts { return &KnownHosts{path: path} }

// Pinned implements Pins.
func (k *KnownHosts) Pinned(address string) ([]ssh.PublicKey, error) {
	check, err := knownhosts.New(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// A key that nobody has: the file answers with all that it knows of the address.
	stranger, err := ssh.NewPublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize))
	if err != nil {
		return nil, err
	}
	var known *knownhosts.KeyError
	if err := check(address, &net.TCPAddr{}, stranger); !errors.As(err, &known) {
		return nil, err
	}
	var keys []ssh.PublicKey
	for _, want := range known.Want {
		// A revoked one is no longer taken.
		if err := check(address, &net.TCPAddr{}, want.Key); err == nil {
			keys = append(keys, want.Key)
		}
	}
	return keys, nil
}

// Pin implements Pins: it appends one line in one write, so that several programs can.
func (k *KnownHosts) Pin(address string, key ssh.PublicKey) error {
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
	return appendTo(k.path, line)
}

// ErrRevoked says that known_hosts lists a key as revoked.
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

func appendTo(path, line string) error {
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

// Retrust implements Pins.
func (k *KnownHosts) Retrust(address string) string {
	path := k.path
	if strings.ContainsAny(path, ` '"`) {
		path = "'" + path + "'"
	}
	return fmt.Sprintf("ssh-keygen -f %s -R '%s'", path, knownhosts.Normalize(address))
}

// KnownHostsLine is the line of a known_hosts file that pins the key of the machine at address (host:port). Lines can be
// written there before a machine is met.
func KnownHostsLine(address string, key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize(address)}, key)
}
