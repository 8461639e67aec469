package world

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
)

// isListed is for hosts that are on, and have their entry or their Machine.
func isListed(h *host) bool { return h.listed && h.IsOn() && !h.impostor }

func isEntry(h *host) bool { return isListed(h) && !h.ofMachine }

// isCalm is for hosts with an entry to which nothing has happened for some time: most of them are nodes.
func isCalm(h *host) bool { return isEntry(h) && isSettled(h) }

// isAddressed is for those whose entry is an address.
func isAddressed(h *host) bool { return isCalm(h) && h.dns == "" }

// isNamed is for those whose entry is a name.
func isNamed(h *host) bool { return isCalm(h) && h.dns != "" }

// isSettled is for those of Machines too.
func isSettled(h *host) bool { return isListed(h) && isUndisturbed(h) }

func isUndisturbed(h *host) bool {
	return time.Since(h.since) > calmFor && time.Since(h.disturbed) > calmFor
}

func isMachine(h *host) bool { return isListed(h) && h.ofMachine }

// toEachHost does something to one host for which this holds.
func (w *world) toEachHost(is func(*host) bool, do func(testing.TB, *host)) func(*testing.T) bool {
	return func(t *testing.T) bool {
		var list []*host
		for _, h := range w.allHosts() {
			if is(h) {
				list = append(list, h)
			}
		}
		if len(list) == 0 {
			return false
		}
		do(t, list[w.random.IntN(len(list))])
		return true
	}
}

// joinHost has a new host join, of an entry or a Machine, or again one whose entry was removed, with something in the middle of it.
func (w *world) joinHost(t *testing.T) bool {
	var all []*host
	for _, x := range w.allHosts() {
		if !x.listed && !x.impostor {
			all = append(all, x)
		}
	}
	if len(w.hosts) < w.options.hosts && (len(all) == 0 || w.random.IntN(2) == 0) {
		all = []*host{w.addHost(t)}
	}
	if len(all) == 0 {
		return false
	}
	h := all[w.random.IntN(len(all))]
	w.listHost(t, h, true)
	w.interrupt(t, h)
	return true
}

// interrupt is what may happen in the first minutes of a join or a removal: the operator is killed or exchanged, SSH breaks, the power is cut, or nothing.
func (w *world) interrupt(t testing.TB, h *host) {
	t.Helper()
	pause(w.ctx, time.Duration(w.random.Int64N(int64(20*time.Second))))
	switch w.random.IntN(7) { //nolint:mnd // as follows
	case 0, 1:
		w.killAtWrite()
	case 2:
		w.exchange()
	case 3:
		w.breakSSH(t, h)
	case 4:
		w.cutHost(t, h)
	}
}

// removeHost removes the entry of a host, which may be off. Sometimes the entry comes back.
func (w *world) removeHost(t testing.TB, h *host) {
	t.Helper()
	off := w.random.IntN(4) == 0
	if off {
		w.powerOffHost(h)
	}
	w.listHost(t, h, false)
	w.interrupt(t, h)
	if w.random.IntN(3) == 0 {
		pause(w.ctx, time.Duration(w.random.Int64N(int64(5*time.Minute))))
		w.listHost(t, h, true)
	}
	if off {
		pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Hour))))
		w.powerOnHost(t, h)
	}
}

// breakSSH ends the connections to a host some times, and has its SSH server not run for a while.
func (w *world) breakSSH(t testing.TB, h *host) {
	t.Helper()
	w.disturbHost(h)
	for range 1 + w.random.IntN(4) {
		h.ssh.Break()
		pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Second))))
	}
	if w.random.IntN(2) == 0 {
		h.ssh.Stop()
		pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Hour))))
		must(t, h.ssh.Restart())
	}
	w.disturbHost(h)
}

// cutHost has a host lose its power at some moment, for seconds or for hours.
func (w *world) cutHost(t testing.TB, h *host) {
	t.Helper()
	w.powerOffHost(h)
	pause(w.ctx, time.Duration(w.random.Int64N(int64([]time.Duration{time.Minute, time.Hour}[w.random.IntN(2)]))))
	w.powerOnHost(t, h)
}

