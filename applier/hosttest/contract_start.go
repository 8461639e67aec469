package hosttest

import (
	"errors"
	"sync"

	"wmco/applier"
	"wmco/bundle"
)

// serviceError demands a *applier.ServiceError about the service.
func (t *trial) serviceError(err error, name string) {
	t.Helper()
	var refusal *applier.ServiceError
	if !errors.As(err, &refusal) {
		t.Errorf("got %v, want a *applier.ServiceError", err)
		return
	}
	t.equal(name, refusal.Name)
	t.equal(true, refusal.Doing != "")
}

var startClauses = []clause{
	{"a service starts, runs and stops, and doing so again is no error", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		t.equal(0, t.service(serviceA).Process)
		t.ok(t.host.StartService(t.Context(), serviceA))
		first := t.service(serviceA)
		t.equal(applier.ServiceRunning, first.Status)
		t.equal(true, first.Process > 0)
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.equal(first, t.service(serviceA))
		for range 2 {
			t.ok(t.host.StopService(t.Context(), serviceA))
			t.status(applier.ServiceStopped, serviceA)
			t.equal(0, t.service(serviceA).Process)
		}
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.equal(false, first.Process == t.service(serviceA).Process)
	}},
	{"a service that is configured while it runs goes on as it is", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		t.ok(t.host.StartService(t.Context(), serviceA))
		before := t.service(serviceA)
		config := t.config(serviceA)
		config.CommandLine += " --other"
		t.ok(t.host.PutService(t.Context(), config))
		after := t.service(serviceA)
		t.equal(config, after.ServiceConfig)
		t.equal(before.Process, after.Process)
	}},
	{"stopping a service that is not there is no error, starting it is", func(t *trial) {
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
	}},
	{"a service does not start without its program", func(t *trial) {
		t.put(t.config(serviceA))
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
		t.status(applier.ServiceStopped, serviceA)
	}},
	{"a service does not start when it is disabled", func(t *trial) {
		t.installed(ProgramGood)
		config := t.config(serviceA)
		config.Start = applier.StartDisabled
		t.put(config)
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
		t.status(applier.ServiceStopped, serviceA)
	}},
	{"a service whose program ends at once did not start", func(t *trial) {
		t.installed(ProgramExits)
		t.put(t.config(serviceA))
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
		t.status(applier.ServiceStopped, serviceA)
	}},
	{"a service that hangs in its start did not start, and can be stopped", func(t *trial) {
		t.installed(ProgramHangsStarting)
		t.put(t.config(serviceA))
		t.serviceError(t.host.StartService(t.Context(), serviceA), serviceA)
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.status(applier.ServiceStopped, serviceA)
		t.gone("service.exe")
	}},
	{"a service that hangs when it is to stop is killed", func(t *trial) {
		t.installed(ProgramHangsStopping)
		t.put(t.config(serviceA))
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.status(applier.ServiceStopped, serviceA)
		t.gone("service.exe")
	}},
	{"the processes that a service started are gone when it has stopped", func(t *trial) {
		t.installed(ProgramParent)
		t.put(t.config(serviceA))
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.gone("service.exe")
	}},
	{"the program of a service is replaced while it runs, and the new one starts next", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceA))
		t.ok(t.host.StartService(t.Context(), serviceA))
		t.write(t.path("service.exe"), "no program any more")
		t.status(applier.ServiceRunning, serviceA)
		aside := t.aside("service.exe")
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.ok(t.host.Remove(t.Context(), aside))
		t.equal([]string{"service.exe"}, t.list())
	}},
}

// gone demands that a program does not run: it is removed without standing aside.
func (t *trial) gone(name string) {
	t.Helper()
	t.ok(t.host.Remove(t.Context(), t.path(name)))
	leftovers, _ := t.leftovers()
	t.equal([]string(nil), leftovers)
}

