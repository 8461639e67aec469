package jointest_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clocktesting "k8s.io/utils/clock/testing"

	"wmco/applier/remote"
	remotessh "wmco/applier/remote/ssh"
	"wmco/controller"
	"wmco/controller/hosts"
	"wmco/internal/test/faults"
	"wmco/internal/verify/permissions"
	"wmco/payload/store"
)

// settings are what an operator needs to know of a world, in this process or in another one.
type settings struct {
	// memory is where the operator of a story in memory runs, which has no kubeconfig and no program; nil is a real control plane.
	memory *memory
	// life is that of an operator in memory that may be killed.
	life       *life
	Kubeconfig string
	// Program is the node agent.
	Program string
	// Addresses has the addresses of the SSH servers.
	Addresses addressBook
	// User is the account of the SSH servers.
	User string
	// Names are what the resolver knows.
	Names resolver
	// Payload is a folder of executables, Version that of the operator.
	Payload, Version string
	// Leader makes it wait until it is the leader. Renew is for how long it tries to renew its Lease; zero is long.
	Leader bool
	Renew  time.Duration
	// KilledAt is the step, of those that change something, at which its process kills itself; zero is never.
	KilledAt int64
	// Agent is its user agent in the audit log, empty for the usual one.
	Agent string
	// Acts is a file for what it asks of hosts, empty for none.
	Acts actsFile
	// KubeletWithin is how long an adoption waits for the kubelet, zero for the usual time.
	KubeletWithin time.Duration
}

func (w *world) settings() settings {
	w.t.Helper()
	if w.memory != nil {
		return settings{memory: w.memory, Addresses: w.at, Names: w.names, Payload: filepath.Join("..", "..", "..", "golden", "payload"), Version: "test"}
	}
	me, err := user.Current()
	must(w.t, err)
	return settings{Kubeconfig: server.ControlPlane(w.t).Kubeconfig, Program: programs.Node, Addresses: w.at, User: me.Username, Names: w.names, Payload: filepath.Join("..", "..", "..", "golden", "payload"), Version: "test"}
}

// operatorUser is the account of the operator.
const operatorUser = permissions.OperatorUser

func impersonated() rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
}

// leaseDuration is longer than a busy computer may hold up an operator. Where the leader is killed, freeLease ends it.
const leaseDuration = 2 * time.Minute

// options returns those of an operator with the permissions that it ships.
func (s settings) options(log io.Writer) (controller.Options, error) {
	config, program, err := s.credentials()
	if err != nil {
		return controller.Options{}, err
	}
	config.UserAgent = s.Agent
	steps := newCountdown(s.KilledAt, killProcess)
	if s.life != nil {
		steps.kill = s.life.die
		config.Wrap(s.life.wrap)
	}
	config.Wrap(steps.wrap)
	payload, err := store.Open(s.Payload)
	if err != nil {
		return controller.Options{}, err
	}
	o := controller.Options{
		Config: config, Version: s.Version, Payload: payload.Set(), HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true, LeaderElection: s.Leader,
		Lease: controller.Lease{Duration: leaseDuration, Renew: cmp.Or(s.Renew, leaseDuration/2), Retry: time.Second}, Resolver: s.Names,
		Log: logr.FromSlogHandler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-1)})),
		Hosts: func(login *hosts.Login) *hosts.Hosts {
			dialer := remotessh.Dialer{Limits: remotessh.DefaultLimits(), Pins: login, Signers: login.Signers, OnLogin: login.NoteLogin, Dial: s.dial}
			o := hosts.Options{Program: program, Executables: payload.Source(), KubeletWithin: s.KubeletWithin}
			o.Transports.Kept = asMe{remotessh.NewTransport(dialer), s.User, s.Acts, steps}
			dialer.Limits.Kept = 0
			o.Transports.Fresh = asMe{remotessh.NewTransport(dialer), s.User, s.Acts, steps}
			return hosts.New(o)
		},
	}
	if s.memory != nil {
		o.Clock = faults.BubbleClock{}
	}
	return o, nil
}

// credentials returns the configuration of the operator, and the node agent that it uploads.
func (s settings) credentials() (*rest.Config, remote.Program, error) {
	if s.memory != nil {
		return s.memory.configOf(impersonated()), s.memory.program, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, remote.Program{}, err
	}
	config.Impersonate = impersonated()
	program, err := remote.FileProgram(s.Program)
	return config, program, err
}

