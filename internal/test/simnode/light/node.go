package light

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
	"wmco/layout"
	"wmco/payload"
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
}

// Node is a light node. What is on its host stays while the node agent does not run.
type Node struct {
	Host *hostsim.Memory

	options    Options
	clock      *clock
	kubeconfig []byte
	// boots gets a value when the node agent has asked for a boot.
	boots chan struct{}
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
	n := &Node{Host: hostsim.NewMemory(o.Facts, clock), options: o, clock: clock, kubeconfig: kubeconfig, boots: make(chan struct{}, 1)}
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

// runUntilBoot runs the node agent. It reports whether the host has to boot.
func (n *Node) runUntilBoot(ctx context.Context) (booting bool, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.runAgent(running) }()
	select {
	case err := <-ended:
		return false, err
	case <-n.boots:
		stop()
		err := <-ended // what it was about to do is cut off by the boot
		return ctx.Err() == nil, err
	}
}

// Observe compares the host with a bundle, reading every file.
func (n *Node) Observe(ctx context.Context, r archive.Request) (protocol.Observation, error) {
	return n.engine("wmco-node observe of a light node").Observe(ctx, r.Manifest, r.Contents(), true)
}

func (n *Node) engine(owner string) *applier.Engine {
	return &applier.Engine{
		Host: booting{n.Host, n.boots}, Clock: n.clock, Permits: layout.Check, Program: "light", Owner: owner,
		Self: bundle.AgentService, Settle: settle,
	}
}

func (n *Node) runAgent(ctx context.Context) error {
	o := n.options
	for {
		engine := n.engine("wmco-node run of a light node")
		server := agent.NewAPIServer(agent.Connection{
			Kubeconfig: "kubeconfig", ReadFile: func(string) ([]byte, error) { return n.kubeconfig, nil }, Log: o.Log, Clock: n.clock, Wrap: o.Wrap,
		})
		a := agent.Agent{Engine: engine, Cluster: alive{server}, Log: o.Log, Options: o.Agent}
		if err := a.Run(ctx); !errors.Is(err, agent.ErrRestart) {
			return err
		}
	}
}

// booting is a host that reports a requested boot.
type booting struct {
	*hostsim.Memory
	asked chan<- struct{}
}

// Reboot implements applier.Host.
func (b booting) Reboot(ctx context.Context, reason string) error {
	if err := b.Memory.Reboot(ctx, reason); err != nil {
		return err
	}
	select {
	case b.asked <- struct{}{}:
	default: // it is known
	}
	return nil
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
