package world

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/windowsnode"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
)

// instance is what a machine is that has an entry in windows-instances, and no Machine.
type instance struct {
	// entry is the key in windows-instances; empty is a machine of a Machine.
	entry string
	// unlisted reports whether the entry was removed, ends whether it was since the machine was last a node at rest.
	unlisted, ends bool
	// listed is when the entry was written last.
	listed time.Time
}

// writeEntries writes windows-instances.
func (w *world) writeEntries(t testing.TB) {
	t.Helper()
	var entries []string
	for _, m := range w.named(func(m *machine) bool { return m.entry != "" && !m.unlisted }) {
		entries = append(entries, fmt.Sprintf("%q: username=Administrator", m.entry))
	}
	for _, h := range w.allHosts() {
		if h.listed && !h.ofMachine {
			entries = append(entries, fmt.Sprintf("%q: username=Administrator", h.entry()))
		}
	}
	if w.second != "" {
		entries = append(entries, fmt.Sprintf("%q: username=Administrator", w.second))
	}
	w.put(t, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: %s}, data: {%s}}", gather.OperatorNamespace, configure.InstancesName, strings.Join(entries, ", ")))
}

// list writes the entry of a machine, or removes it. Where none is left, a person confirms that.
func (w *world) list(t testing.TB, m *machine, is bool) {
	t.Helper()
	w.mu.Lock()
	m.unlisted, m.ends = !is, true
	if is {
		m.listed = time.Now()
	}
	w.mu.Unlock()
	w.tell("(the entry of %s, listed: %t)", m.name, is)
	w.writeEntries(t)
	if !is {
		w.confirmLast(t, m.name)
	}
}

// confirmLast has a person confirm the removal of a node a while later, where no entry is left.
func (w *world) confirmLast(t testing.TB, name string) {
	t.Helper()
	if w.hasEntries() {
		return
	}
	pause(w.ctx, time.Duration(w.random.Int64N(int64(time.Hour))))
	w.edit(t, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, published.RemoveAnnotation))
}

// hasEntries reports whether windows-instances has any.
func (w *world) hasEntries() bool {
	return len(w.named(func(m *machine) bool { return m.entry != "" && !m.unlisted })) > 0 || slices.ContainsFunc(w.allHosts(), func(h *host) bool { return h.listed && !h.ofMachine })
}

// removeEntry removes the entry of a node: while its host is off, and with the operator killed or exchanged, or the power cut, in the middle. Sometimes
// the entry comes back.
func (w *world) removeEntry(t testing.TB, m *machine) {
	t.Helper()
	if w.random.IntN(4) == 0 {
		w.powerOff(t, m)
	}
	w.list(t, m, false)
	pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Minute))))
	switch w.random.IntN(5) { //nolint:mnd // as follows
	case 0:
		w.exchange()
	case 1:
		w.killAtWrite()
	case 2:
		if m.stop != nil {
			w.cutPower(t, m)
		}
	}
	if w.random.IntN(2) == 0 {
		pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Minute))))
		w.list(t, m, true)
	}
	if m.stop == nil && w.random.IntN(2) == 0 {
		pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Hour))))
		w.powerOn(t, m)
	}
}

// ofWindows is a file of each host that stays.
const ofWindows = `C:\Windows\explorer.exe`

var errCut = errors.New("the power was cut")

// cutPower ends everything on a host at one of its next changes, if one comes soon.
func (w *world) cutPower(t testing.TB, m *machine) {
	t.Helper()
	m.cutAfter.Store(1 + w.random.Int64N(60))
	for begun := time.Now(); m.cutAfter.Load() > 0 && time.Since(begun) < 15*time.Minute; {
		pause(w.ctx, time.Second)
	}
	m.cutAfter.Store(0)
	w.powerOff(t, m)
}

// watchHost slows a host down, cuts its power, and judges the start of a removal.
func (w *world) watchHost(m *machine, pace time.Duration) {
	m.Host.Faults.Before = func(simulation.Operation) error {
		if m.cutAfter.Load() > 0 && m.cutAfter.Add(-1) == 0 {
			m.cut()
			return errCut
		}
		return nil
	}
	m.Host.Faults.After = func(o simulation.Operation) error {
		w.tally.operated(m.name, o)
		if o.Verb != simulation.VerbStart {
			return nil
		}
		if o.Target == bundle.RemovalService {
			w.judgeRemoval(m.name)
		}
		if on := m.on.Load(); on != nil && pace > 0 {
			pause(*on, pace)
		}
		return nil
	}
}

