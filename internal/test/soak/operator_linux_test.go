package soak

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"

	"wmco/controller"
	"wmco/controller/gather"
	"wmco/internal/test/faults"
)

const (
	// operatorVariable makes this program an operator. Its value is the path of a kubeconfig.
	operatorVariable = "WMCO_SOAK_OPERATOR"
	// sabotageVariable gives that operator faults which the observer has to find.
	sabotageVariable = "WMCO_SOAK_SABOTAGE"
	// faultsVariable is the seed of the faults of its network.
	faultsVariable = "WMCO_SOAK_FAULTS"
)

const operatorUser = "system:serviceaccount:" + gather.OperatorNamespace + ":windows-machine-config-operator"

// operatorVersion is that of the nodes, so that none of them is upgraded.
const operatorVersion = "11.0.0-9f27c41"

// What the process is told on its standard input, a line each.
const (
	// sayFault is followed by a faults.Fault, sayPass by a duration that passes on its monotonic clock; sayUsage asks for a line of usage.
	sayFault, sayPass, sayUsage = "fault ", "pass ", "usage"
)

// operator is one life of the operator, in a process of its own.
type operator struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	usages  chan usage
	ended   chan struct{}
}

// usage is what the process uses after a collection of garbage.
type usage struct {
	goroutines int
	// heap is in bytes.
	heap uint64
}

// startOperator starts a life, with the seed of the faults of its network. Each line that it logs is given to line.
func startOperator(kubeconfig string, faulty sabotages, seed uint64, line func(string)) (*operator, error) {
	o := &operator{command: exec.CommandContext(context.Background(), os.Args[0]), usages: make(chan usage, 1), ended: make(chan struct{})}
	o.command.Env = append(os.Environ(), operatorVariable+"="+kubeconfig, sabotageVariable+"="+faulty.encode(), faultsVariable+"="+strconv.FormatUint(seed, 10))
	var err error
	if o.stdin, err = o.command.StdinPipe(); err != nil { // it ends with this program
		return nil, err
	}
	out, err := o.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	logged, err := o.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := o.command.Start(); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { readLines(logged, line) })
	reading.Go(func() {
		readLines(out, func(text string) {
			var u usage
			if _, err := fmt.Sscan(text, &u.goroutines, &u.heap); err == nil {
				o.usages <- u
			}
		})
	})
	go func() {
		reading.Wait()
		_ = o.command.Wait() // it is killed
		close(o.ended)
	}()
	return o, nil
}

func readLines(from io.Reader, line func(string)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line(lines.Text())
	}
	_, _ = io.Copy(io.Discard, from) // the process must not wait for this one
}

func (o *operator) say(text string) error {
	_, err := io.WriteString(o.stdin, text+"\n")
	return err
}

// usage asks the process what it uses.
func (o *operator) usage() (usage, error) {
	if err := o.say(sayUsage); err != nil {
		return usage{}, err
	}
	select {
	case u := <-o.usages:
		return u, nil
	case <-o.ended:
		return usage{}, errors.New("the operator has ended")
	case <-time.After(time.Minute):
		return usage{}, errors.New("the operator does not answer")
	}
}

// kill ends the process at once, as the kernel does where memory is short.
func (o *operator) kill() {
	_ = o.command.Process.Kill() // it may have ended
	<-o.ended
}

// runOperator is this program as the operator. It ends with the program that has started it.
func runOperator(kubeconfig string) int {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	random, err := strconv.ParseUint(os.Getenv(faultsVariable), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	network, clock := faults.New(random), faults.NewClock(context.Background())
	faulty := decodeSabotages(os.Getenv(sabotageVariable))
	go obey(network, clock, faulty)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	config.Wrap(network.Wrap)
	config.Wrap(faulty.wrap)
	if executables, err = readPayload(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = controller.Run(context.Background(), controller.Options{
		Config: config, Version: operatorVersion, Payload: executables.set, Resolver: noNames{}, HealthAddress: "0", MetricsAddress: "0", Now: network.Now, Clock: clock,
		Log: logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)),
	})
	fmt.Fprintln(os.Stderr, "the operator has ended:", err)
	return 1
}

// obey does what the process is told.
func obey(network *faults.Network, clock *clocktesting.FakeClock, faulty sabotages) {
	var kept [][]byte
	readLines(os.Stdin, func(line string) {
		if text, ok := strings.CutPrefix(line, sayFault); ok {
			network.Set(faults.Fault(text))
		}
		if text, ok := strings.CutPrefix(line, sayPass); ok {
			if d, err := time.ParseDuration(text); err == nil {
				clock.Step(d)
			}
		}
		if line == sayUsage {
			kept = faulty.leak(kept)
			runtime.GC()
			runtime.GC() // what had finalizers too
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			fmt.Println(runtime.NumGoroutine(), m.HeapAlloc)
			runtime.KeepAlive(kept)
		}
	})
	os.Exit(1)
}

// noNames is a resolver that knows no names: all instances have addresses.
type noNames struct{}

// LookupHost implements csr.Resolver.
func (noNames) LookupHost(_ context.Context, host string) ([]string, error) {
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// LookupAddr implements csr.Resolver.
func (noNames) LookupAddr(_ context.Context, address string) ([]string, error) {
	return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
}

// live starts a life of the operator after the one before, which has ended.
func (s *soak) live(t testing.TB) {
	t.Helper()
	o, err := startOperator(server.ControlPlane(t).Kubeconfig, s.options.sabotages, s.options.seed+uint64(s.lives), s.readLog) //nolint:gosec // not negative
	must(t, err)
	s.operator, s.lives = o, s.lives+1
	s.baseline = nil
}

// readLog looks for secrets in what the operator logs, and keeps the last lines.
func (s *soak) readLog(line string) {
	s.observer.SearchText("the log of the operator", line)
	s.logMutex.Lock()
	defer s.logMutex.Unlock()
	const kept = 60
	s.logged = append(s.logged, line)
	s.logged = s.logged[max(0, len(s.logged)-kept):]
}
