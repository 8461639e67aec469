package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/agent/images"
	"wmco/applier/agent/images/cri"
	"wmco/applier/collect"
	"wmco/applier/selftest"
	"wmco/applier/selftest/thismachine"
	"wmco/applier/winhost"
	"wmco/applier/winhost/inspect"
	"wmco/applier/winhost/services"
	"wmco/internal/nodecli"
)

// wine is "yes" only in builds for tests under Wine, set by the linker: -X main.wine=yes. The program does not detect
// Wine, and nothing can tell it at run time. Detection is in no release then, and asking for what differs does not
// work: Wine reports that it keeps access control lists (FILE_PERSISTENT_ACLS), and returns others than it was given.
var wine string //nolint:gochecknoglobals // the linker sets it

// guardWait is how long the guard waits, such as 40s, only in builds for tests: -X main.guardWait=40s. Others wait for
// minutes.
var guardWait string //nolint:gochecknoglobals // the linker sets it

// newRoot returns the commands for the host that the program runs on.
func newRoot(p nodecli.Program) *cobra.Command {
	p.Host, p.AsService = local{}, asService
	p.Guard, _ = time.ParseDuration(guardWait) // empty is none
	return p.Root()
}

// local implements nodecli.Host for this Windows.
type local struct{}

func (local) Open() (applier.Host, error) {
	return winhost.New(winhost.Options{Wine: wine == "yes"}), nil
}

func (local) Machine() (selftest.Machine, error) {
	return thismachine.Machine{Wine: wine == "yes"}, nil
}

func (local) System() collect.System { return inspect.System{} }

// Images returns a client that asks nothing before the bundle lists an image.
func (local) Images() (images.Runtime, error) { return cri.NewLocal() }

// playRole makes a copy of this program act as a service of the self-test.
func playRole() (played bool, status int) { return thismachine.Play() }

// OpenLinked follows the link that the kubelet makes, which an applier.Host does not.
func (local) OpenLinked(_ context.Context, _ applier.Host, path string) (io.ReadCloser, error) {
	return os.Open(path)
}

// sinceBoot is GetTickCount64, which cannot be set
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-gettickcount64).
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }

func asService(_ context.Context, name string, run func(context.Context) error) error {
	return services.RunAsService(name, run)
}
