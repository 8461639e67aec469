package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/term"
)

// signers are the keys to log in with.
func (f *hostFlags) signers(a app) ([]ssh.Signer, error) {
	if f.identity == "" {
		return agentSigners()
	}
	data, err := os.ReadFile(f.identity)
	if err != nil {
		return nil, usageError("reading --identity: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		signer, err = f.unlock(a, data)
	}
	if err != nil {
		return nil, usageError("reading --identity %q: %w", f.identity, err)
	}
	return []ssh.Signer{signer}, nil
}

// unlock asks for the passphrase on the terminal.
func (f *hostFlags) unlock(a app, data []byte) (ssh.Signer, error) {
	terminal, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return nil, errors.New("it has a passphrase and there is no terminal to ask for it: add the key to ssh-agent")
	}
	fmt.Fprintf(a.stderr, "Passphrase for %s: ", f.identity)
	passphrase, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(a.stderr)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKeyWithPassphrase(data, passphrase)
}

// agentSigners are the keys of ssh-agent, which signs with them itself. Its connection is open as long as the program runs.
func agentSigners() ([]ssh.Signer, error) {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, usageError("give the private key with --identity, or start ssh-agent")
	}
	c, err := net.Dial("unix", socket) //nolint:noctx // on this machine
	if err != nil {
		return nil, usageError("reaching ssh-agent: %w; give the private key with --identity", err)
	}
	signers, err := agent.NewClient(c).Signers()
	if err != nil {
		return nil, usageError("asking ssh-agent for keys: %w", err)
	}
	if len(signers) == 0 {
		return nil, usageError("ssh-agent has no keys: ssh-add one, or give --identity")
	}
	return signers, nil
}
