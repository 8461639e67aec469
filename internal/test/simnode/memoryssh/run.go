package memoryssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier"
	"wmco/applier/agent/images"
	"wmco/applier/collect"
	"wmco/applier/ownfile"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/nodecli"
	"wmco/internal/test/simnode"
	"wmco/internal/test/sshtest/simulated"
)

// run is one command on a machine.
type run struct {
	machine *simnode.Machine
	channel ssh.Channel
	// registries sends requests to registries.
	registries http.RoundTripper
}

// runLine runs a command line, and returns its exit status.
func (r run) runLine(ctx context.Context, line string) int {
	words, err := simulated.SplitWords(simulated.ShellCmd, line)
	if err != nil {
		fmt.Fprintln(r.channel.Stderr(), err)
		return 1
	}
	path := strings.ReplaceAll(words[0], `\\`, `\`)
	file := ownfile.File{Path: path, Open: func(path string) (io.ReadCloser, error) {
		data, err := r.machine.ReadFile(path)
		return io.NopCloser(bytes.NewReader(data)), err
	}}
	if _, err := file.Digest(); err != nil {
		fmt.Fprintf(r.channel.Stderr(), "'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n", words[0])
		return 1
	}
	if err := file.Check(words[1:]); err != nil {
		fmt.Fprintf(r.channel.Stderr(), "wmco-node: %v\n", err)
		return cli.ExitDamaged
	}
	p := nodecli.Program{
		Stdin: r.channel, Stdout: r.channel, Stderr: r.channel.Stderr(), Clock: r.machine.Clock(), Version: r.machine.Program(),
		Settle: settle, Host: host{machine: r.machine}, Registries: r.registries,
		Digest: func() (bundle.Digest, error) {
			digest, err := file.Digest()
			return bundle.Digest("sha256:" + digest), err
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return nodecli.Execute(ctx, p.Root(), words[1:])
}

// host implements nodecli.Host.
type host struct{ machine *simnode.Machine }

func (h host) Open() (applier.Host, error) { return h.machine.Applier(), nil }

func (host) Machine() (selftest.Machine, error) {
	return nil, errors.New("a machine in memory has no self-test")
}

// System is a healthy Windows Server.
func (host) System() collect.System { return folderhost.System("") }

func (host) Images() (images.Runtime, error) { return nil, nil } //nolint:nilnil // there is none

func (host) OpenLinked(ctx context.Context, host applier.Host, path string) (io.ReadCloser, error) {
	return host.Open(ctx, path)
}

// settle is short, because the services of a simulated host do not change by themselves.
const settle = 10 * time.Millisecond
