package jointest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"wmco/controller/configure"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

// actsFile is a file of what an operator asks of hosts, one in a line; empty keeps nothing.
type actsFile string

func (a actsFile) note(command string) error {
	if a == "" {
		return nil
	}
	f, err := os.OpenFile(string(a), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, command)
	return errors.Join(err, f.Close())
}

// changes returns what of it changes hosts.
func (a actsFile) changes(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(string(a))
	if !errors.Is(err, os.ErrNotExist) {
		must(t, err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		word, _, _ := strings.Cut(line, " ")
		return !slices.Contains([]string{"sftp", "apply", "stage", "repair", "cleanup"}, word)
	})
}

// ends waits until the process ends, and returns its status.
func (o *operator) ends() int {
	o.t.Helper()
	ended := make(chan error, 1)
	o.once.Do(func() {
		go func() { ended <- o.Wait() }()
		o.t.Cleanup(func() { _ = o.Process.Kill() }) // it may have ended
	})
	var err error
	must(o.t, testenv.Eventually(o.t.Context(), "the end of the process", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	}))
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		o.t.Fatal(err)
	}
	return o.ProcessState.ExitCode()
}

// frozenRenew is for how long after a renewal the operator that is frozen leads without a question.
const frozenRenew = 20 * time.Second

// TestALeaderThatWasFrozenChangesNothing: it goes on when another one leads, with events that have waited for it, of a join, a removal and a rollout.
func TestALeaderThatWasFrozenChangesNothing(t *testing.T) {
	w := newWorld(t)
	for i, name := range []string{"machine-a", "machine-b", "machine-c"} {
		w.machine(name, fmt.Sprintf("192.0.2.%d", 41+i))
	}
	leaves := w.machine("instance-d", "192.0.2.44")
	w.machine("instance-e", "192.0.2.45")
	w.machineObject("machine-a", "192.0.2.41")
	w.instances("192.0.2.44", "192.0.2.45")
	byFrozen := func(r controlplane.Request) bool { return strings.HasPrefix(r.Agent, "frozen") }
	acts := actsFile(filepath.Join(t.TempDir(), "acts"))
	s := w.settings()
	s.Leader, s.Renew, s.Agent, s.Acts = true, frozenRenew, "frozen", acts
	frozen := w.process(s)
	w.allJoin([]string{"machine-a", "instance-d", "instance-e"})
	first := w.holder()
	must(t, frozen.Process.Signal(syscall.SIGSTOP))
	since := time.Now()
	w.freeLease()
	before := len(acts.changes(t))
	if before == 0 || len(w.writes(byFrozen)) == 0 {
		t.Fatal("what the operator does is not noted")
	}

	s = w.settings()
	s.Leader = true
	w.operateAs(s)
	eventually(t, "another leader", func() bool { return w.holder() != first && w.holder() != "" })
	w.machineObject("machine-b", "192.0.2.42")
	w.allJoin([]string{"machine-b"})
	requests, err := server.ControlPlane(t).Requests()
	must(t, err)
	w.asked = len(requests)

	// The new host is one that both may see first, and so are the entry that goes and the change.
	has := w.desiredOf("machine-a").Bundle
	w.machineObject("machine-c", "192.0.2.43")
	w.removeEntry("192.0.2.44")
	w.create(mirrorSet("frozen"))
	eventually(t, "the end of the time for which it need not ask who leads", func() bool { return time.Since(since) > frozenRenew })
	must(t, frozen.Process.Signal(syscall.SIGCONT))
	if status := frozen.ends(); status == 0 {
		t.Error("it ends as if it had been asked to")
	}
	w.allJoin([]string{"machine-c"})
	eventually(t, "the removal, and the rollout", func() bool {
		return !w.hasNode("instance-d") && !w.pinned("192.0.2.44") && w.desiredOf("machine-a").Bundle != has && w.joined("machine-a")
	})
	leaves.isEmpty(t)
	if list := w.writes(byFrozen); len(list) > 0 {
		t.Errorf("written by an operator that does not lead: %q", list)
	}
	if list := acts.changes(t); len(list) > before {
		t.Errorf("done on hosts by an operator that does not lead: %q", list[before:])
	}
	if text := "is held by " + w.holder() + " now"; !strings.Contains(w.log.String(), text) {
		t.Errorf("its log has no line with %q", text)
	}
}

// TestARunOfAnotherProcessIsWaitedFor, and its words are in the Event: what it does is not known here, so nothing is advised about it.
func TestARunOfAnotherProcessIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	m := w.machine("instance-a", "192.0.2.51")
	const run = "wmco-node apply, process 7, since noon"
	release, err := m.Applier().Lock(t.Context(), run)
	must(t, err)
	w.instances("192.0.2.51")
	w.operate()
	note := w.awaitEvent(fails, "windows-instances", configure.ReasonOtherRun, "192.0.2.51: another run is changing the host: "+run)
	if strings.Contains(note, "drive") || w.hasNode("instance-a") {
		t.Errorf("it says %s", note)
	}
	must(t, release())
	w.allJoin([]string{"instance-a"})
}
