package sshd

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KeyType is a type of host key.
type KeyType string

// The types that OpenSSH servers have.
const (
	Ed25519 KeyType = "ed25519"
	ECDSA   KeyType = "ecdsa"
	RSA     KeyType = "rsa"
)

// newKey creates a key pair and its files.
func (s *Server) newKey(name string, kind KeyType) (ssh.Signer, string, error) {
	private, err := generateKey(kind)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(s.folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, "", err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, "", err
	}
	return signer, path, os.WriteFile(path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600)
}

func generateKey(kind KeyType) (any, error) {
	switch kind {
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	case ECDSA:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RSA:
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("no such type of key: %q", kind)
}

// NewKey returns a key that the server does not accept.
func (s *Server) NewKey() (ssh.Signer, error) {
	signer, _, err := s.newKey("stranger", Ed25519)
	return signer, err
}

// Authorize makes the server accept Key.
func (s *Server) Authorize() error {
	return os.WriteFile(s.authorizedKeys(), ssh.MarshalAuthorizedKey(s.Key.PublicKey()), 0o600)
}

// AuthorizeOnly makes the server accept the keys of these lines of an authorized_keys file, and no others.
func (s *Server) AuthorizeOnly(lines ...string) error {
	next := s.authorizedKeys() + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, s.authorizedKeys())
}

func (s *Server) authorizedKeys() string { return filepath.Join(s.folder, "authorized_keys") }

// NewHostKeys replaces the host keys at the next Restart; with one of ed25519 if none are named.
func (s *Server) NewHostKeys(kinds ...KeyType) error {
	if len(kinds) == 0 {
		kinds = []KeyType{Ed25519}
	}
	s.options.HostKeys = kinds
	for _, kind := range kinds {
		if _, _, err := s.newKey(hostKey(kind), kind); err != nil {
			return err
		}
	}
	return nil
}

// AddHostKey adds a host key at the next Restart.
func (s *Server) AddHostKey(kind KeyType) error {
	// A server prefers the first key that it is configured with.
	s.options.HostKeys = append([]KeyType{kind}, s.options.HostKeys...)
	_, _, err := s.newKey(hostKey(kind), kind)
	return err
}

func hostKey(kind KeyType) string { return "host-" + string(kind) }