// judgeRemoval is called when the service starts that removes everything from a host. Agents may be faster than the judge of the write.
func (w *world) judgeRemoval(name string) {
	pause(w.ctx, time.Millisecond)
	var n corev1.Node
	if w.Get(w.ctx, client.ObjectKey{Name: name}, &n) != nil {
		return // it was told before
	}
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	if !w.trail.node(n.UID).desired.Remove {
		w.observer.Violate(ruleRemoval, "%s begins, and was not told", name)
	}
}

// judgeToRemove is called when an operator has told a node to remove everything from its host. It has read the entries just before.
func (w *world) judgeToRemove(before corev1.Node) {
	w.mu.Lock()
	m := w.machines[before.Name]
	h := w.hosts[before.Name]
	wrong := m != nil && (m.entry == "" || !m.unlisted && time.Since(m.listed) > time.Second) || h != nil && h.listed && time.Since(h.since) > time.Second
	none := !w.hasEntries()
	w.mu.Unlock()
	if wrong {
		w.observer.Violate(ruleRemoval, "%s is told, and has its entry", before.Name)
	}
	if none && before.Annotations[published.RemoveAnnotation] == "" {
		w.observer.Violate(ruleRemoval, "%s is told, there is no entry at all, and no person has confirmed it", before.Name)
	}
	if before.Spec.Unschedulable && windowsnode.HasTaint(&before, windowsnode.RemovingTaint) {
		return
	}
	w.observer.Violate(ruleRemoval, "%s is told, and is not cordoned", before.Name)
}

// mayDelete reports whether an operator may delete the Node of a machine: its host has nothing any longer but what has removed that.
func (w *world) mayDelete(m *machine) bool {
	for name := range m.Host.Snapshot().Services {
		if name != bundle.RemovalService {
			return false
		}
	}
	return m.ends
}

func removalOf(n corev1.Node) published.RemovalProgress {
	r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	return r.Removal
}

// endOf returns why a machine whose entry was removed is not at rest, and forgets machines that have left. Without SSH, one whose entry came back too late
// does not join again: its entry is removed.
func (w *world) endOf(t testing.TB) string {
	t.Helper()
	for _, m := range w.named(func(m *machine) bool { return m.ends && runs(m) }) {
		var n corev1.Node
		err := w.Get(w.ctx, client.ObjectKey{Name: m.name}, &n)
		switch {
		case err == nil && m.unlisted:
			return fmt.Sprintf("%s has no entry, and is a node, whose removal is %+v: %s", m.name, removalOf(n), observer.DescribeNode(n))
		case err == nil:
			d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
			if d.Remove || n.Spec.Unschedulable && m.name != w.cordoned || windowsnode.HasTaint(&n, windowsnode.RemovingTaint) {
				return fmt.Sprintf("%s has its entry again, and is not a node as before, its removal is %+v: %s", m.name, removalOf(n), observer.DescribeNode(n))
			}
			m.ends = false
		case !apierrors.IsNotFound(err):
			return err.Error()
		case leftOn(m.Host.Snapshot()) != "":
			return "the host of " + m.name + " has " + leftOn(m.Host.Snapshot())
		default:
			w.tell("(%s has left)", m.name)
			m.stop()
			w.mu.Lock()
			delete(w.machines, m.name)
			w.mu.Unlock()
			w.writeEntries(t)
		}
	}
	return ""
}

// leftOn returns what is left on a host that was removed, but some files and what some folders have; empty for nothing. The next boot removes the program
// that has done it.
func leftOn(s simulation.Snapshot, but ...string) string {
	for name := range s.Services {
		return "the service " + name
	}
	var left []string
	for path, f := range s.Files {
		is := func(but string) bool { return path == but || bundle.Dir(path) == but }
		if path != ofWindows && !slices.ContainsFunc(but, is) && !strings.HasPrefix(path, bundle.RemovalProgram) && f.Kind == plan.FileRegular {
			left = append(left, path)
		}
	}
	slices.Sort(left)
	return strings.Join(left, ", ")
}
