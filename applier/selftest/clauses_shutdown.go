package selftest

import (
	"slices"
	"time"

	"wmco/applier/plan"
)

// shutdownClauses are about what a kubelet needs to end its Pods before Windows shuts down:
// SERVICE_CONTROL_PRESHUTDOWN, for which Windows waits as long as a service has set
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_preshutdown_info). No program can send that control,
// so a clause sends one that services define themselves: both come to the process that has called
// StartServiceCtrlDispatcher (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicectrldispatcherw).
var shutdownClauses = []Clause{
	{"a service that a wrapper starts accepts preshutdown, and its process gets the controls", func(t *trial) {
		keeper, sender := need[PreshutdownKeeper](t), need[ControlSender](t)
		t.installed(ProgramWrapped)
		t.put(t.config(ServiceA))
		t.ok(t.host.StartService(t.Context(), ServiceA))
		t.status(plan.ServiceRunning, ServiceA)
		t.equal(true, keeper.AcceptsPreshutdown(t, ServiceA))
		for _, control := range []uint8{128, 255} {
			t.equal(ReceiverChild, sender.SendControl(t, ServiceA, control))
		}
		t.ok(t.host.StopService(t.Context(), ServiceA))
		t.status(plan.ServiceStopped, ServiceA)
		t.checkProgramEnded()
	}},
	{"PutService leaves the preshutdown timeout as it is", func(t *trial) {
		keeper := need[PreshutdownKeeper](t)
		t.installed(ProgramGood)
		config := t.config(ServiceA)
		t.put(config)
		const timeout = 41 * time.Second
		t.equal(false, keeper.PreshutdownTimeout(t, ServiceA) == timeout)
		keeper.SetPreshutdownTimeout(t, ServiceA, timeout)
		config.CommandLine += " --other"
		t.ok(t.host.PutService(t.Context(), config))
		t.equal(timeout, keeper.PreshutdownTimeout(t, ServiceA))
	}},
	{"a deleted service is removed from the preshutdown order, and the others stay", func(t *trial) {
		keeper := need[PreshutdownKeeper](t)
		t.installed(ProgramGood)
		before := keeper.PreshutdownOrder(t)
		t.put(t.config(ServiceA))
		t.put(t.config(ServiceB))
		keeper.AddToPreshutdownOrder(t, ServiceA, ServiceB)
		t.equal(slices.Concat(before, []string{ServiceA, ServiceB}), keeper.PreshutdownOrder(t))
		t.ok(t.host.DeleteService(t.Context(), ServiceA))
		t.equal(append(slices.Clip(before), ServiceB), keeper.PreshutdownOrder(t))
		t.ok(t.host.DeleteService(t.Context(), ServiceB))
		t.equal(before, keeper.PreshutdownOrder(t))
	}},
}
