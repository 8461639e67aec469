package remote

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"
)

// Pins remember the host keys of machines. Addresses are host:port.
type Pins interface {
	// Pinned are the keys that the machine was met with, none on first contact.
	Pinned(address string) ([]ssh.PublicKey, error)
	// Pin remembers the key of a machine on first contact. A revoked key is an error.
	Pin(address string, key ssh.PublicKey) error
	// Retrust is the step that forgets the keys of the machine, for people.
	Retrust(address string) string
}

// hostKeyCheck is the check of one connection.
type hostKeyCheck struct {
	target Target
	pins   Pins
	pinned []ssh.PublicKey
	// first is the key that was pinned on first contact.
	first ssh.PublicKey
	// passed tells that the host key was right.
	passed bool
	// err is why it was not.
	err error
}

func newHostKeyCheck(t Target, pins Pins) (*hostKeyCheck, error) {
	pinned, err := pins.Pinned(t.Address)
	if err != nil {
		return nil, fmt.Errorf("reading the pinned host keys of %s: %w", t, err)
	}
	return &hostKeyCheck{target: t, pins: pins, pinned: pinned}, nil
}

// check is called with the key that the machine shows and has proved to hold.
func (c *hostKeyCheck) check(key ssh.PublicKey) error {
	if len(c.pinned) == 0 {
		if err := c.pins.Pin(c.target.Address, key); err != nil {
			c.err = fmt.Errorf("pinning the host key of %s: %w", c.target, err)
			return c.err
		}
		c.first = key
	} else if !slices.ContainsFunc(c.pinned, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) }) {
		c.err = c.changed(key)
		return c.err
	}
	c.passed = true
	return nil
}

func (c *hostKeyCheck) changed(offered ssh.PublicKey) error {
	return &HostKeyError{Target: c.target, Pinned: c.pinned, Offered: offered, Retrust: c.pins.Retrust(c.target.Address)}
}

// algorithms are the host key algorithms to ask for, the pinned types first: a machine that got a key of another type goes on
// showing the old one. Certificates are not asked for: nothing here pins their authorities.
func (c *hostKeyCheck) algorithms() []string {
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

// keyTypeOf is the type of the keys that an algorithm is for: RSA keys have several.
func keyTypeOf(algorithm string) (keyType string, certificate bool) {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSA:
		return ssh.KeyAlgoRSA, false
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return algorithm, false
	}
	return algorithm, true
}
