package ssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
	keyagent "golang.org/x/crypto/ssh/agent"
)

// FileSigner reads a private key. Passphrase is called for a key that has one.
func FileSigner(path string, passphrase func() ([]byte, error)) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if locked := (*ssh.PassphraseMissingError)(nil); !errors.As(err, &locked) {
		return signer, err
	}
	secret, err := passphrase()
	if err != nil {
		return nil, err
	}
	if signer, err = ssh.ParsePrivateKeyWithPassphrase(data, secret); err != nil {
		return nil, fmt.Errorf("unlocking it with that passphrase: %w", err)
	}
	return signer, nil
}

// AgentSigners returns the keys of ssh-agent, which signs with them itself. No keys are an error. Its connection stays
// open as long as the program runs.
func AgentSigners() ([]ssh.Signer, error) {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, errors.New("ssh-agent is not running: SSH_AUTH_SOCK is not set")
	}
	c, err := net.Dial("unix", socket) //nolint:noctx // on this host
	if err != nil {
		return nil, fmt.Errorf("connecting to ssh-agent: %w", err)
	}
	signers, err := keyagent.NewClient(c).Signers()
	if err != nil {
		return nil, fmt.Errorf("asking ssh-agent for keys: %w", err)
	}
	if len(signers) == 0 {
		return nil, errors.New("ssh-agent has no keys: add one with ssh-add")
	}
	return signers, nil
}

// DefaultKnownHosts returns ~/.ssh/known_hosts, or a file of this program's own where that does not exist.
func DefaultKnownHosts() (string, error) {
	if home, err := os.UserHomeDir(); err == nil {
		path := filepath.Join(home, ".ssh", "known_hosts")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("looking for a place for host keys: %w", err)
	}
	return filepath.Join(config, "wmco", "known_hosts"), nil
}

// anyAddress is looked up in a file of host keys to find out whether it can be read.
const anyAddress = "192.0.2.1:22"

// Check reports whether the file can be read. A file that does not exist yet can.
func (k *KnownHosts) Check() error {
	_, err := k.pinnedAt(anyAddress)
	return err
}
