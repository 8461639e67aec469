package selftest

import (
	"errors"
	"sync"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest/result"
	"wmco/bundle"
)

// serviceError checks that err is a *applier.ServiceError about the service.
func (t *trial) serviceError(err error, name string) {
	t.Helper()
	var refusal *applier.ServiceError
	if !errors.As(err, &refusal) {
		t.fail(result.Failure{Expected: "an error of the service " + name, Seen: errorText(err), Code: codeOf(err)})
		return
	}
	t.equal(name, refusal.Name)
	t.equal(true, refusal.Doing != "")
}

var startClauses = []Clause{
	{"starting and stopping a service twice is no error", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.equal(0, t.service(ServiceA).Process)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		first := t.service(ServiceA)
		t.equal(plan.ServiceRunning, first.Status)
		t.equal(true, first.Process > 0)
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(first, t.service(ServiceA))
		for range 2 {
			t.ok(t.host.StopService(t.Context(), ServiceA))
			t.status(plan.ServiceStopped, ServiceA)
			t.equal(0, t.service(ServiceA).Process)
		}
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.equal(false, first.Process == t.service(ServiceA).Process)
	}},
	{"PutService does not restart a running service", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		before := t.service(ServiceA)
		config := t.config(ServiceA)
		config.CommandLine += " --other"
		t.ok(t.host.PutService(t.Context(), config))
		after := t.service(ServiceA)
		t.equal(config, after.ServiceConfig)
		t.equal(before.Process, after.Process)
	}},
	{"stopping a missing service is no error, starting it is", func(t *trial) {
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
	}},
	{"a service without its program does not start", func(t *trial) {
		t.put(t.config(ServiceA))
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
		t.status(plan.ServiceStopped, ServiceA)
	}},
	{"a disabled service does not start", func(t *trial) {
		t.installed(ProgramGood)
		config := t.config(ServiceA)
		config.Start = plan.StartDisabled
		t.put(config)
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
		t.status(plan.ServiceStopped, ServiceA)
	}},
	{"a service whose program exits at once does not start", func(t *trial) {
		t.installed(ProgramExits)
		t.put(t.config(ServiceA))
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
		t.status(plan.ServiceStopped, ServiceA)
	}},
	{"a service that hangs while it starts does not start and can be stopped", func(t *trial) {
		t.installed(ProgramHangsStarting)
		t.put(t.config(ServiceA))
		t.serviceError(t.host.StartService(t.Context(), ServiceA), ServiceA)
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.status(plan.ServiceStopped, ServiceA)
		t.checkProgramEnded()
	}},
	{"a service that hangs while it stops is killed", func(t *trial) {
		t.installed(ProgramHangsStopping)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.status(plan.ServiceStopped, ServiceA)
		t.checkProgramEnded()
	}},
	{"the child processes of a stopped service are gone", func(t *trial) {
		t.installed(ProgramParent)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.checkProgramEnded()
	}},
	{"the program of a running service is replaced without stopping it", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.write(t.path(program), "another program")
		t.status(plan.ServiceRunning, ServiceA)
		aside := t.aside(program)
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.ok(t.host.Remove(t.Context(), aside))
		t.equal([]string{program}, t.list())
	}},
}

// checkProgramEnded checks that the program does not run: it can be removed without being moved aside.
func (t *trial) checkProgramEnded() {
	t.Helper()
	t.ok(t.host.Remove(t.Context(), t.path(program)))
	leftovers, _ := t.leftovers()
	t.equal([]string(nil), leftovers)
}

