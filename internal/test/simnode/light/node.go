package light

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/gateway/registry"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
	"wmco/layout"
	"wmco/payload"
	"wmco/payload/fetch"
)

// Options are what a node is made from.
type Options struct {
	// Facts are those of the host.
	Facts bundle.Facts
	// Server is the API server with the client certificate of the Node's kubelet.
	Server *rest.Config
	// Wrap changes how requests are sent (agent.Connection).
	Wrap func(*rest.Config)
	// Log is that of the node agent; nil is none.
	Log *slog.Logger
	// Agent are those of the node agent; zero are its defaults.
	Agent agent.Options
	// Boot is called while the host boots, between the end of the node agent and its start; nil is a host that boots at
	// once.
	Boot func(ctx context.Context) error
	// Registries sends the requests of the node agent to registries; nil is an agent that fetches no executables.
	Registries http.RoundTripper
}

// Node is a light node. What is on its host stays while the node agent does not run.
type Node struct {
	Host *hostsim.Memory

	options    Options
	clock      *clock
	kubeconfig []byte
	// boots gets a value when the node agent has asked for a boot.
	boots chan struct{}
	// removals gets one when the node agent has started the service that removes everything. Left is true when that has stopped the agent.
	removals chan struct{}
	left     bool
}

const (
	// settle is short, because the services of a simulated host do not change by themselves (cmd/wmco-node).
	settle = 10 * time.Millisecond
	// interval and full are the times between two comparisons of the host that the node agent has by default.
	interval, full = 5 * time.Minute, 6 * time.Hour
)

