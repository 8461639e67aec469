package hostsim

import (
	"slices"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// Simulated is a Fixture of a simulated host, with the capabilities that do not depend on where its files are.
type Simulated struct {
	// Simulation is the host as other programs use it.
	Simulation *simulation.Host
	// Open returns a host for the applier.
	Open func(testing.TB) applier.Host
	// Root is the Folder.
	Root string
}

// Host implements Fixture.
func (s Simulated) Host(t testing.TB) applier.Host { return s.Open(t) }

// Folder implements Fixture.
func (s Simulated) Folder() string { return s.Root }

func (s Simulated) edit(t testing.TB, change func(*simulation.State)) {
	t.Helper()
	if err := s.Simulation.Edit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

func (s Simulated) look(t testing.TB, read func(*simulation.State)) {
	t.Helper()
	if err := s.Simulation.Look(t.Context(), read); err != nil {
		t.Fatal(err)
	}
}

func (s Simulated) script(t testing.TB, change func(*simulation.Script)) {
	t.Helper()
	s.edit(t, func(state *simulation.State) {
		if state.Script.Services == nil {
			state.Script.Services = map[string]simulation.Behaviour{}
		}
		change(&state.Script)
	})
}

func (s Simulated) write(t testing.TB, path string) {
	t.Helper()
	if err := s.Open(t).Write(t.Context(), path, bundle.AccessUsers, strings.NewReader("MZ")); err != nil {
		t.Fatal(err)
	}
}

// HoldOpen implements OtherPrograms.
func (s Simulated) HoldOpen(t testing.TB, path string) func() {
	s.script(t, func(script *simulation.Script) { script.Locked = append(slices.Clip(script.Locked), path) })
	return func() {
		s.script(t, func(script *simulation.Script) {
			script.Locked = slices.DeleteFunc(slices.Clone(script.Locked), func(p string) bool { return p == path })
		})
	}
}

// FillDisk implements DiskFiller.
func (s Simulated) FillDisk(t testing.TB, left int64) func() {
	limit := func(size int64) { s.script(t, func(script *simulation.Script) { script.DiskBytes = size }) }
	const most = 1 << 40
	limit(most)
	free, err := s.Simulation.Free(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	limit(most - free + left)
	return func() { limit(0) }
}

// RunProgram implements OtherPrograms.
func (s Simulated) RunProgram(t testing.TB, path string) func() {
	s.write(t, path)
	p, err := s.Simulation.StartProcess(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.Simulation.EndProcess(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
}

// InstallProgram implements ServiceInstaller.
func (s Simulated) InstallProgram(t testing.TB, path string, program Program) {
	s.write(t, path)
	var b simulation.Behaviour
	switch program {
	case ProgramGood:
	case ProgramExits:
		b.Start = simulation.StartExits
	case ProgramHangsStarting:
		b.Start = simulation.StartHangs
	case ProgramHangsStopping:
		b.Stop = simulation.StopHangs
	case ProgramParent:
		b.Child = path
	}
	s.script(t, func(script *simulation.Script) {
		for _, name := range []string{serviceA, serviceB, serviceC} {
			script.Services[name] = b
		}
	})
}

// Seen implements ServiceInstaller.
func (s Simulated) Seen(t testing.TB, service string) Seen {
	var seen Seen
	s.look(t, func(state *simulation.State) {
		svc := state.Services[simulation.Key(service)]
		seen = Seen{Argv: svc.Argv, Environment: svc.Delivered}
	})
	return seen
}

// HoldService implements ServiceHolder.
func (s Simulated) HoldService(t testing.TB, name string) func() {
	hold := func(b simulation.Behaviour) {
		s.script(t, func(script *simulation.Script) { script.Services[name] = b })
	}
	hold(simulation.Behaviour{Held: true})
	return func() { hold(simulation.Behaviour{}) }
}

// Boot implements Booter.
func (s Simulated) Boot(t testing.TB) {
	if err := s.Simulation.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// AddCertificate implements CertificateKeeper.
func (s Simulated) AddCertificate(t testing.TB, der []byte) {
	s.edit(t, func(state *simulation.State) { state.Put(trusted(der)) })
}

// HasCertificate implements CertificateKeeper.
func (s Simulated) HasCertificate(t testing.TB, der []byte) bool {
	var has bool
	s.look(t, func(state *simulation.State) {
		has = state.Settings[simulation.SettingKey(bundle.KindTrustedCA, trusted(der).Name)].Value == string(der)
	})
	return has
}

// MakeNetwork implements NetworkMaker.
func (s Simulated) MakeNetwork(t testing.TB) string {
	const name = "WmcoContractNetwork"
	s.edit(t, func(state *simulation.State) {
		state.Facts.Networks = append(slices.Clip(state.Facts.Networks), bundle.HNSNetwork{Name: name, AddressPrefix: "10.132.1.0/24"})
	})
	return name
}

// Answer implements Answerer.
func (s Simulated) Answer(t testing.TB, kind bundle.ProbeKind) (bundle.Probe, func()) {
	target := "simulated " + string(kind)
	return bundle.Probe{Kind: kind, Target: target}, func() {
		s.script(t, func(script *simulation.Script) {
			script.Probes = append(slices.Clip(script.Probes), simulation.SilentProbe{Target: target})
		})
	}
}
