package simnode

import (
	"context"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/overlay"
)

// program runs in place of the executable of a service.
type program struct {
	// run returns nil when it was asked to stop, and an error when it ends otherwise.
	run func(ctx context.Context, m *Machine, p *process) error
	// targets are those of probes that only it answers.
	targets []string
}

// process is a program that runs.
type process struct {
	name    string
	argv    []string
	id      simulation.Process
	stop    context.CancelFunc
	stopped chan struct{}
}

// wakeUp makes the machine look at its services.
func (m *Machine) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // it is due already
	}
}

// run looks at the services and boots where that was asked for, until the machine is closed.
func (m *Machine) run() {
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		case <-time.After(m.pause()):
		}
		m.bootIfAsked()
		m.reconcileProcesses()
	}
}

// memoryPause is the time between two looks at a host in memory, which only changes where its Script has changes.
const memoryPause = time.Second

func (m *Machine) pause() time.Duration {
	if m.options.Folder == "" {
		return max(memoryPause, m.options.Times.Look)
	}
	return m.options.Times.Look
}

// reconcileProcesses starts and stops programs, so that those run whose service does.
func (m *Machine) reconcileProcesses() {
	for _, p := range m.adjustProcesses() {
		// The agent may be the one that asks, and cannot wait for itself.
		if p.name != bundle.AgentService {
			<-p.stopped
		}
	}
}

// adjustProcesses starts programs, and returns those that it has told to stop.
func (m *Machine) adjustProcesses() []*process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.on {
		return nil
	}
	wanted, boot := m.wantedPrograms()
	var ended []*process
	for name, p := range m.running {
		if w, ok := wanted[name]; !ok || w.id != p.id {
			p.stop()
			ended = append(ended, p)
			delete(m.running, name)
		}
	}
	if boot != m.boot {
		// wmco-node over SSH has booted the host.
		m.boot = boot
		m.containers.Boot(time.Now())
		m.editState(overlay.Boot)
	}
	for name, w := range wanted {
		if _, ok := m.running[name]; !ok {
			m.startProcess(w)
		}
	}
	return ended
}

// wantedPrograms returns the programs whose services run, and the number of the boot.
func (m *Machine) wantedPrograms() (map[string]*process, int) {
	wanted := map[string]*process{}
	boot := m.boot
	m.look(func(s *simulation.State) {
		boot = s.Boot
		for name := range programs {
			svc, ok := s.Services[simulation.Key(name)]
			if ok && svc.Status == plan.ServiceRunning && len(svc.Processes) > 0 {
				wanted[name] = &process{name: name, argv: svc.Argv, id: svc.Processes[0]}
			}
		}
	})
	return wanted, boot
}

func (m *Machine) startProcess(p *process) {
	ctx, stop := context.WithCancel(m.ctx)
	p.stop, p.stopped = stop, make(chan struct{})
	m.running[p.name] = p
	m.all.Go(func() {
		err := programs[p.name].run(ctx, m, p)
		asked := ctx.Err() != nil
		stop()
		close(p.stopped)
		if !asked {
			m.handleEnd(p, err)
		}
	})
}

// appendLog writes the log of a program.
func (m *Machine) appendLog(p *process, change func(*simulation.Live)) {
	m.editState(func(s *simulation.State) {
		live := s.Live[simulation.Key(p.name)]
		if live.Process != p.id {
			live = simulation.Live{Process: p.id, Targets: live.Targets}
		}
		change(&live)
		s.Live[simulation.Key(p.name)] = live
	})
}

// editState changes the state. Writing fails only if the folder is missing.
func (m *Machine) editState(change func(*simulation.State)) {
	if err := m.Host.Edit(m.ctx, change); err != nil && m.ctx.Err() == nil {
		m.log.Error("writing the state of the host", "error", err)
	}
}

// failures are how often a service has ended without a stop.
type failures struct {
	count int
	last  time.Time
}

// handleEnd lets the service control manager handle a process that ended without a stop.
func (m *Machine) handleEnd(p *process, err error) {
	m.log.Warn("a program ended unexpectedly", "service", p.name, "error", err)
	m.appendLog(p, func(l *simulation.Live) { l.Ended, l.Answers = true, nil })
	var recovery bundle.Recovery
	m.look(func(s *simulation.State) { recovery = s.Services[simulation.Key(p.name)].Recovery })
	pause, ok := m.countFailure(p, recovery)
	m.wakeUp()
	if !ok {
		return
	}
	select {
	case <-m.ctx.Done():
	case <-time.After(pause):
		m.restart(p)
	}
}

// countFailure counts a failure and returns the pause before the restart (SERVICE_FAILURE_ACTIONS: the last action
// repeats).
func (m *Machine) countFailure(p *process, r bundle.Recovery) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running[p.name] == p {
		delete(m.running, p.name)
	}
	if len(r.RestartAfterSeconds) == 0 {
		return 0, false
	}
	scale := time.Duration(m.options.Times.Recovery)
	f := m.failures[p.name]
	if r.ResetSeconds > 0 && time.Since(f.last) > time.Duration(r.ResetSeconds)*time.Second/scale {
		f.count = 0
	}
	seconds := r.RestartAfterSeconds[min(f.count, len(r.RestartAfterSeconds)-1)]
	m.failures[p.name] = failures{f.count + 1, time.Now()}
	return time.Duration(seconds) * time.Second / scale, true
}

// restart starts a service whose process has ended, unless it was started or stopped since.
func (m *Machine) restart(p *process) {
	var still bool
	m.look(func(s *simulation.State) {
		live, svc := s.Live[simulation.Key(p.name)], s.Services[simulation.Key(p.name)]
		still = live.Process == p.id && live.Ended && svc.Status == plan.ServiceStopped && svc.Start == bundle.StartAuto && s.Boot == p.id.Boot
	})
	if !still || !m.isOn() {
		return
	}
	switch err := m.Host.StartByItself(m.ctx, p.name); {
	case err == nil:
		m.mu.Lock()
		m.recovered[p.name]++
		m.mu.Unlock()
	case m.ctx.Err() == nil:
		m.log.Warn("restarting a service", "service", p.name, "error", err)
	}
	m.reconcileProcesses()
}

func (m *Machine) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}
