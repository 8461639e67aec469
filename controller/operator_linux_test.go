package controller

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"wmco/controller/gather"
	"wmco/internal/test/sshtest"
)

const operatorUser = "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorName

// builtVersion is that of a program that is built without one.
const builtVersion = "devel"

// operatorProcess is the program of a release, run as the operator.
type operatorProcess struct {
	*exec.Cmd
	t testing.TB
	// dialed is how many lines of its log are about an attempt to reach a host.
	dialed atomic.Int64
	stop   func()
}

// operatorFlags are what an operator of a test has besides what its Deployment gives it. Zero values are left out.
type operatorFlags struct {
	// payload is a folder of executables, pod the name of the operator's Pod, metrics the address where metrics are served.
	payload, pod, metrics string
}

// startOperatorProcess starts the operator as its Deployment does, but for the ports that it opens, and with the API server's address and its rights in a file.
func startOperatorProcess(t testing.TB, programs *sshtest.Shared, f operatorFlags) *operatorProcess {
	t.Helper()
	arguments := []string{"operator", "--node-program=" + programs.Node, "--health-address=0"}
	if f.payload != "" {
		arguments = append(arguments, "--payload="+f.payload)
	}
	if f.metrics != "" {
		arguments = append(arguments, "--metrics-address="+f.metrics)
	}
	o := &operatorProcess{t: t, Cmd: exec.CommandContext(context.Background(), programs.Command, arguments...)} //nolint:gosec // it was built just now
	o.Env = append(os.Environ(), "KUBECONFIG="+operatorKubeconfig(t), "GOGC=100", "GOMEMLIMIT=1792MiB")         // deploy/manager/deployment.yaml
	if f.pod != "" {
		o.Env = append(o.Env, podVariable+"="+f.pod)
	}
	o.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := o.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewReader(log)
		for {
			line, err := lines.ReadString('\n')
			if strings.Contains(line, "ssh:") || strings.Contains(line, "dial tcp") {
				o.dialed.Add(1)
			}
			if err != nil {
				return
			}
		}
	})
	o.stop = sync.OnceFunc(func() {
		_ = o.Process.Signal(syscall.SIGTERM) // it may have ended
		reading.Wait()
		if err := o.Wait(); err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	return o
}

// operatorKubeconfig returns the path of a kubeconfig with the rights of the operator.
func operatorKubeconfig(t testing.TB) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.ControlPlane(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = operatorUser, []string{"system:serviceaccounts", "system:authenticated"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// cpu returns the time that the process has used.
func (o *operatorProcess) cpu() time.Duration {
	o.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.Process.Pid))
	if err != nil {
		o.t.Fatal(err)
	}
	// After the name in parentheses, the 12th and 13th fields (proc_pid_stat(5)), in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var total time.Duration
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			o.t.Fatal(err)
		}
		total += time.Duration(ticks) * 10 * time.Millisecond
	}
	return total
}

// atRest returns how much of one processor the process uses for some time.
func (o *operatorProcess) atRest(d time.Duration) float64 {
	o.t.Helper()
	before, begun := o.cpu(), time.Now()
	time.Sleep(d)
	return (o.cpu() - before).Seconds() / time.Since(begun).Seconds()
}

// memory returns a line of /proc/PID/status, in bytes.
func (o *operatorProcess) memory(line string) uint64 {
	o.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.Process.Pid))
	if err != nil {
		o.t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		var kib uint64
		if value, ok := strings.CutPrefix(l, line+":"); ok {
			if _, err := fmt.Sscan(value, &kib); err != nil {
				o.t.Fatal(err)
			}
			return kib << 10
		}
	}
	o.t.Fatalf("no line %s", line)
	return 0
}
