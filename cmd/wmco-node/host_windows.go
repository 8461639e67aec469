package main

import (
	"context"
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
)

// wine is "yes" only in builds for tests under Wine, set by the linker: -X main.wine=yes. The program does not detect
// Wine, and nothing can tell it at run time. Detection is in no release then, and asking for what differs does not
// work: Wine reports that it keeps access control lists (FILE_PERSISTENT_ACLS), and returns others than it was given.
var wine string //nolint:gochecknoglobals // the linker sets it

// guardWait is how long the guard waits, such as 40s, only in builds for tests: -X main.guardWait=40s. Others wait for
// minutes.
var guardWait string //nolint:gochecknoglobals // the linker sets it

func guardLimit() (time.Duration, error) {
	if guardWait == "" {
		return 0, nil
	}
	return time.ParseDuration(guardWait)
}

// platformCommands adds nothing: the host is the one that the program runs on.
func platformCommands(*cobra.Command, *app) {}

func openHost(string) (applier.Host, error) {
	return winhost.New(winhost.Options{Wine: wine == "yes"}), nil
}

// openMachine returns this machine for the self-test.
func openMachine(string) (selftest.Machine, error) {
	return thismachine.Machine{Wine: wine == "yes"}, nil
}

// openSystem returns the facts of this Windows.
func openSystem(string) collect.System { return inspect.System{} }

// localImages returns the containerd of this host. It is not asked before the bundle lists an image.
func localImages() (images.Runtime, error) { return cri.NewLocal() }

// playRole makes a copy of this program act as a service of the self-test.
func playRole() (played bool, status int) { return thismachine.Play() }

// readLinked follows the link that the kubelet makes, which a Host does not.
func readLinked(_ context.Context, _ applier.Host, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return readAll(file, path)
}

// sinceBoot is GetTickCount64, which cannot be set
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-gettickcount64).
func sinceBoot() time.Duration { return windows.DurationSinceBoot() }

// settleLimit is none: the bundle has how long services must stay healthy.
const settleLimit = 0

func asService(_ context.Context, name string, run func(context.Context) error) error {
	return services.RunAsService(name, run)
}
