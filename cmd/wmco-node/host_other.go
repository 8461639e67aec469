//go:build !windows

package main

import (
	"context"
	"errors"
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
)

// platformCommands adds the commands of simulated hosts.
func platformCommands(cmd *cobra.Command, a *app) {
	cmd.PersistentFlags().StringVar(&a.root, "root", a.root, "folder of a simulated host (non-Windows only)")
	cmd.AddCommand(machineCommand(a))
}

var errNoRoot = errors.New("not running on Windows: name the folder of a simulated host with --root")

func openHost(root string) (applier.Host, error) { return openFolder(root) }

func openFolder(root string) (*folderhost.Host, error) {
	if root == "" {
		return nil, errNoRoot
	}
	onChange, err := killBefore(os.Getenv("WMCO_NODE_KILL_AT"))
	if err != nil {
		return nil, err
	}
	return folderhost.New(root, folderhost.Options{OnChange: onChange})
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

// openMachine returns the simulated host for the self-test.
func openMachine(root string) (selftest.Machine, error) {
	if root == "" {
		return nil, errNoRoot
	}
	return folderhost.NewMachine(root, folderhost.Options{}), nil
}

// openSystem returns the facts of the Windows of a simulated host.
func openSystem(root string) collect.System { return folderhost.System(root) }

// localImages returns nil: a simulated host has no containerd.
func localImages() (images.Runtime, error) { return nil, nil } //nolint:nilnil // there is none

// playRole returns false: no copy of this program runs on a simulated host.
func playRole() (played bool, status int) { return false, 0 }

// readLinked reads a file: a simulated kubelet makes a copy where the real one makes a link.
func readLinked(ctx context.Context, host applier.Host, path string) ([]byte, error) {
	return readKey(ctx, host, path)
}

// settleLimit is short, because the services of a simulated host do not change by themselves.
const settleLimit = 10 * time.Millisecond

// guardLimit is that of the engine.
func guardLimit() (time.Duration, error) { return 0, nil }

// asService runs in this process: a simulated service control manager starts no programs, so none waits for an answer.
func asService(ctx context.Context, _ string, run func(context.Context) error) error { return run(ctx) }
