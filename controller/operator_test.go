package controller

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/applier/remote"
	"wmco/controller/gather"
	"wmco/controller/hosts"
)

// operatorVariable makes this program an operator. Its value is the path of a kubeconfig.
const operatorVariable = "WMCO_TEST_OPERATOR"

// profileVariable is a file for the CPU profile of that operator.
const profileVariable = "WMCO_TEST_PROFILE"

// heapVariable is a file for the heap profile of that operator, of the moment at which the most was in use. Both profiles are of a change, once
// beginProfiles was called.
const heapVariable = "WMCO_TEST_HEAP"

const operatorUser = "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorName

// dialed is what the operator prints for each attempt to reach a host.
const dialed = "ssh"

// operatorProcess is the operator in a process of its own.
type operatorProcess struct {
	*exec.Cmd
	t      testing.TB
	stdin  io.WriteCloser
	logins atomic.Int64
	stop   func()
}

func startOperatorProcess(t testing.TB) *operatorProcess {
	t.Helper()
	o := &operatorProcess{Cmd: exec.CommandContext(context.Background(), os.Args[0]), t: t}
	o.Env = append(os.Environ(), operatorVariable+"="+cluster.ControlPlane(t).Kubeconfig)
	o.Stderr = os.Stderr
	stdin, err := o.StdinPipe() // it ends with this program
	if err != nil {
		t.Fatal(err)
	}
	out, err := o.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdin = stdin
	if err := o.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), dialed) {
				o.logins.Add(1)
			}
		}
	})
	o.stop = sync.OnceFunc(func() {
		_ = o.Process.Signal(syscall.SIGTERM) // it may have ended
		reading.Wait()
		if err := o.Wait(); err != nil {
			t.Errorf("the operator: %v", err)
		}
		_ = stdin.Close()
	})
	return o
}

// beginProfiles has the process begin the profiles that are asked for.
func (o *operatorProcess) beginProfiles() {
	o.t.Helper()
	if _, err := o.stdin.Write([]byte{'\n'}); err != nil {
		o.t.Fatal(err)
	}
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

// runOperator is this program as the operator. It stops when it is asked to, and ends with the test that started it.
func runOperator(kubeconfig string) int {
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	change := make(chan struct{})
	go func() {
		if n, _ := os.Stdin.Read(make([]byte, 1)); n > 0 {
			close(change)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the test
		os.Exit(1)
	}()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		log.SetLogger(logr.Discard())
		config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		err = profiled(ctx, change, func() error {
			return Run(ctx, Options{
				Config: config, Version: scaleVersion, HealthAddress: "0", MetricsAddress: "0", Log: logr.Discard(),
				Hosts: func(*hosts.Login) *hosts.Hosts {
					return hosts.New(hosts.Options{Transports: hosts.Transports{Kept: noHosts{}, Fresh: noHosts{}}})
				},
			})
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// scaleVersion is that of the nodes, so that none of them is upgraded.
const scaleVersion = "11.0.0-9f27c41"

// profileHeap writes a heap profile each time that more is in use than before.
func profileHeap(ctx context.Context, path string) {
	var most uint64
	for ctx.Err() == nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if m.HeapInuse > most+most/20 {
			most = m.HeapInuse
			if file, err := os.Create(path); err == nil {
				_ = pprof.Lookup("heap").WriteTo(file, 0) // a profile is for people
				_ = file.Close()
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// profiled writes profiles of CPU and heap if they are asked for, from when the change begins.
func profiled(ctx context.Context, change <-chan struct{}, run func() error) error {
	path := os.Getenv(profileVariable)
	if path == "" && os.Getenv(heapVariable) == "" {
		return run()
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		select {
		case <-change:
			ended <- writeProfiles(ctx, path)
		case <-ctx.Done():
			ended <- nil
		}
	}()
	err := run()
	stop()
	return errors.Join(err, <-ended)
}

// writeProfiles returns when the context ends.
func writeProfiles(ctx context.Context, path string) error {
	if heap := os.Getenv(heapVariable); heap != "" {
		go profileHeap(ctx, heap)
	}
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	<-ctx.Done()
	pprof.StopCPUProfile()
	return file.Close()
}

// noHosts reaches no host, and prints that somebody has tried.
type noHosts struct{}

var errNoHosts = errors.New("there are no hosts")

func (noHosts) try(t remote.Target) error {
	fmt.Println(dialed, t.Host())
	return errNoHosts
}

func (n noHosts) Connect(_ context.Context, t remote.Target) error { return n.try(t) }
func (n noHosts) Run(_ context.Context, t remote.Target, _ remote.Command) error {
	return n.try(t)
}

func (n noHosts) Transfer(_ context.Context, t remote.Target, _ func(remote.Files) error) error {
	return n.try(t)
}
func (noHosts) Close() error { return nil }