// New returns a node with a new host. The executables are there, as if they had been uploaded; their contents are their
// names.
func New(ctx context.Context, o Options) (*Node, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Agent.Interval, o.Agent.Full, o.Agent.Jitter = cmp.Or(o.Agent.Interval, interval), cmp.Or(o.Agent.Full, full), jitter
	kubeconfig, err := kubeconfigOf(o.Server)
	if err != nil {
		return nil, err
	}
	clock := &clock{}
	clock.boot()
	n := &Node{Host: hostsim.NewMemory(o.Facts, clock), options: o, clock: clock, kubeconfig: kubeconfig, boots: make(chan struct{}, 1), removals: make(chan struct{}, 1)}
	for _, e := range payload.ProgramsFor(payload.TestedKubernetes) {
		if err := n.Host.WriteFile(ctx, e.Path, bundle.AccessUsers, []byte(e.Name)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Run runs the node agent until the context ends, and boots the host when the agent asks for it. It can be called
// again: the host was off then.
func (n *Node) Run(ctx context.Context) error {
	for {
		booting, err := n.runUntilBoot(ctx)
		if !booting || err != nil {
			return err
		}
		if n.options.Boot != nil {
			if err := n.options.Boot(ctx); err != nil {
				return err
			}
		}
		if err := n.Restart(ctx); err != nil {
			return err
		}
	}
}

// Restart boots the host. The node agent must not run.
func (n *Node) Restart(ctx context.Context) error {
	select {
	case <-n.boots:
	default: // nothing has asked for it
	}
	n.clock.boot()
	return n.Host.Restart(ctx)
}

// runUntilBoot runs the node agent, and the service that removes everything when that was started. It reports whether the host has to boot.
func (n *Node) runUntilBoot(ctx context.Context) (booting bool, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	follows, stopAgent := context.WithCancel(running)
	defer stopAgent()
	states, err := n.Host.Services(ctx, []string{bundle.AgentService, bundle.RemovalService})
	if err != nil {
		return false, err
	}
	if n.left && states[0].Status == plan.ServiceAbsent {
		stopAgent()
	}
	if states[1].Status == plan.ServiceRunning {
		notifyOnce(n.removals)
	}
	stopped := make(chan struct{})
	var failed error
	go func() {
		defer close(stopped)
		if failed = n.runAgent(follows); failed != nil {
			stop()
		}
	}()
	removal := make(chan error, 1)
	go func() {
		removal <- n.runRemoval(running, func() {
			stopAgent()
			<-stopped
			n.left = true
		})
	}()
	select {
	case <-running.Done():
	case <-n.boots:
		booting = true
	}
	stop() // what is about to be done is cut off by the boot
	err = <-removal
	<-stopped
	return booting && ctx.Err() == nil, errors.Join(failed, err)
}

// runRemoval does what bundle.RemovalService does (wmco-node cleanup --service), once it runs.
func (n *Node) runRemoval(ctx context.Context, stopAgent func()) error {
	select {
	case <-ctx.Done():
		return nil
	case <-n.removals:
	}
	e, o := n.engine("wmco-node cleanup of a light node"), n.options
	e.Self, e.Host = "", processes{n.Host, n, stopAgent}
	server := agent.NewAPIServer(agent.Connection{
		Kubeconfig: applier.RemovalAccess, ReadFile: func(string) ([]byte, error) { return e.ReadRemovalAccess(ctx) }, Log: o.Log, Clock: n.clock, Wrap: o.Wrap,
	})
	remover := agent.Remover{Engine: e, Cluster: server, Log: o.Log, Jitter: jitter}
	err := remover.Run(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to stop
	}
	return errors.Join(err, n.Host.StopService(ctx, bundle.RemovalService)) // as it does when its program ends
}

// Observe compares the host with a bundle, reading every file.
func (n *Node) Observe(ctx context.Context, r archive.Request) (protocol.Observation, error) {
	return n.engine("wmco-node observe of a light node").Observe(ctx, r.Manifest, r.Contents(), true)
}

func (n *Node) engine(owner string) *applier.Engine {
	return &applier.Engine{
		Host: processes{n.Host, n, nil}, Clock: n.clock, Permits: layout.Check, Program: "light", Owner: owner,
		Self: bundle.AgentService, Settle: settle,
	}
}

func (n *Node) runAgent(ctx context.Context) error {
	o := n.options
	for ctx.Err() == nil {
		engine := n.engine("wmco-node run of a light node")
		server := agent.NewAPIServer(agent.Connection{
			Kubeconfig: "kubeconfig", ReadFile: func(string) ([]byte, error) { return n.kubeconfig, nil }, Log: o.Log, Clock: n.clock, Wrap: o.Wrap,
		})
		a := agent.Agent{Engine: engine, Cluster: alive{server}, Log: o.Log, Options: o.Agent}
		if o.Registries != nil {
			a.Registry = &fetch.Single{Client: &registry.Client{Verified: o.Registries, Insecure: o.Registries, Now: n.clock.Now}}
		}
		if err := a.Run(ctx); !errors.Is(err, agent.ErrRestart) {
			return err
		}
		if err := n.restartService(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// restartService has the host know that the service of the node agent runs its new program: no host removes one that runs.
func (n *Node) restartService(ctx context.Context) error {
	is := false
	err := n.Host.Edit(ctx, func(s *simulation.State) {
		key := simulation.Key(bundle.AgentService)
		svc, there := s.Services[key]
		svc.Status, svc.Processes = plan.ServiceStopped, nil
		if is = there && !svc.Deleted; is {
			s.Services[key] = svc
		} else {
			delete(s.Services, key)
		}
	})
	if err != nil || !is { // the change that made it was rolled back
		return err
	}
	return n.Host.StartByItself(ctx, bundle.AgentService)
}

// processes is a host that reports what other processes have to do.
type processes struct {
	*hostsim.Memory
	of *Node
	// stopAgent ends the node agent.
	stopAgent func()
}

// Reboot implements applier.Host.
func (p processes) Reboot(ctx context.Context, reason string) error {
	err := p.Memory.Reboot(ctx, reason)
	if err == nil {
		notifyOnce(p.of.boots)
	}
	return err
}

// StartService implements applier.Host.
func (p processes) StartService(ctx context.Context, name string) error {
	err := p.Memory.StartService(ctx, name)
	if err == nil && name == bundle.RemovalService {
		notifyOnce(p.of.removals)
	}
	return err
}

// StopService implements applier.Host.
func (p processes) StopService(ctx context.Context, name string) error {
	if name == bundle.AgentService && p.stopAgent != nil {
		p.stopAgent()
	}
	return p.Memory.StopService(ctx, name)
}

func notifyOnce(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known
	}
}

func jitter(d time.Duration) time.Duration { return d + rand.N(d/5+1) }

// kubeconfigOf returns a kubeconfig with everything in it.
func kubeconfigOf(c *rest.Config) ([]byte, error) {
	if len(c.CertData) == 0 || len(c.KeyData) == 0 {
		return nil, fmt.Errorf("the configuration for %s has no client certificate", c.Host)
	}
	const name = "node"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}

// alive is the API server for a node without a kubelet.
type alive struct{ *agent.APIServer }

// Heartbeat implements agent.Cluster. It makes the requests of the agent; where the Node is Ready, that is a new sign
// of life.
func (a alive) Heartbeat(ctx context.Context) (time.Time, error) {
	last, err := a.APIServer.Heartbeat(ctx)
	if err != nil || last.IsZero() {
		return last, err
	}
	return time.Now(), nil
}

// clock is an applier.Clock of a host.
type clock struct{ booted atomic.Pointer[time.Time] }

func (c *clock) boot() {
	now := time.Now()
	c.booted.Store(&now)
}

func (c *clock) Now() time.Time                         { return time.Now() }
func (c *clock) SinceBoot() time.Duration               { return time.Since(*c.booted.Load()) }
func (c *clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
