package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	cryptossh "golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/applier/remote/ssh"
	"wmco/payload"
	"wmco/payload/store"
)

// hostFlags are shared by all commands that reach machines.
type hostFlags struct {
	hosts      []string
	identity   string
	knownHosts string
	program    string
	parallel   int
}

// defaultParallel is how many machines are worked on at once.
const defaultParallel = 16

func (f *hostFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.hosts, "host", nil, "a machine to reach over SSH: [USER@]ADDR[:PORT]; repeatable. The user is "+remote.DefaultUser+" if none is named")
	flags.StringVar(&f.identity, "identity", "", "private key to log in with; without, the keys of ssh-agent")
	flags.StringVar(&f.knownHosts, "known-hosts", "", "file with the machines' host keys; new ones are added (default ~/.ssh/known_hosts, or one of wmco's own where that is absent)")
	flags.StringVar(&f.program, "node-program", "", "the wmco-node.exe to put onto machines; without, that of --payload")
	flags.IntVar(&f.parallel, "parallel", defaultParallel, "how many machines to work on at once")
}

// targets are the machines that --host names, each once.
func (f *hostFlags) targets() ([]remote.Target, error) {
	if len(f.hosts) == 0 {
		return nil, usageError("name the machines with --host [USER@]ADDR[:PORT]")
	}
	if f.parallel < 1 {
		return nil, usageError("--parallel %d: at least one machine is worked on at a time", f.parallel)
	}
	seen := map[string]bool{}
	var all []remote.Target
	for _, text := range f.hosts {
		if strings.Contains(text, "://") {
			return nil, usageError("--host %s: write [USER@]ADDR[:PORT], without a scheme", text)
		}
		t, err := remote.ParseTarget(text)
		if err != nil {
			return nil, usageError("--host: %w", err)
		}
		if seen[t.Address] {
			return nil, usageError("--host %s: the machine is named twice", text)
		}
		seen[t.Address] = true
		all = append(all, t)
	}
	return all, nil
}

// anyAddress is one to look up in a file of host keys, to see whether it can be read.
const anyAddress = "192.0.2.1:22"

// dialer opens connections with the keys and known hosts of the flags.
func (f *hostFlags) dialer(ctx context.Context, a app) (ssh.Dialer, error) {
	signers, err := f.signers(ctx, a)
	if err != nil {
		return ssh.Dialer{}, err
	}
	path, err := f.knownHostsFile()
	if err != nil {
		return ssh.Dialer{}, err
	}
	pins := ssh.NewKnownHosts(path)
	if _, err := pins.Pinned(anyAddress); err != nil {
		return ssh.Dialer{}, usageError("reading the host keys of known machines: %w; mend or remove the line that this names, or give another file with --known-hosts", err)
	}
	var line sync.Mutex // machines are met at once
	met := func(t remote.Target, key cryptossh.PublicKey) {
		line.Lock()
		defer line.Unlock()
		fmt.Fprintf(a.stderr, "%s: met for the first time, its host key is pinned in %s: %s\n", t, path, ssh.KnownHostsLine(t.Address, key))
	}
	return ssh.Dialer{
		Limits: ssh.DefaultLimits(), Pins: pins, OnPin: met,
		Signers: func(context.Context) ([]cryptossh.Signer, error) { return signers, nil },
	}, nil
}

// knownHostsFile is the person's own where there is one.
func (f *hostFlags) knownHostsFile() (string, error) {
	if f.knownHosts != "" {
		return f.knownHosts, nil
	}
	if home, err := os.UserHomeDir(); err == nil {
		path := filepath.Join(home, ".ssh", "known_hosts")
		if pathExists(path) {
			return path, nil
		}
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", usageError("looking for a place for host keys: %w; give --known-hosts", err)
	}
	return filepath.Join(config, "wmco", "known_hosts"), nil
}

// nodeProgram is what is put onto machines: --node-program, or else the payload's.
func (f *hostFlags) nodeProgram(dir string) (remote.Program, error) {
	if f.program != "" {
		p, err := remote.FileProgram(f.program, payload.AgentPath)
		if err != nil {
			return p, &exitError{exitUsage, err}
		}
		return p, nil
	}
	if dir == "" {
		return remote.Program{}, usageError("name the program that goes onto machines: --node-program wmco-node.exe, or --payload DIR")
	}
	s, err := store.Open(dir)
	if err != nil {
		return remote.Program{}, &exitError{exitUsage, err}
	}
	for _, e := range s.Entries() {
		if e.Name == payload.Agent {
			return remote.Program{Path: e.Path, Digest: e.Raw.Digest, Size: e.Raw.Size, Open: opener(s.Raw, e.Name)}, nil
		}
	}
	return remote.Program{}, usageError("payload %q has no %s: name one with --node-program", dir, payload.Agent)
}

// Statuses of one machine, the gravest first. A machine that nobody can talk to is unreachable, whatever keeps us from it.
var gravest = []int{exitInterrupted, exitUsage, exitPartial, exitRolledBack, exitUnreachable, exitDiffers}

// graver is the status of two machines together.
func graver(a, b int) int {
	for _, status := range gravest {
		if a == status || b == status {
			return status
		}
	}
	return exitDone
}

// hostStatus is the status of an error of a machine. cut is what it means that a command's end is not known.
func hostStatus(err error, cut int) int {
	var interrupted *remote.InterruptedError
	var command *remote.CommandError
	var usage *exitError
	switch {
	case errors.As(err, &usage):
		return usage.status
	case errors.As(err, &command):
		return cmp.Or(nodeStatus(command.Status), cut)
	case errors.As(err, &interrupted):
		return cut
	}
	return exitUnreachable
}

// nodeStatus is a status of the node program that means the same for us, 0 for others.
func nodeStatus(status int) int {
	switch status {
	case exitUsage, exitPartial, exitRolledBack:
		return status
	}
	return 0
}
