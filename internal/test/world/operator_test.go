package world

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"wmco/applier/remote"
	"wmco/controller"
	"wmco/controller/base/leader"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/olm"
	"wmco/internal/test/faults"
)

const operatorAccount = "windows-machine-config-operator"

// operator is one life of the operator. Its requests are made with the permissions that it ships.
type operator struct {
	cancel  context.CancelFunc
	network *faults.Network
	dead    atomic.Bool
	// disturbed reports whether it has had a bad day.
	disturbed atomic.Bool
	ended     chan struct{}
	// err is why it ended by itself.
	err  error
	kept [][]byte
	// elected reports whether it works only while it has the Lease.
	elected bool
	// late is how late it learns of what has changed.
	late time.Duration
	// left is the number of its writes until it dies, and its answer to the last one is lost; none is never. Died is closed then.
	left atomic.Int64
	died chan struct{}

	// mu guards the log and the Lease: who it is there, when it has renewed it last, and has read that another one has it.
	mu                  sync.Mutex
	logged              []string
	identity            string
	renewed, superseded time.Time
	see                 func(string)
}

// usage is what the process uses after a collection of garbage.
type usage struct {
	goroutines int
	// heap is in bytes.
	heap uint64
}

// live starts a life of the operator after the one before, which has ended.
func (w *world) live() {
	w.lives++
	w.baseline = nil
	w.operator = w.startOperator(true, 0)
}

// revive starts an operator that has ended, as Kubernetes does.
func (w *world) revive() {
	if !isClosed(w.operator.ended) {
		return
	}
	if !w.operator.mayEnd() {
		w.observer.Violate(ruleEnds, "%v: %s", w.operator.err, w.operator.lastLine())
	}
	w.tell("the operator starts again: %v", w.operator.err)
	w.live()
}

// mayEnd reports whether an operator that has ended lost its Lease, or never had it and could not read what it needs to start.
func (o *operator) mayEnd() bool {
	if o.err == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.err.Error(), "leader election lost") || errors.Is(o.err, leader.ErrNotLeading) || o.identity == "" && o.disturbed.Load()
}

// lease is as that of the operator, which is renewed twice as often.
var lease = controller.Lease{Duration: leaseDuration, Renew: 107 * time.Second, Retry: time.Minute}

func (w *world) startOperator(elected bool, late time.Duration) *operator {
	ctx, cancel := context.WithCancel(w.ctx)
	o := &operator{cancel: cancel, network: faults.New(w.options.seed + uint64(w.lives)), elected: elected, late: late, ended: make(chan struct{}), died: make(chan struct{})} //nolint:gosec // not negative
	o.see = func(line string) { w.observer.SearchText("the log of the operator", line) }
	account := serviceaccount.UserInfo(gather.OperatorNamespace, operatorAccount, "")
	config := w.server.Config(account)
	config.Wrap(w.counted(""))
	config.Wrap(w.judged(o))
	config.Wrap(o.network.Wrap)
	config.Wrap(w.options.sabotages.wrap)
	config.Wrap(o.untilDeath)
	is := w.present()
	go func() {
		defer close(o.ended)
		o.err = controller.Run(ctx, controller.Options{
			Config: config, Version: is.version, Payload: is.set, Environment: map[string]string{"POD_NAME": is.pod, olm.ConditionVariable: conditionName}, Hosts: w.reachHosts(is),
			Resolver: w.names, HealthAddress: "0", MetricsAddress: "0",
			Clock: faults.BubbleClock{}, Now: o.network.Now, SkipNameValidation: true, LeaderElection: elected, Lease: lease, Log: logr.FromSlogHandler(slog.NewTextHandler(o, nil)),
		})
	}()
	return o
}

// unreachableHosts has all controllers of hosts work, and reach none.
func unreachableHosts(*hosts.Login) *hosts.Hosts {
	return hosts.New(hosts.Options{Transports: hosts.Transports{Kept: noSSH{}, Fresh: noSSH{}}, Program: remote.Program{Path: `C:\Windows\wmco\wmco-node-0123456789ab.exe`, Sum: "01234567"}})
}

// Write keeps the last lines of the log.
func (o *operator) Write(line []byte) (int, error) {
	o.see(string(line))
	o.mu.Lock()
	defer o.mu.Unlock()
	const kept = 60
	o.logged = append(o.logged, string(line))
	o.logged = o.logged[max(0, len(o.logged)-kept):]
	return len(line), nil
}

func (o *operator) lastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.logged) == 0 {
		return "it has logged nothing"
	}
	return o.logged[len(o.logged)-1]
}

var errKilled = errors.New("this operator was killed")

// untilDeath is for rest.Config.Wrap: whoever is dead makes no request.
func (o *operator) untilDeath(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if o.dead.Load() {
			return nil, errKilled
		}
		answer, err := next.RoundTrip(r)
		switch {
		case err != nil:
		case o.late > 0 && r.URL.Query().Get("watch") != "":
			answer.Body = lateBody{answer.Body, o.late}
		case isStep(r) && answer.StatusCode < http.StatusMultipleChoices && o.left.Add(-1) == 0:
			_ = answer.Body.Close() // it is not read
			o.dead.Store(true)
			close(o.died)
			return nil, errKilled
		}
		return answer, err
	})
}

// isStep reports whether a request changes something. Leases, Events and questions are no work of the operator.
func isStep(r *http.Request) bool {
	is := func(part string) bool { return strings.Contains(r.URL.Path, part) }
	return r.Method != http.MethodGet && !is("/leases") && !is("/events") && !is("reviews")
}

// lateBody is a watch that is late.
type lateBody struct {
	io.ReadCloser
	by time.Duration
}

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(b.by)
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// kill ends it at once, as the kernel does where memory is short: nothing of it reaches the API server any more.
func (o *operator) kill() {
	o.dead.Store(true)
	o.stop()
}

// stop ends it as Kubernetes ends a Pod.
func (o *operator) stop() {
	o.cancel()
	<-o.ended
}

// usage is that of this process, of which the operator is a part.
func (w *world) usage() usage {
	w.operator.kept = w.options.sabotages.leak(w.operator.kept, w.ctx)
	w.server.Etcd.Compact(w.server.Etcd.Revision())
	runtime.GC()
	runtime.GC() // what had finalizers too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	runtime.KeepAlive(w.operator.kept)
	return usage{runtime.NumGoroutine(), m.HeapAlloc}
}
