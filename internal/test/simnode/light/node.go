package light

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/bundle"
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
	// Log is that of the node agent; nil is none.
	Log *slog.Logger
}

const (
	// settle is short, because the services of a simulated host do not change by themselves (cmd/wmco-node).
	settle = 10 * time.Millisecond
	// interval and full are the times between two comparisons of the host that the node agent has by default.
	interval, full = 5 * time.Minute, 6 * time.Hour
)

// Run runs the node agent on a new host, until the context ends. The executables are on the host, as if they had been uploaded.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	clock := &clock{made: time.Now()}
	host := hostsim.NewMemory(o.Facts, clock)
	for _, e := range payload.ProgramsFor(payload.TestedKubernetes) {
		if err := host.WriteFile(ctx, e.Path, bundle.AccessUsers, []byte(e.Name)); err != nil {
			return err
		}
	}
	kubeconfig, err := kubeconfigOf(o.Server)
	if err != nil {
		return err
	}
	for {
		engine := &applier.Engine{Host: host, Clock: clock, Permits: layout.Check, Program: "light", Owner: "wmco-node run of a light node", Self: bundle.AgentService, Settle: settle}
		server := agent.NewAPIServer(agent.Connection{
			Kubeconfig: "kubeconfig", ReadFile: func(string) ([]byte, error) { return kubeconfig, nil }, Log: o.Log, Clock: clock,
		})
		a := agent.Agent{Engine: engine, Cluster: alive{server}, Log: o.Log, Options: agent.Options{Interval: interval, Full: full, Jitter: jitter}}
		if err := a.Run(ctx); !errors.Is(err, agent.ErrRestart) {
			return err
		}
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

// Heartbeat implements agent.Cluster. It makes the requests of the agent; where the Node is Ready, that is a new sign of life.
func (a alive) Heartbeat(ctx context.Context) (time.Time, error) {
	last, err := a.APIServer.Heartbeat(ctx)
	if err != nil || last.IsZero() {
		return last, err
	}
	return time.Now(), nil
}

// clock is an applier.Clock of a host that booted when it was made.
type clock struct{ made time.Time }

func (c *clock) Now() time.Time                         { return time.Now() }
func (c *clock) SinceBoot() time.Duration               { return time.Since(c.made) }
func (c *clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
