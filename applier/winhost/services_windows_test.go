package winhost

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/hosttest"
	"wmco/bundle"
)

// testService puts a service that plays a program, and takes it away afterwards.
func testService(t *testing.T, plays hosttest.Program, args ...string) (*Host, applier.ServiceConfig) {
	t.Helper()
	m := newMachine(t)
	exe := m.Folder() + `\service.exe`
	install(t, exe, plays)
	h := quick()
	config := applier.ServiceConfig{Name: "wmco-" + strings.ToLower(t.Name()), Start: applier.StartManual, CommandLine: bundle.CommandLine(append([]string{exe}, args...))}
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

func serviceNow(t *testing.T, h *Host, name string) applier.ServiceState {
	t.Helper()
	states, err := h.Services(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

// programs counts the processes of a program.
func programs(t *testing.T, path string) int {
	t.Helper()
	all, err := snapshot()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range all {
		if strings.EqualFold(p.Program, path) {
			n++
		}
	}
	return n
}

func TestArgumentsOfServices(t *testing.T) {
	args := []string{"--service", "", "a b", `C:\my dir\`, `say "hi"`, `\\server\share`, `tail\\"`, "--x=größe", "100%", "^&|<>"}
	h, config := testService(t, hosttest.ProgramGood, args...)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	seen := machine{}.Seen(t, config.Name)
	if diff := cmp.Diff(args, seen.Argv[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLookingAtAServiceChangesNothing(t *testing.T) {
	h, config := testService(t, hosttest.ProgramGood)
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
		stopped := func() (bool, error) { return serviceNow(t, h, config.Name).Status == applier.ServiceStopped, nil }
		if err := poll(t.Context(), time.Minute, h.limits.poll, stopped); err != nil {
			t.Fatalf("%v: %+v", err, serviceNow(t, h, config.Name))
		}
	}
}

func TestAProcessThatOutlivesItsServiceIsEnded(t *testing.T) {
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

func TestAWrapperAndTheServiceInIt(t *testing.T) {
	const inner = machineFolder + `\inner.exe`
	h, config := testService(t, playsWrap, inner)
	install(t, inner, hosttest.ProgramGood)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	if n := programs(t, inner); n != 1 {
		t.Fatalf("%d processes in the wrapper", n)
	}
	// The wrapper dies and leaves what it wraps.
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
		t.Errorf("%d processes of a wrapper that died are left", n)
	}
}

func TestProgramsOfOthersAreNotEndedWithAService(t *testing.T) {
	const exe = machineFolder + `\service.exe`
	h, config := testService(t, hosttest.ProgramGood)
	if err := h.StartService(t.Context(), config.Name); err != nil {
		t.Fatal(err)
	}
	// The same program, run by somebody else, who still runs.
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
		t.Errorf("%d processes are left, want that of the other one", n)
	}
}

func TestADeletedServiceThatSomebodyHoldsSaysWhoMayHoldIt(t *testing.T) {
	h, config := testService(t, hosttest.ProgramGood)
	release := machine{}.HoldService(t, config.Name)
	defer release()
	var refusal *applier.ServiceError
	err := h.DeleteService(t.Context(), config.Name)
	if !errors.As(err, &refusal) || !errors.Is(err, errHeld) {
		t.Errorf("got %v", err)
	}
}

// TestKubeLogRunner wraps a service as kubelet and kube-proxy are, by the real wrapper.
func TestKubeLogRunner(t *testing.T) {
	const runner, inner, logFile = `C:\k\kube-log-runner.exe`, machineFolder + `\inner.exe`, machineFolder + `\inner.log`
	h := quick()
	if infos, err := h.Stat(t.Context(), []string{runner}); err != nil || infos[0].Kind == applier.FileAbsent {
		t.Skip("there is no "+runner, err)
	}
	newMachine(t)
	install(t, inner, hosttest.ProgramHangsStopping)
	config := applier.ServiceConfig{
		Name: "wmco-wrapped", Start: applier.StartManual,
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

// TestService runs a function as a service.
func TestService(t *testing.T) {
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