// dial reaches the SSH servers of simulated machines under the addresses that their machines have.
func (s settings) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := s.Addresses.resolve(address)
	switch {
	case err != nil:
		return nil, err
	case s.life != nil:
		return s.life.dial(ctx, s.memory, to)
	case s.memory != nil:
		return s.memory.dial(ctx, to)
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

// output is the log of an operator, which is also shown with -v.
func (w *world) output() io.Writer {
	if testing.Verbose() {
		return io.MultiWriter(w.log, os.Stderr)
	}
	return w.log
}

// operate runs the operator until the returned function is called, or the test ends.
func (w *world) operate() (stop func()) { return w.operateAs(w.settings()) }

func (w *world) operateAs(s settings) (stop func()) {
	w.t.Helper()
	options, err := s.options(w.output())
	must(w.t, err)
	return w.operateWith(options)
}

// operateOn runs the operator on a clock that the test moves on.
func (w *world) operateOn(clock *clocktesting.FakeClock) (stop func()) {
	w.t.Helper()
	options, err := w.settings().options(w.output())
	must(w.t, err)
	options.Clock = clock
	return w.operateWith(options)
}

func (w *world) operateWith(options controller.Options) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, options) }()
	stop = sync.OnceFunc(func() {
		cancel()
		late := time.AfterFunc(stopWithin, w.logGoroutines)
		defer late.Stop()
		if err := <-ended; err != nil {
			w.t.Errorf("the operator: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// stopWithin is how long an operator takes to stop, at the longest, under the load of all tests.
const stopWithin = 10 * time.Second

// logGoroutines writes what all goroutines of this process do: one of them ignores the end of its context.
func (w *world) logGoroutines() {
	_, _ = fmt.Fprintf(w.output(), "the operator has not stopped for %s:\n", stopWithin)
	_ = pprof.Lookup("goroutine").WriteTo(w.output(), 1)
}

// operatorVariable makes this program an operator. Its value are the settings as JSON.
const operatorVariable = "WMCO_TEST_OPERATOR"

// started is the first line that the program prints.
const started = "started"

// runOperator is the program as an operator. It stops when it is asked to, and ends with the test that started it.
func runOperator(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the test
		os.Exit(1)
	}()
	var s settings
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		var o controller.Options
		if o, err = s.options(os.Stderr); err == nil {
			go measure()
			fmt.Println(started)
			err = controller.Run(ctx, o)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// operator is an operator in a process of its own.
type operator struct {
	// life is that of an operator in memory; nil is a process.
	life *life
	*exec.Cmd
	t     *testing.T
	stdin io.Closer
	out   *bufio.Reader
	once  sync.Once
}

// process starts an operator in a process of its own, which is killed at the end of the test.
func (w *world) process(s settings) *operator {
	w.t.Helper()
	if w.memory != nil {
		return w.live(s)
	}
	text, err := json.Marshal(s)
	must(w.t, err)
	o := &operator{Cmd: exec.CommandContext(context.Background(), os.Args[0]), t: w.t}
	o.Env = append(os.Environ(), operatorVariable+"="+string(text), "GOGC=100")
	o.Stderr = w.output()
	o.stdin, err = o.StdinPipe()
	must(w.t, err)
	out, err := o.StdoutPipe()
	must(w.t, err)
	must(w.t, o.Start())
	w.t.Cleanup(o.kill)
	o.out = bufio.NewReader(out)
	if line, err := o.out.ReadString('\n'); line != started+"\n" {
		w.t.Fatalf("the operator printed %q: %v", line, err)
	}
	return o
}

// kill ends the process at once.
func (o *operator) kill() {
	o.once.Do(func() {
		if o.life != nil {
			o.life.die()
			<-o.life.ended
			return
		}
		_ = o.Process.Kill() // it may have ended
		_ = o.Wait()         // it was killed
		_ = o.stdin.Close()
	})
}

// stop asks the process to end, and waits for that.
func (o *operator) stop() {
	o.t.Helper()
	o.once.Do(func() {
		if o.life != nil {
			o.life.cancel()
			<-o.life.ended
			must(o.t, o.life.err)
			return
		}
		must(o.t, o.Process.Signal(syscall.SIGTERM))
		if err := o.Wait(); err != nil {
			o.t.Errorf("the operator: %v", err)
		}
		_ = o.stdin.Close()
	})
}

// addressBook is a file with the real SSH server of each address, for operators in other processes too.
type addressBook string

func (b addressBook) read() (map[string]string, error) {
	data, err := os.ReadFile(string(b))
	if errors.Is(err, os.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	return all, json.Unmarshal(data, &all)
}

// put notes an address. Only the test itself does.
func (b addressBook) put(address, target string) error {
	all, err := b.read()
	if err != nil {
		return err
	}
	all = maps.Clone(all)
	all[address] = target
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(string(b)+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(string(b)+".new", string(b))
}

// nowhere is an address without a listener.
const nowhere = "127.0.0.1:1"

// note counts an attempt to reach a host.
func (b addressBook) note(host string) error {
	f, err := os.OpenFile(string(b)+".dialed", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, host)
	return errors.Join(err, f.Close())
}

// dialed returns how often operators have tried to reach a host.
func (b addressBook) dialed(t *testing.T, host string) int {
	t.Helper()
	data, err := os.ReadFile(string(b) + ".dialed")
	if !errors.Is(err, os.ErrNotExist) {
		must(t, err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		if line == host+"\n" {
			n++
		}
	}
	return n
}

// resolve returns the real SSH server of an address, and counts the attempt to reach it.
func (b addressBook) resolve(address string) (string, error) {
	all, err := b.read()
	if err != nil {
		return "", err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	return cmp.Or(all[host], nowhere), b.note(host)
}

// asMe logs in as the account that this program runs with, the only one that a simulated machine has.
type asMe struct {
	remote.Transport
	user  string
	acts  actsFile
	steps *countdown
}

func (a asMe) to(t remote.Target) remote.Target {
	t.User = cmp.Or(a.user, t.User) // in memory there is every account
	return t
}

func (a asMe) Connect(ctx context.Context, t remote.Target) error {
	return a.Transport.Connect(ctx, a.to(t))
}

func (a asMe) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	a.steps.step()
	if err := a.acts.note(c.Name); err != nil {
		return err
	}
	return a.Transport.Run(ctx, a.to(t), c)
}

func (a asMe) Transfer(ctx context.Context, t remote.Target, do func(remote.Files) error) error {
	a.steps.step()
	if err := a.acts.note("sftp"); err != nil {
		return err
	}
	return a.Transport.Transfer(ctx, a.to(t), do)
}

// resolver is that of a world: an address book of names.
type resolver map[string][]string

func (r resolver) LookupHost(_ context.Context, host string) ([]string, error) {
	if len(r[host]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return r[host], nil
}

func (r resolver) LookupAddr(_ context.Context, address string) ([]string, error) {
	for name, addresses := range r {
		if slices.Contains(addresses, address) {
			return []string{name + "."}, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
}
