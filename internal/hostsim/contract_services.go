package hostsim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// The services that clauses create.
const (
	serviceA = "wmco-contract-a"
	serviceB = "wmco-contract-b"
	serviceC = "wmco-contract-c"
)

// config returns a service of the program in the folder of the fixture.
func (t *trial) config(name string, dependencies ...string) plan.ServiceConfig {
	return plan.ServiceConfig{
		Name:         name,
		Description:  "OpenShift managed " + name,
		Start:        bundle.StartAuto,
		CommandLine:  bundle.CommandLine([]string{t.path("service.exe"), "--service"}),
		Dependencies: dependencies,
	}
}

// put creates a service, which is deleted after the clause.
func (t *trial) put(config plan.ServiceConfig) {
	t.Helper()
	t.cleanup(func(ctx context.Context, h applier.Host) error {
		return errors.Join(h.StopService(ctx, config.Name), h.DeleteService(ctx, config.Name))
	})
	t.ok(t.host.PutService(t.Context(), config))
}

// installed puts the program of config in place.
func (t *trial) installed(program Program) {
	t.Helper()
	need[ServiceInstaller](t).InstallProgram(t, t.path("service.exe"), program)
}

func (t *trial) service(name string) plan.ServiceState {
	t.Helper()
	states, err := t.host.Services(t.Context(), []string{name})
	t.ok(err)
	if len(states) != 1 {
		t.Fatalf("%d results for one service", len(states))
	}
	return states[0]
}

func (t *trial) status(want plan.ServiceStatus, names ...string) {
	t.Helper()
	for _, name := range names {
		if got := t.service(name).Status; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

var serviceClauses = []clause{
	{"Services keeps the order of the names and returns missing ones as absent", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceB))
		states, err := t.host.Services(t.Context(), []string{serviceC, serviceB, serviceA})
		t.ok(err)
		var got []string
		for _, s := range states {
			got = append(got, s.Name+" "+string(s.Status))
		}
		t.equal([]string{serviceC + " ", serviceB + " stopped", serviceA + " "}, got)
	}},
	{"ServiceProcess returns the process of a running service, and 0 for one that does not run or exist", func(t *trial) {
		process := func() int {
			t.Helper()
			id, err := t.host.ServiceProcess(t.Context(), strings.ToUpper(serviceA))
			t.ok(err)
			return id
		}
		t.installed(ProgramGood)
		t.equal(0, process())
		t.put(t.config(serviceA))
		t.equal(0, process())
		t.ok(t.host.StartService(t.Context(), serviceA))
		first := process()
		t.equal(t.service(serviceA).Process, first)
		t.equal(true, first != 0)
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.equal(0, process())
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.equal(true, process() != 0 && process() != first)
	}},
	{"PutService sets exactly the given configuration", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceB))
		full := t.config(serviceA, serviceB)
		full.Description = `größer "than" life`
		bare := plan.ServiceConfig{Name: serviceA, Start: plan.StartManual, CommandLine: t.path("other.exe")}
		t.put(full)
		for _, want := range []plan.ServiceConfig{full, bare, full} {
			t.ok(t.host.PutService(t.Context(), want))
			t.equal(want, t.service(serviceA).ServiceConfig)
		}
	}},
	{"the environment of a service is set and removed", func(t *trial) {
		t.installed(ProgramGood)
		with := t.config(serviceA)
		with.Environment = []string{"A=", "HTTP_PROXY=http://u:p%40@proxy:3128", "NO_PROXY=" + strings.Repeat(".example.com,", 300), "Z=größe = 1"}
		t.put(with)
		t.equal(with.Environment, t.service(serviceA).Environment)
		t.ok(t.host.PutService(t.Context(), t.config(serviceA)))
		t.equal(0, len(t.service(serviceA).Environment))
	}},
	{"the recovery of a service is set and removed", func(t *trial) {
		t.installed(ProgramGood)
		with := t.config(serviceA)
		with.Recovery = bundle.Recovery{RestartAfterSeconds: []int{10, 30, 60, 120}, ResetSeconds: 300}
		t.put(with)
		t.equal(with.Recovery, t.service(serviceA).Recovery)
		t.ok(t.host.PutService(t.Context(), t.config(serviceA)))
		t.equal(bundle.Recovery{}, t.service(serviceA).Recovery)
	}},
	{"names of services are case-insensitive", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		t.status(plan.ServiceStopped, strings.ToUpper(serviceA))
	}},
	{"a service gets its arguments unchanged", func(t *trial) {
		t.installed(ProgramGood)
		argv := []string{
			t.path("service.exe"), "--service", "", "a b", `C:\my dir\`, `say "hi"`, `\\server\share`, `tail\\"`, "--x=größe", "100%", "^&|<>",
		}
		config := t.config(serviceA)
		config.CommandLine = bundle.CommandLine(argv)
		t.put(config)
		t.equal(config.CommandLine, t.service(serviceA).CommandLine)
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.equal(argv, need[ServiceInstaller](t).Seen(t, serviceA).Argv)
	}},
	{"a service gets its environment", func(t *trial) {
		t.installed(ProgramGood)
		config := t.config(serviceA)
		config.Environment = []string{"WMCO_CONTRACT_A=a b", "WMCO_CONTRACT_B=%PATH%"}
		t.put(config)
		t.ok(t.host.StartService(t.Context(), serviceA))
		seen := need[ServiceInstaller](t).Seen(t, serviceA).Environment
		for _, want := range config.Environment {
			t.equal(true, slices.Contains(seen, want))
		}
	}},
	{"a deleted service can be created again, and deleting it twice is no error", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		for range 2 {
			t.ok(t.host.DeleteService(t.Context(), serviceA))
			t.status(plan.ServiceAbsent, serviceA)
		}
		t.ok(t.host.PutService(t.Context(), t.config(serviceA)))
		t.status(plan.ServiceStopped, serviceA)
	}},
	{"a service with an open handle stays marked for deletion until the handle is closed", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		release := need[ServiceHolder](t).HoldService(t, serviceA)
		t.serviceError(t.host.DeleteService(t.Context(), serviceA), serviceA)
		t.status(plan.ServiceDeleting, serviceA)
		t.serviceError(t.host.PutService(t.Context(), t.config(serviceA)), serviceA)
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
		release()
		t.ok(t.host.DeleteService(t.Context(), serviceA))
		t.status(plan.ServiceAbsent, serviceA)
	}},
}
