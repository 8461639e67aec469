package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/term"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/internal/cli"
	"wmco/payload"
	"wmco/payload/store"
)

// hostFlags are shared by all commands that reach hosts.
type hostFlags struct {
	hosts      []string
	identity   string
	knownHosts string
	program    string
	parallel   int
}

// defaultParallel is the number of hosts that are worked on at the same time.
const defaultParallel = 16

func (f *hostFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(
		&f.hosts, "host", nil,
		"a host to reach over SSH: [USER@]ADDR[:PORT]; repeatable. The default user is "+remote.DefaultUser,
	)
	flags.StringVar(&f.identity, "identity", "", "private key to log in with (default the keys of ssh-agent)")
	flags.StringVar(
		&f.knownHosts, "known-hosts", "",
		"file with host keys; new ones are added (default ~/.ssh/known_hosts if it exists, otherwise wmco/known_hosts in the user's configuration folder)",
	)
	flags.StringVar(&f.program, "node-program", "", "the wmco-node.exe to copy to hosts (default that of --payload)")
	flags.IntVar(&f.parallel, "parallel", defaultParallel, "hosts to work on at the same time")
}

// needsHosts and needsProgram say that a command reaches hosts.
func needsHosts() cli.Need {
	return cli.Need{Flags: []string{"host"}, Text: "name the hosts with --host [USER@]ADDR[:PORT]"}
}

func needsProgram() cli.Need {
	return cli.Need{
		Flags: []string{"node-program", "payload"},
		Text:  "name the node agent of the hosts with --node-program wmco-node.exe or --payload DIR or oci:IMAGE",
	}
}

// parseTargets are the hosts that --host names, each once.
func (f *hostFlags) parseTargets() ([]remote.Target, error) {
	if f.parallel < 1 {
		return nil, cli.UsageError("--parallel %d: must be at least 1", f.parallel)
	}
	seen := map[string]bool{}
	var all []remote.Target
	for _, text := range f.hosts {
		if strings.Contains(text, "://") {
			return nil, cli.UsageError("--host %s: write [USER@]ADDR[:PORT], without a scheme", text)
		}
		t, err := remote.ParseTarget(text)
		if err != nil {
			return nil, cli.UsageError("--host: %w", err)
		}
		if seen[t.Address] {
			return nil, cli.UsageError("--host %s: the host is named twice", text)
		}
		seen[t.Address] = true
		all = append(all, t)
	}
	return all, nil
}

// newDialer opens connections with the keys and known hosts of the flags.
func (f *hostFlags) newDialer(ctx context.Context, a app) (ssh.Dialer, error) {
	signers, err := f.loadSigners(ctx, a)
	if err != nil {
		return ssh.Dialer{}, err
	}
	path := f.knownHosts
	if path == "" {
		if path, err = ssh.DefaultKnownHosts(); err != nil {
			return ssh.Dialer{}, cli.UsageError("%w; give --known-hosts", err)
		}
	}
	pins := ssh.NewKnownHosts(path)
	if err := pins.Check(); err != nil {
		return ssh.Dialer{}, cli.UsageError(
			"reading known host keys: %w; fix or remove this line, or give another file with --known-hosts", err,
		)
	}
	var line sync.Mutex // hosts are reached at the same time
	pinned := func(t remote.Target, key cryptossh.PublicKey) {
		line.Lock()
		defer line.Unlock()
		cli.Printf(a.stderr, "%s: first contact, its host key is added to %s: %s\n", t, path, ssh.KnownHostsLine(t.Address, key))
	}
	return ssh.Dialer{
		Limits: cmp.Or(a.limits, ssh.DefaultLimits()), Pins: pins, OnPin: pinned,
		Signers: func(context.Context) ([]cryptossh.Signer, error) { return signers, nil },
	}, nil
}

// loadSigners are the keys to log in with.
func (f *hostFlags) loadSigners(ctx context.Context, a app) ([]cryptossh.Signer, error) {
	if f.identity == "" {
		signers, err := ssh.AgentSigners()
		if err != nil {
			return nil, cli.UsageError("%w; or give the private key with --identity", err)
		}
		return signers, nil
	}
	signer, err := ssh.FileSigner(f.identity, func() ([]byte, error) { return f.askPassphrase(ctx, a) })
	if err != nil {
		return nil, cli.UsageError("reading --identity %q: %w", f.identity, err)
	}
	return []cryptossh.Signer{signer}, nil
}

// askPassphrase asks for the passphrase of --identity on the terminal.
func (f *hostFlags) askPassphrase(ctx context.Context, a app) ([]byte, error) {
	terminal, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return nil, errors.New("it has a passphrase and there is no terminal to ask for it: add it to ssh-agent and omit --identity")
	}
	cli.Printf(a.stderr, "Passphrase for %s: ", f.identity)
	defer cli.Printf(a.stderr, "\n")
	return readPassphrase(ctx, int(terminal.Fd()))
}

// readPassphrase reads a line that the terminal does not show. When the context ends first, as with Ctrl-C, the
// terminal is restored; the read goes on until the program ends.
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

// newClient returns the hosts, and a client that copies the node agent of a payload to them. Nothing is connected to
// yet.
func (f *hostFlags) newClient(ctx context.Context, a app, payload string) ([]remote.Target, *remote.Client, error) {
	targets, err := f.parseTargets()
	if err != nil {
		return nil, nil, err
	}
	dialer, err := f.newDialer(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	program, err := f.nodeProgram(payload)
	if err != nil {
		return nil, nil, err
	}
	return targets, remote.NewClient(ssh.NewTransport(dialer), program, remote.DefaultLimits()), nil
}

// nodeProgram is the program to copy to hosts: --node-program, or else the payload's.
func (f *hostFlags) nodeProgram(dir string) (remote.Program, error) {
	if f.program != "" {
		return remote.FileProgram(f.program)
	}
	s, err := store.Open(dir)
	if err != nil {
		return remote.Program{}, err
	}
	for _, e := range s.Entries() {
		if e.Name == payload.Agent {
			open := func() (io.ReadCloser, error) { return s.OpenRaw(e.Name) }
			return remote.Program{Path: remote.ProgramPath(e.Raw.Digest), Digest: e.Raw.Digest, Size: e.Raw.Size, Open: open}, nil
		}
	}
	return remote.Program{}, cli.UsageError("payload %q has no %s: name one with --node-program", dir, payload.Agent)
}
