package agent

import (
	"strings"
	"testing"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
)

const sshProgram = `C:\Windows\System32\OpenSSH\sshd.exe`

// withSSHServer lets the host have the OpenSSH server, which runs, and folders that others may write to.
func withSSHServer(t *testing.T) *world {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.host.Place(sshProgram, bundle.AccessUsers, "sshd")
	for _, folder := range []string{sshFolder, sshLogs} {
		if err := w.host.MakeDirectory(t.Context(), folder, plan.AccessOther); err != nil {
			t.Fatal(err)
		}
	}
	w.putSSHServer(bundle.StartAuto)
	if err := w.host.StartService(t.Context(), sshService); err != nil {
		t.Fatal(err)
	}
	if got := w.turn(); got.State != published.StateApplied || got.SSHStopped != "" {
		t.Fatalf("%s: %s, %s", got.State, got.Message, got.SSHStopped)
	}
	w.cluster.events = nil
	w.host.ClearLog()
	return w
}

func (w *world) putSSHServer(start bundle.StartType) {
	w.t.Helper()
	if err := w.host.PutService(w.t.Context(), plan.ServiceConfig{Name: sshService, CommandLine: sshProgram, Start: start}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stopSSHServer() {
	w.t.Helper()
	if err := w.host.StopService(w.t.Context(), sshService); err != nil {
		w.t.Fatal(err)
	}
	w.turn()
}

func (w *world) turnAfter(d time.Duration) published.Report {
	w.t.Helper()
	w.clock.Pass(d)
	return w.turn()
}

func TestAStoppedSSHServerIsStartedWithTheAccessThatItWants(t *testing.T) {
	w := withSSHServer(t)
	w.stopSSHServer()
	if got := w.turnAfter(sshGrace - time.Second); got.SSHStopped != "" || w.starts(sshService) != 0 {
		t.Errorf("within the grace: started %d times, %q", w.starts(sshService), got.SSHStopped)
	}
	w.turnAfter(time.Second)
	if w.starts(sshService) != 1 {
		t.Errorf("started %d times", w.starts(sshService))
	}
	info, err := w.host.Stat(t.Context(), []string{sshFolder, sshLogs})
	if err != nil || info[0].Access != bundle.AccessUsers || info[1].Access != bundle.AccessAdmins {
		t.Errorf("%v: access %q and %q", err, info[0].Access, info[1].Access)
	}
	if e := w.cluster.events; len(e) != 1 || e[0].Reason != EventSSHStarted || !e[0].Warning {
		t.Errorf("events %+v", e)
	}
	if got := w.turnAfter(time.Minute); got.SSHStopped != "" || w.starts(sshService) != 1 || len(got.Crashed) != 0 {
		t.Errorf("running again: started %d times, %+v", w.starts(sshService), got)
	}
}

// TestAnSSHServerDoesNotFollowWhatAnotherUserHasConfigured: sshd refuses a folder that others may write to, and so what they put there before.
func TestAnSSHServerDoesNotFollowWhatAnotherUserHasConfigured(t *testing.T) {
	for _, path := range []string{sshFolder, sshLogs, sshConfig} {
		w := withSSHServer(t)
		w.host.Place(sshConfig, bundle.AccessUsers, "Subsystem sftp C:/Users/user/sftp.exe")
		w.host.SetOwner(path, plan.OwnerOther)
		w.stopSSHServer()
		got := w.turnAfter(sshGrace)
		info, err := w.host.Stat(t.Context(), []string{sshFolder})
		if want := path + " is a link or belongs to another user"; !strings.Contains(got.SSHStopped, want) || w.starts(sshService) != 0 || err != nil || info[0].Access != plan.AccessOther {
			t.Errorf("%s: started %d times, %q, %v, access %q", path, w.starts(sshService), got.SSHStopped, err, info[0].Access)
		}
		w.host.SetOwner(path, plan.OwnerAdmins)
		if w.turnAfter(sshRetry); w.starts(sshService) != 1 {
			t.Errorf("%s: not started for Administrators", path)
		}
	}
}

func TestAnSSHServerThatDoesNotStartIsReportedAndTriedAgain(t *testing.T) {
	w := withSSHServer(t)
	w.stopSSHServer()
	if err := w.host.Remove(t.Context(), sshProgram); err != nil {
		t.Fatal(err)
	}
	got := w.turnAfter(sshGrace)
	if !strings.Contains(got.SSHStopped, "starting service sshd: ") || got.State != published.StateApplied {
		t.Errorf("%s: %q", got.State, got.SSHStopped)
	}
	if text := w.cluster.reports[len(w.cluster.reports)-1].Message; !strings.Contains(text, "is applied; the OpenSSH server does not run: starting service sshd: ") {
		t.Errorf("condition %q", text)
	}
	w.turnAfter(sshRetry)
	if e := w.cluster.events; len(e) != 1 || e[0].Reason != EventSSHStopped {
		t.Errorf("events %+v", e)
	}
	w.host.Place(sshProgram, bundle.AccessUsers, "sshd")
	if got := w.turnAfter(time.Minute); got.SSHStopped == "" {
		t.Error("before the next try: not reported")
	}
	w.turnAfter(sshRetry)
	if got := w.turnAfter(time.Minute); got.SSHStopped != "" {
		t.Errorf("still reported: %q", got.SSHStopped)
	}
}

func TestAnSSHServerThatEndsAfterItsStartIsReported(t *testing.T) {
	w := withSSHServer(t)
	w.stopSSHServer()
	w.turnAfter(sshGrace)
	if err := w.host.StopService(t.Context(), sshService); err != nil {
		t.Fatal(err)
	}
	if got := w.turnAfter(time.Minute); got.SSHStopped != "it has ended again after it was started" || w.starts(sshService) != 1 {
		t.Errorf("started %d times, %q", w.starts(sshService), got.SSHStopped)
	}
	w.turnAfter(sshRetry)
	if e := w.cluster.events; len(e) != 2 || e[0].Reason != EventSSHStarted || e[1].Reason != EventSSHStopped || w.starts(sshService) != 2 {
		t.Errorf("started %d times, events %+v", w.starts(sshService), e)
	}
}

// TestAnSSHServerThatIsDisabledOrOfAPausedNodeIsNotStarted: a disabled one is meant to be, and is not reported.
func TestAnSSHServerThatIsDisabledOrOfAPausedNodeIsNotStarted(t *testing.T) {
	w := withSSHServer(t)
	w.cluster.node.Paused = true
	w.stopSSHServer()
	if got := w.turnAfter(sshGrace); got.SSHStopped != "it is stopped" || w.starts(sshService) != 0 {
		t.Errorf("paused: started %d times, %q", w.starts(sshService), got.SSHStopped)
	}
	w.cluster.node.Paused = false
	w.putSSHServer(plan.StartDisabled)
	if got := w.turnAfter(sshRetry); got.SSHStopped != "" || w.starts(sshService) != 0 {
		t.Errorf("disabled: started %d times, %q", w.starts(sshService), got.SSHStopped)
	}
}

// TestAHostWithoutTheServiceHasAnotherSSHServer, about which nothing is reported.
func TestAHostWithoutTheServiceHasAnotherSSHServer(t *testing.T) {
	w := withSSHServer(t)
	w.stopSSHServer()
	if err := w.host.Edit(t.Context(), func(s *simulation.State) { delete(s.Services, simulation.Key(sshService)) }); err != nil {
		t.Fatal(err)
	}
	if got := w.turnAfter(sshGrace); got.SSHStopped != "" || len(w.cluster.events) != 0 {
		t.Errorf("%q, events %+v", got.SSHStopped, w.cluster.events)
	}
}