// expireCertificate has a host off for longer than the certificate of its kubelet is valid.
func (w *world) expireCertificate(t testing.TB, h *host) {
	t.Helper()
	w.powerOffHost(h)
	pause(w.ctx, w.certificates+time.Hour)
	w.powerOnHost(t, h)
}

// setClock has the clock of a host be wrong for hours, by more than an agent may be silent. Its certificates do not expire by that.
func (w *world) setClock(t testing.TB, h *host) {
	t.Helper()
	before := h.dials.Load()
	const wrong = published.SilentAfter + 15*time.Minute
	h.SetClock([]time.Duration{-wrong, wrong}[w.random.IntN(2)])
	pause(w.ctx, 2*time.Hour)
	h.SetClock(0)
	if n := h.dials.Load() - before; n > 0 {
		w.observer.Violate(ruleLogin, "%s: %d attempts while its clock is wrong", h.name, n)
	}
	w.disturbHost(h)
}

func (w *world) powerOffHost(h *host) {
	w.observer.Excuse(h.name, true)
	w.disturbHost(h)
	h.PowerOff()
}

func (w *world) powerOnHost(t testing.TB, h *host) {
	t.Helper()
	must(t, h.PowerOn())
	w.disturbHost(h)
}

func (w *world) disturbHost(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.disturbed = time.Now()
}

// reinstallHost has another Windows at the address of a node, with its name. A person sees that the host has another key: the entry is removed, the
// removal forced, as there is no host any longer that it could be removed from, and the entry is written again.
func (w *world) reinstallHost(t testing.TB, h *host) {
	t.Helper()
	before := w.observer.Snapshot()[h.name].UID
	w.powerOffHost(h)
	must(t, h.Close())
	w.install(t, h)
	pause(w.ctx, time.Duration(int64(30*time.Minute)+w.random.Int64N(int64(time.Hour)))) // an operator asks the host of a kubelet that is lost
	var n corev1.Node
	err := w.Get(w.ctx, client.ObjectKey{Name: h.name}, &n)
	if starts, logins := h.Starts(), h.ssh.Logins(); err == nil && n.UID == before && (len(starts) > 0 || logins > 0) {
		w.observer.Violate(ruleImpostor, "%s: %d logins, %v", h.name, logins, starts)
	}
	w.listHost(t, h, false)
	pause(w.ctx, time.Minute)
	for begun := time.Now(); err == nil && time.Since(begun) < w.options.patience; pause(w.ctx, time.Minute) {
		w.revive()
		if err = w.Get(w.ctx, client.ObjectKey{Name: h.name}, &n); err == nil && n.Annotations[published.RemoveAnnotation] != "force" {
			w.edit(t, h.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"force"}}}`, published.RemoveAnnotation))
		}
	}
	if !apierrors.IsNotFound(err) {
		w.observer.Violate(ruleRest, "%s is not removed by force: %v", h.name, err)
	}
	w.listHost(t, h, true)
}

// relistUnmarked writes the entries again that were removed in the seconds between the registration of a Node and its marks: the operator leaves
// such a Node to a person.
func (w *world) relistUnmarked(t testing.TB) {
	t.Helper()
	for _, h := range w.allHosts() {
		n, is := w.observer.Snapshot()[h.name]
		if is && h.IsOn() && !h.listed && n.Labels[published.InstanceLabel] == "" && time.Since(h.since) > time.Hour {
			w.listHost(t, h, true)
		}
	}
}

// calmHosts has all hosts on, and what has failed on them tried again.
func (w *world) calmHosts(t testing.TB) {
	t.Helper()
	for _, h := range w.allHosts() {
		if !h.IsOn() {
			w.powerOnHost(t, h)
		}
		n := w.observer.Snapshot()[h.name]
		if r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation]); r.State == published.StateRolledBack || r.State == published.StateFailed {
			w.edit(t, h.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, published.RetryAnnotation, w.random.IntN(1_000_000)))
		}
	}
}