// The service control manager starts what a service depends on, and stops no service on which running ones depend
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew, .../nf-winsvc-controlservice).
var dependencyClauses = []Clause{
	{"the dependencies of a service are started first", func(t *trial) {
		t.chain()
		t.ok(t.host.StartService(t.Context(), ServiceC))
		t.status(plan.ServiceRunning, ServiceA, ServiceB, ServiceC)
	}},
	{"a service with a missing or failing dependency does not start", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(ServiceB, ServiceA))
		t.serviceError(t.host.StartService(t.Context(), ServiceB), ServiceB)
		broken := t.config(ServiceA)
		broken.Start = plan.StartDisabled
		t.put(broken)
		t.serviceError(t.host.StartService(t.Context(), ServiceB), ServiceB)
		t.status(plan.ServiceStopped, ServiceA, ServiceB)
		t.ok(t.host.DeleteService(t.Context(), ServiceB))
	}},
	{"the running dependents of a service are listed, indirect ones too", func(t *trial) {
		t.chain()
		t.equal(0, len(t.service(ServiceA).Dependents))
		t.ok(t.host.StartService(t.Context(), ServiceB))
		t.equal([]string{ServiceB}, t.service(ServiceA).Dependents)
		t.ok(t.host.StartService(t.Context(), ServiceC))
		t.equal([]string{ServiceB, ServiceC}, t.service(ServiceA).Dependents)
		t.equal(0, len(t.service(ServiceC).Dependents))
	}},
	{"a service with running dependents is not stopped", func(t *trial) {
		t.chain()
		t.ok(t.host.StartService(t.Context(), ServiceB))
		t.serviceError(t.host.StopService(t.Context(), ServiceA), ServiceA)
		t.status(plan.ServiceRunning, ServiceA, ServiceB)
		t.ok(t.host.StopService(t.Context(), ServiceB))
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.status(plan.ServiceStopped, ServiceA, ServiceB)
	}},
	{"a service cannot depend on itself", func(t *trial) {
		t.chain()
		t.serviceError(t.host.PutService(t.Context(), t.config(ServiceA, ServiceC)), ServiceA)
		t.equal(0, len(t.service(ServiceA).Dependencies))
	}},
	{"services with automatic start and their dependencies are started at boot", func(t *trial) {
		booter := need[Booter](t)
		t.installed(ProgramGood)
		manual := t.config(ServiceA)
		manual.Start = plan.StartManual
		t.put(manual)
		t.put(t.config(ServiceB, ServiceA))
		manual.Name = ServiceC
		t.put(manual)
		t.ok(t.host.StartService(t.Context(), ServiceC))
		booter.Boot(t)
		t.host = t.fixture.Host(t)
		t.status(plan.ServiceRunning, ServiceA, ServiceB)
		t.status(plan.ServiceStopped, ServiceC)
	}},
}

// chain puts three services, each of which depends on the one before.
func (t *trial) chain() {
	t.Helper()
	t.installed(ProgramGood)
	t.put(t.config(ServiceA))
	t.put(t.config(ServiceB, ServiceA))
	t.put(t.config(ServiceC, ServiceB))
}

// hostClauses are about the host as a whole.
var hostClauses = []Clause{
	{"the facts are complete and stable", func(t *trial) {
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		t.equal(bundle.FactsSchema, facts.Schema)
		t.equal(true, facts.HostName != "")
		t.equal(true, facts.BootTime != "")
		t.equal(true, facts.Build() > 0)
		again, err := t.host.Facts(t.Context())
		t.ok(err)
		t.equal(facts, again)
	}},
	{"the boot time changes with a boot", func(t *trial) {
		booter := need[Booter](t)
		before, err := t.host.Facts(t.Context())
		t.ok(err)
		booter.Boot(t)
		after, err := t.fixture.Host(t).Facts(t.Context())
		t.ok(err)
		t.equal(false, before.BootTime == after.BootTime)
	}},
	{"an HTTP probe succeeds while something answers", func(t *trial) { t.probe(bundle.ProbeHTTP) }},
	{"a TCP probe succeeds while something answers", func(t *trial) { t.probe(bundle.ProbeTCP) }},
	{"a pipe probe succeeds while something answers", func(t *trial) { t.probe(bundle.ProbePipe) }},
	{"a probe of kind running is refused", func(t *trial) {
		if err := t.host.Probe(t.Context(), bundle.Probe{Kind: bundle.ProbeRunning}); err == nil {
			t.Error("the probe succeeded")
		}
	}},
}

func (t *trial) probe(kind bundle.ProbeKind) {
	t.Helper()
	probe, stop := need[Answerer](t).Answer(t, kind)
	stop = sync.OnceFunc(stop)
	t.Cleanup(stop)
	t.ok(t.host.Probe(t.soon(), probe))
	stop()
	if err := t.host.Probe(t.soon(), probe); err == nil {
		t.Error("the probe succeeded although nothing answered")
	}
}
