package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/term"
)

// signers are the keys to log in with.
func (f *hostFlags) signers(ctx context.Context, a app) ([]ssh.Signer, error) {
	if f.identity == "" {
		return agentSigners()
	}
	data, err := os.ReadFile(f.identity)
	if err != nil {
		return nil, usageError("reading --identity: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		signer, err = f.unlock(ctx, a, data)
	}
	if err != nil {
		return nil, usageError("reading --identity %q: %w", f.identity, err)
	}
	return []ssh.Signer{signer}, nil
}

// unlock asks for the passphrase on the terminal.
func (f *hostFlags) unlock(ctx context.Context, a app, data []byte) (ssh.Signer, error) {
	terminal, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return nil, errors.New("it has a passphrase and there is no terminal to ask for it: add it to ssh-agent and leave --identity out")
	}
	fmt.Fprintf(a.stderr, "Passphrase for %s: ", f.identity)
	passphrase, err := readPassphrase(ctx, int(terminal.Fd()))
	fmt.Fprintln(a.stderr)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKeyWithPassphrase(data, passphrase)
	if err != nil {
		return nil, fmt.Errorf("unlocking it with that passphrase: %w", err)
	}
	return signer, nil
}

// readPassphrase reads a line that the terminal does not show. When the context ends first, as with Ctrl-C, the terminal is
// put back; the read goes on until the program ends.
func readPassphrase(ctx context.Context, fd int) ([]byte, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	var typed []byte
	read := make(chan error, 1)
	go func() {
		var err error
		typed, err = term.ReadPassword(fd)
		read <- err
	}()
	select {
	case err := <-read:
		return typed, err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
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
