package winhost

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/winhost/services"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// testService creates a service with a test program, and deletes it afterwards.
func testService(t *testing.T, plays selftest.Program, args ...string) (*Host, plan.ServiceConfig) {
	t.Helper()
	m := newMachine(t)
	exe := m.Folder() + `\service.exe`
	install(t, exe, plays)
	h := quick()
	config := plan.ServiceConfig{Name: "wmco-" + strings.ToLower(t.Name()), Start: plan.StartManual, CommandLine: bundle.CommandLine(append([]string{exe}, args...))}
	if err := h.PutService(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(h.StopService(ctx, config.Name), h.DeleteService(ctx, config.Name)); err != nil {
			t.Error(err)
		}
	})
	return h, config
}

func serviceNow(t *testing.T, h *Host, name string) plan.ServiceState {
	t.Helper()
	states, err := h.Services(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

// programs returns the number of processes of a program.
func programs(t *testing.T, path string) int {
	t.Helper()
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(snapshot) //nolint:errcheck // nothing was written
	n := 0
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if strings.EqualFold(programOf(entry.ProcessID), path) {
			n++
		}
	}
	return n
}

// programOf returns the path of the program of a process, "" if the process has ended.
func programOf(process uint32) string {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, process)
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	buffer := make([]uint16, bundle.MaxPath)
	n := uint32(len(buffer))
	if err := windows.QueryFullProcessImageName(handle, 0, &buffer[0], &n); err != nil {
		return ""
	}
	return windows.UTF16ToString(buffer[:n])
}

