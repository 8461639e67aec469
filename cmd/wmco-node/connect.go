package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/agent"
)

// connectPause is the pause between two attempts to read the kubeconfig and the certificate that it names.
const connectPause = 30 * time.Second

// errNotConnected is the error of every request before the kubeconfig could be read.
var errNotConnected = errors.New("the kubeconfig or the kubelet's certificate cannot be read yet")

// later is a cluster that is connected to when its kubeconfig and the kubelet's certificate can be read. Until then the agent
// repairs from what the host keeps.
type later struct {
	kubeconfig string
	log        *slog.Logger
	clock      applier.Clock

	mu  sync.Mutex
	api *agent.APIServer
}

func connectLater(kubeconfig string, log *slog.Logger, clock applier.Clock) agent.Cluster {
	return &later{kubeconfig: kubeconfig, log: log, clock: clock}
}

// Watch implements agent.Cluster.
func (l *later) Watch(ctx context.Context, changed func(agent.Node)) {
	for {
		api, err := agent.Connect(l.kubeconfig)
		if err == nil {
			l.mu.Lock()
			l.api = api
			l.mu.Unlock()
			api.Watch(ctx, changed)
			return
		}
		l.log.Warn("the cluster is not followed yet", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-l.clock.After(connectPause):
		}
	}
}

func (l *later) connected() (*agent.APIServer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.api == nil {
		return nil, errNotConnected
	}
	return l.api, nil
}

// Part implements agent.Cluster.
func (l *later) Part(ctx context.Context, namespace, name string) ([]byte, error) {
	api, err := l.connected()
	if err != nil {
		return nil, err
	}
	return api.Part(ctx, namespace, name)
}

// Report implements agent.Cluster.
func (l *later) Report(ctx context.Context, s agent.Status) error {
	api, err := l.connected()
	if err != nil {
		return err
	}
	return api.Report(ctx, s)
}

// Heartbeat implements agent.Cluster.
func (l *later) Heartbeat(ctx context.Context) (time.Time, error) {
	api, err := l.connected()
	if err != nil {
		return time.Time{}, err
	}
	return api.Heartbeat(ctx)
}

// Event implements agent.Cluster.
func (l *later) Event(ctx context.Context, e agent.Event) error {
	api, err := l.connected()
	if err != nil {
		return err
	}
	return api.Event(ctx, e)
}
