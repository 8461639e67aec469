package simnode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/kubelet"
	"wmco/internal/test/simnode/overlay"
)

func runKubelet(ctx context.Context, m *Machine, p *process) error {
	return kubelet.Run(ctx, kubelet.Options{
		Host: m.Host, Argv: p.argv, Containers: m.containers, Hardware: m.options.Hardware,
		Times: m.options.Times.Kubelet, Now: m.clock.Now, Log: m.log.With("program", "kubelet"),
		Healthy: func(targets ...string) { m.appendLog(p, func(l *simulation.Live) { l.Answers = targets }) }, Serves: m.options.Serves, Wrap: m.options.Wrap,
	})
}

func runOverlay(ctx context.Context, m *Machine, p *process) error {
	return overlay.Run(ctx, overlay.Options{
		Host: m.Host, Argv: p.argv, Now: m.clock.Now, Log: m.log.With("program", "hybrid-overlay-node"),
		Wait: m.options.Times.Network, Check: m.options.Times.Kubelet.Certificate, Wrap: m.options.Wrap,
	})
}

// settle is short, because the services of a simulated host do not change by themselves (cmd/wmco-node).
const settle = 10 * time.Millisecond

// existingAgent is the first argument of the existing operator's agent, whose service has the same name
// (openshift/windows-machine-config-operator, pkg/services: windows-instance-config-daemon.exe controller).
const existingAgent = "controller"

// runAgent is `wmco-node run`. It ends when its service was reconfigured.
func runAgent(ctx context.Context, m *Machine, p *process) error {
	if program, err := m.Host.ReadFile(p.argv[0]); err == nil && string(program) == BrokenAgent {
		return errors.New("the program ends at once")
	}
	if len(p.argv) > 1 && p.argv[1] == existingAgent {
		<-ctx.Done() // it changes nothing: its operator is gone
		return nil
	}
	f, err := agentFlags(p.argv)
	if err != nil {
		return err
	}
	log := m.log.With("program", bundle.AgentService)
	if m.options.Serves && f.LogDir != "" {
		log = slog.New(slog.NewMultiHandler(log.Handler(), slog.NewTextHandler(
			&logFile{machine: m, path: f.LogDir + `\` + bundle.AgentService + ".exe.INFO"}, nil,
		)))
	}
	options := f.ParsedOptions()
	seldom := m.options.Agent
	options.Interval, options.Full, options.Housekeep = cmp.Or(seldom.Interval, options.Interval), cmp.Or(seldom.Full, options.Full), cmp.Or(seldom.Housekeep, options.Housekeep)
	options.Jitter = func(d time.Duration) time.Duration { return d + rand.N(d/5+1) }
	e := m.newEngine("run")
	e.Self = bundle.AgentService
	keeper := agent.Agent{Engine: e, Log: log, Options: options, Images: m.options.Images, Registry: m.options.Registry}
	if f.Kubeconfig != "" {
		keeper.Cluster = agent.NewAPIServer(agent.Connection{Kubeconfig: f.Kubeconfig, ReadFile: m.Host.ReadFile, Log: log, Clock: m.clock, Wrap: m.options.Wrap})
	}
	return keeper.Run(ctx)
}

// logFile is a log on the machine's disk.
type logFile struct {
	machine *Machine
	path    string
}

// Write appends a line. It is called for one line at a time.
func (l *logFile) Write(line []byte) (int, error) {
	text, err := l.machine.ReadFile(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return len(line), l.machine.WriteFile(l.machine.ctx, l.path, bundle.AccessUsers, append(text, line...))
}

// BrokenAgent is the content of a node agent that ends at once.
const BrokenAgent = "a node agent that does not work"

// runGuard is `wmco-node guard`. A machine that is switched off ends it, which is no error.
func runGuard(ctx context.Context, m *Machine, _ *process) error {
	e := m.newEngine("guard")
	e.GuardWait = m.options.Times.Guard
	var back *applier.RolledBackError
	if _, err := e.GuardHandover(ctx, bundle.AgentService); err != nil && !errors.As(err, &back) {
		return err
	}
	<-ctx.Done() // a service that has ended is one that has failed, to the simulation
	return nil
}

// runRemoval is `wmco-node cleanup --service`.
func runRemoval(ctx context.Context, m *Machine, _ *process) error {
	log := m.log.With("program", bundle.RemovalService)
	e := m.newEngine("cleanup --service")
	server := agent.NewAPIServer(agent.Connection{
		Kubeconfig: applier.RemovalAccess, ReadFile: func(string) ([]byte, error) { return e.ReadRemovalAccess(ctx) }, Log: log, Clock: m.clock, Wrap: m.options.Wrap,
	})
	remover := agent.Remover{Engine: e, Cluster: server, Log: log}
	return remover.Run(ctx)
}

// agentFlags reads the command line of the agent's service.
func agentFlags(argv []string) (agent.Flags, error) {
	var f agent.Flags
	if len(argv) < 2 || argv[1] != "run" {
		return f, fmt.Errorf("the service runs %q, not `wmco-node run`", argv)
	}
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	f.AddToFlags(set)
	return f, set.Parse(argv[2:])
}
