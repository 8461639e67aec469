//go:build !windows

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"wmco/applier"
	"wmco/applier/agent/images"
	"wmco/applier/collect"
	"wmco/applier/selftest"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/nodecli"
)

// newRoot returns the commands for a simulated host, and those that make one.
func newRoot(p nodecli.Program) *cobra.Command {
	host := &folder{root: os.Getenv("WMCO_NODE_ROOT")}
	p.Host, p.Settle, p.AsService = host, settle, asService
	root := p.Root()
	root.PersistentFlags().StringVar(&host.root, "root", host.root, "folder of a simulated host (non-Windows only)")
	root.AddCommand(machineCommand(host))
	return root
}

// folder implements nodecli.Host for a host in a folder.
type folder struct{ root string }

var errNoRoot = errors.New("not running on Windows: name the folder of a simulated host with --root")

func (s *folder) Open() (applier.Host, error) { return s.openFolder() }

func (s *folder) openFolder() (*folderhost.Host, error) {
	if s.root == "" {
		return nil, errNoRoot
	}
	onChange, err := killBefore(os.Getenv("WMCO_NODE_KILL_AT"))
	if err != nil {
		return nil, err
	}
	return folderhost.New(s.root, folderhost.Options{OnChange: onChange})
}

// killBefore returns what kills this process when it is called the n-th time, from 0: tests kill it before a change of
// the host. An empty number is none.
func killBefore(n string) (onChange func(), err error) {
	if n == "" {
		return nil, nil //nolint:nilnil // nothing is called
	}
	left, err := strconv.Atoi(n)
	return func() {
		if left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // it ends here
		}
		left--
	}, err
}

func (s *folder) Machine() (selftest.Machine, error) {
	if s.root == "" {
		return nil, errNoRoot
	}
	return folderhost.NewMachine(s.root, folderhost.Options{}), nil
}

func (s *folder) System() collect.System { return folderhost.System(s.root) }

func (*folder) Images() (images.Runtime, error) { return nil, nil } //nolint:nilnil // there is none

// playRole returns false: no copy of this program runs on a simulated host.
func playRole() (played bool, status int) { return false, 0 }

// OpenLinked opens a file: a simulated kubelet makes a copy where the real one makes a link.
func (*folder) OpenLinked(ctx context.Context, host applier.Host, path string) (io.ReadCloser, error) {
	return host.Open(ctx, path)
}

// settle is short, because the services of a simulated host do not change by themselves.
const settle = 10 * time.Millisecond

// asService runs in this process: a simulated service control manager starts no programs, so none waits for an answer.
func asService(ctx context.Context, _ string, run func(context.Context) error) error {
	return run(ctx)
}