var dependencyClauses = []clause{
	{"what a service depends on is started first", func(t *trial) {
		t.chain()
		t.ok(t.host.StartService(t.Context(), serviceC))
		t.status(applier.ServiceRunning, serviceA, serviceB, serviceC)
	}},
	{"a service does not start when what it depends on is not there or does not start", func(t *trial) {
		t.installed(ProgramGood)
		t.put(t.config(serviceB, serviceA))
		t.serviceError(t.host.StartService(t.Context(), serviceB), serviceB)
		broken := t.config(serviceA)
		broken.Start = applier.StartDisabled
		t.put(broken)
		t.serviceError(t.host.StartService(t.Context(), serviceB), serviceB)
		t.status(applier.ServiceStopped, serviceA, serviceB)
		t.ok(t.host.DeleteService(t.Context(), serviceB))
	}},
	{"a service tells which running ones depend on it, however far", func(t *trial) {
		t.chain()
		t.equal(0, len(t.service(serviceA).Dependents))
		t.ok(t.host.StartService(t.Context(), serviceB))
		t.equal([]string{serviceB}, t.service(serviceA).Dependents)
		t.ok(t.host.StartService(t.Context(), serviceC))
		t.equal([]string{serviceB, serviceC}, t.service(serviceA).Dependents)
		t.equal(0, len(t.service(serviceC).Dependents))
	}},
	{"a service is not stopped while another one that depends on it runs", func(t *trial) {
		t.chain()
		t.ok(t.host.StartService(t.Context(), serviceB))
		t.serviceError(t.host.StopService(t.Context(), serviceA), serviceA)
		t.status(applier.ServiceRunning, serviceA, serviceB)
		t.ok(t.host.StopService(t.Context(), serviceB))
		t.ok(t.host.StopService(t.Context(), serviceA))
		t.status(applier.ServiceStopped, serviceA, serviceB)
	}},
	{"a service cannot depend on itself", func(t *trial) {
		t.chain()
		t.serviceError(t.host.PutService(t.Context(), t.config(serviceA, serviceC)), serviceA)
		t.equal(0, len(t.service(serviceA).Dependencies))
	}},
	{"the services that start by themselves do so when the machine boots, with what they depend on", func(t *trial) {
		booter := need[Booter](t)
		t.installed(ProgramGood)
		manual := t.config(serviceA)
		manual.Start = applier.StartManual
		t.put(manual)
		t.put(t.config(serviceB, serviceA))
		manual.Name = serviceC
		t.put(manual)
		t.ok(t.host.StartService(t.Context(), serviceC))
		booter.Boot(t)
		t.host = t.fixture.Host(t)
		t.status(applier.ServiceRunning, serviceA, serviceB)
		t.status(applier.ServiceStopped, serviceC)
	}},
}

// chain puts three services, each of which depends on the one before.
func (t *trial) chain() {
	t.Helper()
	t.installed(ProgramGood)
	t.put(t.config(serviceA))
	t.put(t.config(serviceB, serviceA))
	t.put(t.config(serviceC, serviceB))
}

// machineClauses are about the machine as a whole.
var machineClauses = []clause{
	{"the facts are those of a machine, and the same when asked twice", func(t *trial) {
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
	{"a boot is seen in the facts", func(t *trial) {
		booter := need[Booter](t)
		before, err := t.host.Facts(t.Context())
		t.ok(err)
		booter.Boot(t)
		after, err := t.fixture.Host(t).Facts(t.Context())
		t.ok(err)
		t.equal(false, before.BootTime == after.BootTime)
	}},
	{"a probe over HTTP holds while somebody answers", func(t *trial) { t.probe(bundle.ProbeHTTP) }},
	{"a probe over TCP holds while somebody answers", func(t *trial) { t.probe(bundle.ProbeTCP) }},
	{"a probe of a pipe holds while somebody answers", func(t *trial) { t.probe(bundle.ProbePipe) }},
	{"whether a service runs is not asked of the machine", func(t *trial) {
		if err := t.host.Probe(t.Context(), bundle.Probe{Kind: bundle.ProbeRunning}); err == nil {
			t.Error("the probe held")
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
		t.Error("the probe held although nobody answered")
	}
}
