package selftest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest/result"
	"wmco/bundle"
)

// config returns a service of the program in the folder of the fixture.
func (t *trial) config(name string, dependencies ...string) plan.ServiceConfig {
	return plan.ServiceConfig{
		Name:         name,
		Description:  "OpenShift managed " + name,
		Start:        bundle.StartAuto,
		CommandLine:  bundle.CommandLine([]string{t.path(program), "--service"}),
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

// installed puts the program of config in place, which behaves as plays.
func (t *trial) installed(plays Program) {
	t.Helper()
	need[ServiceInstaller](t).InstallProgram(t, t.path(program), plays)
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

// restarted waits for another process of the first service, and returns it, or what there is after half a minute.
func (t *trial) restarted(first int) (process int) {
	t.Helper()
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for end := time.Now().Add(30 * time.Second); ; {
		id, err := t.host.ServiceProcess(t.Context(), ServiceA)
		t.ok(err)
		if id != 0 && id != first || time.Now().After(end) {
			return id
		}
		select {
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		case <-ticks.C:
		}
	}
}

var serviceClauses = []Clause{
	{"Services keeps the order of the names and returns missing ones as absent", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceB))
		states, err := t.host.Services(t.Context(), []string{ServiceC, ServiceB, ServiceA})
		t.ok(err)
		var got []string
		for _, s := range states {
			got = append(got, s.Name+" "+string(s.Status))
		}
		t.equal([]string{ServiceC + " ", ServiceB + " stopped", ServiceA + " "}, got)
	}},
	{"ServiceProcess returns the process of a running service, and 0 for one that does not run or exist", func(t *trial) {
		process := func() int {
			t.Helper()
			id, err := t.host.ServiceProcess(t.Context(), strings.ToUpper(ServiceA))
			t.ok(err)
			return id
		}
		t.installed(ProgramGood)
		t.equal(0, process())
		t.put(t.config(ServiceA))
		t.equal(0, process())
		t.ok(t.host.StartService(t.Context(), ServiceA))
		first := process()
		t.equal(t.service(ServiceA).Process, first)
		t.equal(true, first != 0)
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.equal(0, process())
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(true, process() != 0 && process() != first)
	}},
	{"PutService sets exactly the given configuration", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceB))
		full := t.config(ServiceA, ServiceB)
		full.Description = `größer "than" life`
		bare := plan.ServiceConfig{Name: ServiceA, Start: plan.StartManual, CommandLine: t.path("other.exe")}
		t.put(full)
		for _, want := range []plan.ServiceConfig{full, bare, full} {
			t.ok(t.host.PutService(t.Context(), want))
			t.equal(want, t.service(ServiceA).ServiceConfig)
		}
	}},
	{"the environment of a service is set and removed", func(t *trial) {
		t.installed(ProgramGood)
		with := t.config(ServiceA)
		with.Environment = []string{"A=", "HTTP_PROXY=http://u:p%40@proxy:3128", "NO_PROXY=" + strings.Repeat(".example.com,", 300), "Z=größe = 1"}
		t.put(with)
		t.equal(with.Environment, t.service(ServiceA).Environment)
		t.ok(t.host.PutService(t.Context(), t.config(ServiceA)))
		t.equal(0, len(t.service(ServiceA).Environment))
	}},
	{"the recovery of a service is set and removed", func(t *trial) {
		t.installed(ProgramGood)
		with := t.config(ServiceA)
		with.Recovery = bundle.Recovery{RestartAfterSeconds: []int{10, 30, 60, 120}, ResetSeconds: 300}
		t.put(with)
		t.equal(with.Recovery, t.service(ServiceA).Recovery)
		t.ok(t.host.PutService(t.Context(), t.config(ServiceA)))
		t.equal(bundle.Recovery{}, t.service(ServiceA).Recovery)
	}},
	{"names of services are case-insensitive", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.status(plan.ServiceStopped, strings.ToUpper(ServiceA))
	}},
	{"a service gets its arguments unchanged", func(t *trial) {
		t.installed(ProgramGood)
		argv := []string{
			t.path(program), "--service", "", "a b", `C:\my dir\`, `say "hi"`, `\\server\share`, `tail\\"`, "--x=größe", "100%", "^&|<>",
		}
		config := t.config(ServiceA)
		config.CommandLine = bundle.CommandLine(argv)
		t.put(config)
		t.equal(config.CommandLine, t.service(ServiceA).CommandLine)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(argv, need[ServiceInstaller](t).Seen(t, ServiceA).Argv)
	}},
	{"a service gets its environment", func(t *trial) {
		t.installed(ProgramGood)
		config := t.config(ServiceA)
		config.Environment = []string{"WMCO_SELFTEST_A=a b", "WMCO_SELFTEST_B=%PATH%"}
		t.put(config)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		seen := need[ServiceInstaller](t).Seen(t, ServiceA).Environment
		for _, want := range config.Environment {
			t.equal(true, slices.Contains(seen, want))
		}
	}},
	// Without an account, CreateService takes LocalSystem
	// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew).
	{"a service runs as SYSTEM", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(result.AccountSystem, need[ServiceInstaller](t).Seen(t, ServiceA).Account)
	}},
	// A service that ends without reporting that it has stopped has failed
	// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw).
	{"a service that crashes is started again as its recovery says", func(t *trial) {
		crasher := need[ServiceCrasher](t)
		t.installed(ProgramGood)
		config := t.config(ServiceA)
		config.Recovery = bundle.Recovery{RestartAfterSeconds: []int{1, 1, 1}, ResetSeconds: 300}
		t.put(config)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		first := t.service(ServiceA).Process
		crasher.CrashService(t, ServiceA)()
		next := t.restarted(first)
		t.equal(true, next != 0 && next != first)
	}},
	{"a service that crashed is started again with what is configured by then", func(t *trial) {
		crasher := need[ServiceCrasher](t)
		t.installed(ProgramGood)
		config := t.config(ServiceA)
		config.Recovery = bundle.Recovery{RestartAfterSeconds: []int{5, 5, 5}, ResetSeconds: 300}
		t.put(config)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		first := t.service(ServiceA).Process
		restart := crasher.CrashService(t, ServiceA)
		config.CommandLine += " --later"
		t.ok(t.host.PutService(t.Context(), config))
		restart()
		t.restarted(first)
		argv := need[ServiceInstaller](t).Seen(t, ServiceA).Argv
		t.equal(true, slices.Contains(argv, "--later"))
	}},
	{"a running service names the program of its process, also when another one is configured", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.equal("", t.service(ServiceA).Program)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(bundle.FoldPath(t.path(program)), bundle.FoldPath(t.service(ServiceA).Program))
		config := t.config(ServiceA)
		config.CommandLine = bundle.CommandLine([]string{t.path("other.exe"), "--service"})
		t.ok(t.host.PutService(t.Context(), config))
		t.equal(bundle.FoldPath(t.path(program)), bundle.FoldPath(t.service(ServiceA).Program))
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.equal("", t.service(ServiceA).Program)
	}},
	{"a deleted service can be created again, and deleting it twice is no error", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		for range 2 {
			t.ok(t.host.DeleteService(t.Context(), ServiceA))
			t.status(plan.ServiceAbsent, ServiceA)
		}
		t.ok(t.host.PutService(t.Context(), t.config(ServiceA)))
		t.status(plan.ServiceStopped, ServiceA)
	}},
	{"a service with an open handle stays marked for deletion until the handle is closed", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		release := need[ServiceHolder](t).HoldService(t, ServiceA)
		t.serviceError(t.host.DeleteService(t.Context(), ServiceA), ServiceA)
		t.status(plan.ServiceDeleting, ServiceA)
		t.serviceError(t.host.PutService(t.Context(), t.config(ServiceA)), ServiceA)
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
		release()
		t.ok(t.host.DeleteService(t.Context(), ServiceA))
		t.status(plan.ServiceAbsent, ServiceA)
	}},
}
