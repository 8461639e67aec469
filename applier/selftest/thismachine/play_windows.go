package thismachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/windows/svc"

	"wmco/applier/selftest"
	"wmco/applier/winhost"
)

// Programs beside those of selftest.
const (
	playsWaiter selftest.Program = "waiter" // runs until it is ended
	playsLocker selftest.Program = "locker" // locks the host for the owner in its argument, and ends without releasing
)

// mark is at the end of a copy of this program. After it is the name of what the copy plays.
const mark = "\nwmco selftest program: "

// asChild is a variable that makes a copy the child of a service.
const asChild = "WMCO_SELFTEST_CHILD"

// asWrapped is a variable that makes a copy the service that a wrapper has started.
const asWrapped = "WMCO_SELFTEST_WRAPPED"

// Play acts as the program that this file is a copy for, and reports whether it did. It looks at the file only if it
// was started from selftest.Root; every other program goes on.
func Play() (played bool, status int) {
	path, err := os.Executable()
	if err != nil || !isBelowRoot(path) {
		return false, 0
	}
	plays, err := roleOf(path)
	if err != nil || plays == "" {
		return false, 0
	}
	return true, act(plays)
}

// roleOf returns the mark at the end of the file, "" without one.
func roleOf(path string) (selftest.Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	end := make([]byte, 64)
	n, err := seekEnd(f, end)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	_, role, _ := strings.Cut(string(end[:n]), mark)
	return selftest.Program(role), nil
}

func seekEnd(f *os.File, end []byte) (int, error) {
	if _, err := f.Seek(-int64(len(end)), io.SeekEnd); err != nil {
		return 0, err
	}
	return io.ReadFull(f, end)
}

func act(plays selftest.Program) (status int) {
	switch {
	case plays == playsWaiter || os.Getenv(asChild) != "":
		fmt.Println("runs")
		time.Sleep(time.Hour)
	case plays == playsLocker:
		if _, err := winhost.New(winhost.Options{Wine: len(os.Args) > 2}).Lock(context.Background(), os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case plays == selftest.ProgramWrapped && os.Getenv(asWrapped) == "":
		if err := wrapProgram(); err != nil {
			return 4
		}
	default:
		if err := svc.Run("", service(plays)); err != nil {
			return 3
		}
	}
	return 0
}

// service is a service that plays a program.
type service selftest.Program

// Execute implements svc.Handler.
func (s service) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (bool, uint32) {
	changes <- svc.Status{State: svc.StartPending}
	switch selftest.Program(s) {
	case selftest.ProgramExits:
		return true, 7
	case selftest.ProgramHangsStarting:
		time.Sleep(time.Hour)
	case selftest.ProgramParent:
		if err := spawn(); err != nil {
			return true, 5
		}
	case selftest.ProgramGood, selftest.ProgramHangsStopping, selftest.ProgramWrapped:
	}
	if err := record(); err != nil {
		return true, 6
	}
	accepts := svc.AcceptStop
	if selftest.Program(s) == selftest.ProgramWrapped {
		accepts |= svc.AcceptPreShutdown // as a kubelet does
	}
	changes <- svc.Status{State: svc.Running, Accepts: accepts}
	for r := range requests {
		if r.Cmd == svc.Interrogate {
			changes <- r.CurrentStatus
		}
		if r.Cmd >= firstOwnControl {
			if err := received(r.Cmd); err != nil {
				return true, 8
			}
		}
		if r.Cmd == svc.Stop {
			break
		}
	}
	changes <- svc.Status{State: svc.StopPending}
	if selftest.Program(s) == selftest.ProgramHangsStopping {
		time.Sleep(time.Hour)
	}
	return false, 0
}

// firstOwnControl is the first control that services define themselves
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice).
const firstOwnControl svc.Cmd = 128

// wrapProgram runs this program again, as kube-log-runner runs a kubelet: it is no service itself, and waits for its
// child.
func wrapProgram() error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(context.Background(), own, os.Args[1:]...)
	child.Env = append(os.Environ(), asWrapped+"=1")
	return child.Run()
}

// spawn starts this program again, as a process that does not end with this one.
func spawn() error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(context.Background(), own)
	child.Env = append(os.Environ(), asChild+"=1")
	return child.Start()
}

// record writes the arguments, the environment and the account of the service. The folder is missing while the machine
// boots.
func record() error {
	as, err := account()
	if err != nil {
		return err
	}
	data, err := json.Marshal(selftest.Seen{Argv: os.Args, Environment: os.Environ(), Account: as})
	if err == nil {
		err = os.WriteFile(filepath.Join(folderSeen, strconv.Itoa(os.Getpid())), data, 0o600)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// isBelowRoot reports whether a path is below selftest.Root. Windows ignores case.
func isBelowRoot(path string) bool {
	return strings.HasPrefix(strings.ToLower(path), strings.ToLower(selftest.Root)+`\`)
}
