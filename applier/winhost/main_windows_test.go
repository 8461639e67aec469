package winhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"

	"wmco/applier/selftest"
	"wmco/applier/winhost/services"
)

// mark is at the end of a copy of this test program. After it is the name of the program that the copy plays.
const mark = "\nwmco test program: "

// Programs beside those of selftest.
const (
	playsWaiter   selftest.Program = "waiter"   // runs until it is killed
	playsCrash    selftest.Program = "crash"    // starts, and crashes when there is crashNow
	playsLate     selftest.Program = "late"     // reports half a second after the request that it stops
	playsLinger   selftest.Program = "linger"   // reports that it has stopped, and keeps running
	playsFunction selftest.Program = "function" // runs a function with services.RunAsService
	playsWrap     selftest.Program = "wrap"     // starts the program in its arguments, which is the service
)

// functionRan is the file in which a service writes how it ended.
const functionRan = `C:\wmco-function.txt`

// folderSeen is where a service writes its arguments and environment, in a file with its process id as the name.
const folderSeen = `C:\wmco-seen`

// Variables that make a copy the child of a service, the client of a TLS server, or a process that writes a file for ever.
const (
	asChild  = "WMCO_TEST_CHILD"
	asClient = "WMCO_TEST_CLIENT"
	asWriter = "WMCO_TEST_WRITER"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(asClient); address != "" {
		os.Exit(connect(address))
	}
	if path := os.Getenv(asWriter); path != "" {
		writeForEver(path)
	}
	if plays := played(); plays != "" {
		play(plays)
		return
	}
	os.Exit(m.Run())
}

// played returns what this copy plays, "" in the test program itself.
func played() selftest.Program {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	// The mark is also in the text of the program.
	at := bytes.LastIndex(data, []byte(mark))
	if at < len(data)-len(mark)-32 {
		return ""
	}
	return selftest.Program(data[at+len(mark):])
}

// install writes a copy to path.
func install(t testing.TB, path string, plays selftest.Program) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, mark+string(plays)...), 0o755); err != nil {
		t.Fatal(err)
	}
}

func play(plays selftest.Program) {
	switch {
	case plays == playsWaiter || os.Getenv(asChild) != "":
		fmt.Println("runs")
		time.Sleep(time.Hour)
	case plays == playsWrap:
		child := exec.Command(os.Args[1], os.Args[2:]...)
		if err := child.Run(); err != nil {
			os.Exit(1)
		}
	case plays == playsFunction:
		err := services.RunAsService("wmco-test", func(ctx context.Context) error {
			<-ctx.Done()
			return errors.Join(os.WriteFile(functionRan, []byte("stopped: "+ctx.Err().Error()), 0o644), ctx.Err())
		})
		if err != nil {
			os.Exit(8)
		}
	default:
		if err := svc.Run("", handler(plays)); err != nil {
			os.Exit(3)
		}
		if plays == playsLinger {
			time.Sleep(time.Hour)
		}
	}
}

// handler is a service that plays a program.
type handler selftest.Program

func (h handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (bool, uint32) {
	changes <- svc.Status{State: svc.StartPending}
	switch selftest.Program(h) {
	case selftest.ProgramExits:
		return true, 7
	case selftest.ProgramHangsStarting:
		time.Sleep(time.Hour)
	case selftest.ProgramParent:
		spawn()
	case playsCrash:
		go crash()
	case selftest.ProgramGood, selftest.ProgramHangsStopping, selftest.ProgramWrapped:
	}
	record()
	changes <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for r := range requests {
		if r.Cmd == svc.Interrogate {
			changes <- r.CurrentStatus
		}
		if r.Cmd == svc.Stop {
			break
		}
	}
	if selftest.Program(h) == playsLate {
		time.Sleep(500 * time.Millisecond)
		if err := os.WriteFile(functionRan, []byte("stopped"), 0o644); err != nil {
			return true, 10
		}
	}
	changes <- svc.Status{State: svc.StopPending}
	if selftest.Program(h) == selftest.ProgramHangsStopping {
		time.Sleep(time.Hour)
	}
	return false, 0
}

// crashNow is the file that lets a service crash.
const crashNow = `C:\wmco-crash.txt`

func crash() {
	for {
		if _, err := os.Stat(crashNow); err == nil {
			os.Exit(9)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// spawn starts this program again, as a process that does not end with this one.
func spawn() {
	own, err := os.Executable()
	if err != nil {
		os.Exit(4)
	}
	child := exec.Command(own)
	child.Env = append(os.Environ(), asChild+"=1")
	if err := child.Start(); err != nil {
		os.Exit(5)
	}
}

// record writes the arguments and the environment of the service.
func record() {
	data, err := json.Marshal(selftest.Seen{Argv: os.Args, Environment: os.Environ()})
	if err == nil {
		err = os.WriteFile(filepath.Join(folderSeen, strconv.Itoa(os.Getpid())), data, 0o644)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		os.Exit(6)
	}
}

// anchorRoots keeps the root store of Wine. When a process opens the store, Wine replaces all roots by those of Linux, unless
// another process has this semaphore open.
func anchorRoots(t testing.TB) {
	t.Helper()
	name, err := windows.UTF16PtrFromString("crypt32_root_semaphore")
	if err != nil {
		t.Fatal(err)
	}
	create := windows.NewLazySystemDLL("kernel32.dll").NewProc("CreateSemaphoreW")
	handle, _, err := create.Call(0, 0, 1, ptr(name))
	if handle == 0 {
		t.Fatal(err)
	}
	if !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		release := windows.NewLazySystemDLL("kernel32.dll").NewProc("ReleaseSemaphore")
		if ok, _, err := release.Call(handle, 1, 0); ok == 0 {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = windows.CloseHandle(windows.Handle(handle)) })
}