func TestArgumentsOfServices(t *testing.T) {
	args := []string{"--service", "", "a b", `C:\my dir\`, `say "hi"`, `\\server\share`, `tail\\"`, "--x=größe", "100%", "^&|<>"}
	h, config := testService(t, selftest.ProgramGood, args...)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	seen := machine{}.Seen(t, config.Name)
	if diff := cmp.Diff(args, seen.Argv[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadingAServiceChangesNothing(t *testing.T) {
	h, config := testService(t, selftest.ProgramGood)
	config.Dependencies, config.Environment = []string{"first", "second"}, []string{"A=1"}
	config.Recovery = bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 300}
	if err := h.PutService(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if diff := cmp.Diff(config, serviceNow(t, h, config.Name).ServiceConfig); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAServiceThatCrashesIsStopped(t *testing.T) {
	h, config := testService(t, playsCrash)
	for range 2 { // it can be started again
		if err := h.StartService(t.Context(), config.Name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(crashNow, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		stopped := func() (bool, error) { return serviceNow(t, h, config.Name).Status == plan.ServiceStopped, nil }
		if err := wait.PollUntil(t.Context(), time.Minute, h.Limits.Poll, stopped); err != nil {
			t.Fatalf("%v: %+v", err, serviceNow(t, h, config.Name))
		}
		if err := os.Remove(crashNow); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStopKillsAProcessThatOutlivesItsService(t *testing.T) {
	h, config := testService(t, playsLinger)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	exe := machineFolder + `\service.exe`
	if n := programs(t, exe); n != 1 {
		t.Fatalf("%d processes", n)
	}
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, exe); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestStopKillsWhatADeadWrapperLeft(t *testing.T) {
	const inner = machineFolder + `\inner.exe`
	h, config := testService(t, playsWrap, inner)
	install(t, inner, selftest.ProgramGood)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, inner); n != 1 {
		t.Fatalf("%d processes in the wrapper", n)
	}
	// The wrapper dies and leaves the program that it started.
	wrapper, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(serviceNow(t, h, config.Name).Process))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(windows.TerminateProcess(wrapper, 1), windows.CloseHandle(wrapper)); err != nil {
		t.Fatal(err)
	}
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, inner); n != 0 {
		t.Errorf("%d processes of the dead wrapper are left", n)
	}
}

func TestStopKeepsTheSameProgramOutsideOfTheService(t *testing.T) {
	const exe = machineFolder + `\service.exe`
	h, config := testService(t, selftest.ProgramGood)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	// A process of the same program that the service did not start.
	other := exec.Command(exe)
	other.Env = append(other.Environ(), asChild+"=1")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Wait() }()
	defer func() { _ = other.Process.Kill() }()
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, exe); n != 1 {
		t.Errorf("%d processes are left, want 1: the one outside of the service", n)
	}
}

func TestDeletingAServiceThatAProgramHasOpen(t *testing.T) {
	h, config := testService(t, selftest.ProgramGood)
	release := machine{}.HoldService(t, config.Name)
	defer release()
	var refusal *applier.ServiceError
	err := h.DeleteService(t.Context(), config.Name)
	if !errors.As(err, &refusal) || !errors.Is(err, services.ErrHeld) {
		t.Errorf("got %v", err)
	}
}

// TestAServiceIsAskedToStopOnce: Wine kills a service at the second request, and shows it as running for ever.
func TestAServiceIsAskedToStopOnce(t *testing.T) {
	h, config := testService(t, playsLate)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(functionRan); err != nil || string(data) != "stopped" {
		t.Errorf("the service did not end by itself: %q, %v", data, err)
	}
	if now := serviceNow(t, h, config.Name); now.Status != plan.ServiceStopped {
		t.Errorf("it is %s", now.Status)
	}
}

// TestKubeLogRunner uses the real wrapper of kubelet and kube-proxy.
func TestKubeLogRunner(t *testing.T) {
	const runner, inner, logFile = `C:\k\kube-log-runner.exe`, machineFolder + `\inner.exe`, machineFolder + `\inner.log`
	h := quick()
	if infos, err := h.Stat(t.Context(), []string{runner}); err != nil || infos[0].Kind == plan.FileAbsent {
		t.Skip("there is no "+runner, err)
	}
	newMachine(t)
	install(t, inner, selftest.ProgramHangsStopping)
	config := plan.ServiceConfig{
		Name: "wmco-wrapped", Start: plan.StartManual,
		CommandLine: bundle.CommandLine([]string{runner, "-log-file=" + logFile, "-log-file-size=1M", inner, "--x=a b"}),
	}
	if err := h.PutService(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, inner); n != 1 {
		t.Errorf("%d processes in the wrapper", n)
	}
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Error(err)
	}
	if n := programs(t, inner) + programs(t, runner); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if err := h.DeleteService(t.Context(), config.Name); err != nil {
		t.Error(err)
	}
}

// TestRunsAFunctionAsAService starts and stops it twice.
func TestRunsAFunctionAsAService(t *testing.T) {
	h, config := testService(t, playsFunction)
	for range 2 {
		if err := h.StartService(t.Context(), config.Name); err != nil {
			t.Fatal(err)
		}
		if err := h.StopService(t.Context(), config.Name); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(functionRan); err != nil || string(data) != "stopped: context canceled" {
		t.Errorf("the function ended with %q, %v", data, err)
	}
}

// TestAServiceThatIsRetired runs on and goes with its process. Windows removes its program with the next boot.
func TestAServiceThatIsRetired(t *testing.T) {
	h, config := testService(t, selftest.ProgramGood)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also one that is retired already
		if err := h.RetireService(t.Context(), config.Name); err != nil {
			t.Fatal(err)
		}
	}
	if got, n := serviceNow(t, h, config.Name).Status, programs(t, bundle.Program(config.CommandLine)); got != plan.ServiceDeleting || n != 1 {
		t.Errorf("it is %s, with %d processes", got, n)
	}
	if isWine() { // Windows alone writes this place of its registry
		checkRemovedAtBoot(t, bundle.Program(config.CommandLine))
	}
	if err := h.StopService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if got := serviceNow(t, h, config.Name).Status; got != plan.ServiceAbsent {
		t.Errorf("after its end it is %s", got)
	}
	if err := h.RetireService(t.Context(), config.Name); err != nil {
		t.Errorf("one that is deleted: %v", err)
	}
}

// checkRemovedAtBoot takes the place where Windows notes what it removes when it boots, which has the program.
func checkRemovedAtBoot(t *testing.T, program string) {
	t.Helper()
	const value = "PendingFileRenameOperations"
	session, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Control\Session Manager`, registry.ALL_ACCESS)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, _, err := session.GetStringsValue(value)
	if err != nil || len(list) == 0 || !strings.EqualFold(list[0], `\??\`+program) {
		t.Errorf("%v: Windows removes %q, the program is %s", err, list, program)
	}
	if err := session.DeleteValue(value); err != nil {
		t.Error(err)
	}
}
