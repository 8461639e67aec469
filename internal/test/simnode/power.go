package simnode

import (
	"time"

	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/overlay"
)

// Reboot boots the machine, and returns when it is up again.
func (m *Machine) Reboot() error {
	m.PowerOff()
	time.Sleep(m.options.Times.Boot)
	return m.PowerOn()
}

// PowerOff ends everything that runs on the machine at once.
func (m *Machine) PowerOff() {
	m.mu.Lock()
	m.on = false
	m.mu.Unlock()
	if m.ssh != nil {
		m.ssh.Stop()
	}
	m.endAll()
}

// endAll stops all programs and waits for their end.
func (m *Machine) endAll() {
	m.mu.Lock()
	var ended []*process
	for name, p := range m.running {
		p.stop()
		ended = append(ended, p)
		delete(m.running, name)
	}
	m.mu.Unlock()
	for _, p := range ended {
		<-p.stopped
	}
}

// PowerOn boots a machine that is off.
func (m *Machine) PowerOn() error {
	if err := m.startUp(); err != nil {
		return err
	}
	m.mu.Lock()
	m.on = true
	m.mu.Unlock()
	m.reconcileProcesses()
	if m.ssh != nil {
		return m.ssh.Restart()
	}
	return nil
}

// startUp is what a boot does to the host.
func (m *Machine) startUp() error {
	m.containers.Boot(time.Now())
	m.editState(overlay.Boot)
	err := m.Host.Restart(m.ctx)
	boot := m.Boots()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.boot = boot
	return err
}

// bootIfAsked boots if the node agent in this process has asked for it.
func (m *Machine) bootIfAsked() {
	var asked string
	m.look(func(s *simulation.State) { asked = s.RebootAsked })
	if asked == "" || !m.isOn() {
		return
	}
	m.log.Info("booting", "reason", asked)
	if err := m.Reboot(); err != nil && m.ctx.Err() == nil {
		m.log.Error("booting", "error", err)
	}
}

// IsOn reports whether the machine is powered on.
func (m *Machine) IsOn() bool { return m.isOn() }
