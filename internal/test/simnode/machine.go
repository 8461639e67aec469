package simnode

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/agent"
	"wmco/applier/agent/executables"
	"wmco/applier/agent/images"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/folderhost"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/identity"
	"wmco/internal/test/simnode/kubelet"
	"wmco/payload"
)

// Options are what a machine is made from.
type Options struct {
	// Facts are those of a new machine: host name, addresses, default route, build of Windows.
	Facts bundle.Facts
	// Folder is where the machine is kept; empty is memory. A machine that is in the folder already is opened, and
	// Facts are not used.
	Folder   string
	Hardware kubelet.Hardware
	Times    Times
	// Log is that of all programs of the machine; nil is none.
	Log *slog.Logger
	// Program is the version of the node agent that it reports.
	Program string
	// Serves reports whether its addresses are addresses of this computer: the kubelet serves logs there, and the agent
	// writes one.
	Serves bool
	// Images is its container runtime, as far as the node agent has it pull images; nil where there is none.
	Images images.Runtime
	// Registry is what the node agent fetches executables with; nil is an agent that fetches none.
	Registry executables.Registry
	// Agent has how often the node agent looks; zero is what its command line says.
	Agent agent.Options
	// Wrap changes how the programs of the machine send requests to the API server; nil changes nothing.
	Wrap identity.Wrap
}

// Times are how long things take; those of a real machine where they are zero.
type Times struct {
	// Boot is how long the machine is away when it boots.
	Boot time.Duration
	// Recovery divides the pauses before the service control manager restarts a service; zero is 1.
	Recovery int
	// Engine divides the time limits and pauses of the node agent in this process; zero is 1. A machine in a folder has
	// 1: runs over SSH share what the engine writes about time.
	Engine int
	// Guard is how long the guard waits for a new node agent.
	Guard time.Duration
	// Look is the time between two looks at a host in a folder, which other processes change.
	Look time.Duration
	// Network is how long hybrid-overlay-node waits for its certificate.
	Network time.Duration
	Kubelet kubelet.Times
}

// FastTimes are for tests.
func FastTimes() Times {
	return Times{
		Boot: 200 * time.Millisecond, Recovery: 50, Engine: 10, Look: 50 * time.Millisecond, Network: 20 * time.Second,
		Kubelet: kubelet.FastTimes(),
	}
}

func (t Times) withDefaults() Times {
	t.Boot, t.Look = cmp.Or(t.Boot, time.Minute), cmp.Or(t.Look, 100*time.Millisecond)
	t.Recovery, t.Engine = cmp.Or(t.Recovery, 1), cmp.Or(t.Engine, 1)
	return t
}

// Machine is a simulated machine. It is powered on.
type Machine struct {
	*simulation.Host

	options    Options
	locker     locker
	close      func() error
	clock      *clock
	containers *kubelet.Containers
	log        *slog.Logger
	ssh        server

	ctx  context.Context //nolint:containedctx // that of everything that runs on the machine
	stop context.CancelFunc
	wake chan struct{}
	all  sync.WaitGroup

	// mu guards what follows.
	mu sync.Mutex
	on bool
	// boot is the number of the boot in which the programs run.
	boot     int
	running  map[string]*process
	failures map[string]failures
	// recovered are how often the service control manager has restarted each service.
	recovered map[string]int
	done      []simulation.Operation
}

// locker is the part of a host that its kinds have for themselves.
type locker interface {
	Lock(ctx context.Context, owner string) (func() error, error)
}

// server is the SSH server of a machine.
type server interface {
	Stop()
	Restart() error
}

// New returns a machine that runs until Close.
func New(o Options) (*Machine, error) {
	o.Times = o.Times.withDefaults()
	if o.Folder != "" {
		o.Times.Engine = 1
	}
	o.Program = cmp.Or(o.Program, "simulated")
	o.Hardware = cmp.Or(o.Hardware, kubelet.Hardware{CPUs: 4, Memory: 16 << 30, Disk: 120 << 30})
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Machine{
		options: o, clock: newClock(o.Times.Engine), containers: kubelet.NewContainers(),
		log: o.Log.With("machine", o.Facts.HostName), wake: make(chan struct{}, 1),
		on: true, running: map[string]*process{}, failures: map[string]failures{}, recovered: map[string]int{},
	}
	if err := m.open(); err != nil {
		return nil, err
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := m.prepareHost(); err != nil {
		m.stop()
		return nil, errors.Join(err, m.close())
	}
	before := m.Host.End
	m.Host.End = func(op simulation.Operation) error {
		if before != nil {
			if err := before(op); err != nil {
				return err
			}
		}
		m.noteOperation(op)
		return nil
	}
	m.all.Go(m.run)
	m.reconcileProcesses()
	return m, nil
}

// open opens or makes the host.
func (m *Machine) open() error {
	if m.options.Folder == "" {
		memory := hostsim.NewMemory(m.options.Facts, m.clock)
		m.Host, m.locker, m.close = memory.Host, memory, func() error { return nil }
		return nil
	}
	o := folderhost.Options{Facts: m.options.Facts, Now: m.clock.Now}
	host, err := folderhost.Create(m.options.Folder, o)
	if errors.Is(err, folderhost.ErrExists) {
		host, err = folderhost.New(m.options.Folder, o)
	}
	if err != nil {
		return err
	}
	m.Host, m.locker, m.close = host.Host, host, host.Close
	return nil
}

// prepareHost tells the host which probes the programs of this process answer.
func (m *Machine) prepareHost() error {
	return m.Host.Edit(m.ctx, func(s *simulation.State) {
		m.boot = s.Boot
		s.Live = maps.Clone(s.Live)
		if s.Live == nil {
			s.Live = map[string]simulation.Live{}
		}
		for name, p := range programs {
			s.Live[simulation.Key(name)] = simulation.Live{Targets: p.targets}
		}
	})
}

// Close ends everything that runs on the machine. What is in its folder stays.
func (m *Machine) Close() error {
	m.PowerOff()
	m.stop()
	m.all.Wait()
	return m.close()
}

// Name is the host name.
func (m *Machine) Name() string {
	var name string
	m.look(func(s *simulation.State) { name = s.HostName })
	return name
}

// look reads the state. Reading fails only if the folder is missing.
func (m *Machine) look(read func(*simulation.State)) {
	if err := m.Host.Look(m.ctx, read); err != nil && m.ctx.Err() == nil {
		m.log.Error("reading the state of the host", "error", err)
	}
}

// Behave changes what goes wrong on the host.
func (m *Machine) Behave(change func(*simulation.Script)) error {
	err := m.Host.Edit(m.ctx, func(s *simulation.State) {
		s.Script.Services = maps.Clone(s.Script.Services)
		if s.Script.Services == nil {
			s.Script.Services = map[string]simulation.Behaviour{}
		}
		change(&s.Script)
	})
	m.wakeUp()
	return err
}

// SetSSH gives the machine an SSH server, which is on while the machine is.
func (m *Machine) SetSSH(s interface {
	Stop()
	Restart() error
},
) {
	m.ssh = s
}

// Clock is that of the machine.
func (m *Machine) Clock() applier.Clock { return m.clock }

// Program is the version of the node agent that it reports.
func (m *Machine) Program() string { return m.options.Program }

// SetClock makes the clock of the machine differ from the system's.
func (m *Machine) SetClock(skew time.Duration) { m.clock.set(skew) }

// InstallPayload puts stand-ins for the executables on the disk, as if they had been uploaded. Their contents are their
// names.
func (m *Machine) InstallPayload() error {
	for _, e := range payload.ProgramsFor(payload.TestedKubernetes) {
		if err := m.Host.WriteFile(m.ctx, e.Path, bundle.AccessUsers, []byte(e.Name)); err != nil {
			return err
		}
	}
	return nil
}

// Text returns the contents of a file of the machine, empty if there is none.
func (m *Machine) Text(path string) string {
	data, err := m.Host.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrClosed) {
		m.log.Error("reading a file", "path", path, "error", err)
	}
	return string(data)
}

// Starts returns how often each service was started, over all boots. That includes Recoveries.
func (m *Machine) Starts() map[string]int {
	starts := map[string]int{}
	m.look(func(s *simulation.State) {
		for _, svc := range s.Services {
			starts[svc.Name] = svc.Starts
		}
	})
	return starts
}

// Recoveries returns how often the service control manager has restarted each service, because its process had ended by
// itself.
func (m *Machine) Recoveries() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.recovered)
}

// Status returns the status of a service.
func (m *Machine) Status(service string) plan.ServiceStatus {
	var status plan.ServiceStatus
	m.look(func(s *simulation.State) { status = s.Services[simulation.Key(service)].Status })
	return status
}

// Boots returns how often the machine was booted, the first time included.
func (m *Machine) Boots() int {
	var n int
	m.look(func(s *simulation.State) { n = s.Boot })
	return n
}

// Pods returns how many pods run on the machine, whether or not its kubelet runs.
func (m *Machine) Pods() int { return m.containers.Running() }

// Operations returns what the node agent in this process has changed since ForgetOperations, without its own records
// and their copy. Runs over SSH are in other processes: their results say what they wrote.
func (m *Machine) Operations() []simulation.Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.done)
}

// ForgetOperations makes Operations begin again.
func (m *Machine) ForgetOperations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = nil
}

// noteOperation is called after each operation of the node agent in this process.
func (m *Machine) noteOperation(op simulation.Operation) {
	isRecord := strings.HasPrefix(bundle.FoldPath(op.Target), bundle.FoldPath(plan.StateFolder)) || bundle.Base(op.Target) == bundle.LedgerCopy
	if !isRecord {
		m.mu.Lock()
		m.done = append(m.done, op)
		m.mu.Unlock()
	}
	switch op.Verb { //nolint:exhaustive // only these are about processes
	case simulation.VerbStart, simulation.VerbStop, simulation.VerbDelete:
		m.reconcileProcesses()
	case simulation.VerbReboot:
		m.wakeUp()
	}
}

// Applier returns the machine as an engine works on it: what a run over SSH is in another process.
func (m *Machine) Applier() applier.Host { return onMachine{m.Host, m.locker} }

// onMachine is the host for an engine. Its Reboot only asks, unlike that of a folder: the machine boots.
type onMachine struct {
	*simulation.Host
	locker
}

var _ applier.Host = onMachine{}

// programs are what runs in this process, by service.
var programs = map[string]program{
	"kubelet":             {run: runKubelet, targets: []string{kubelet.Healthz}},
	"hybrid-overlay-node": {run: runOverlay},
	bundle.AgentService:   {run: runAgent},
	bundle.GuardService:   {run: runGuard},
	bundle.RemovalService: {run: runRemoval},
}
