package world

import (
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/existing"
)

const ruleAdoption = "a host of the existing operator is changed before its adoption"

// returnHost has the existing operator take a host back, with what one of its generations leaves, and a person remove what this
// operator has left in the cluster (docs/takeover.md); on the host it may stay. This operator comes again, and the node waits
// until a person has it adopted. That may be taken back, and something may happen in the middle of it.
func (w *world) returnHost(t testing.TB, h *host) {
	t.Helper()
	var n corev1.Node
	if w.Get(w.ctx, client.ObjectKey{Name: h.name}, &n) != nil || !w.worksAlone(n) {
		return
	}
	w.disturbHost(h)
	w.operator.stop()
	generations := existing.Generations()
	f, err := existing.ReadGeneration(generations[w.random.IntN(len(generations))].Name)
	must(t, err)
	w.tell("(%s is one of %s)", h.name, f.Version)
	h.returned = true
	f.Back = w.random.IntN(2) == 0
	must(t, f.FurnishHost(w.ctx, h.Machine, &n))
	f.Back = false
	patch, err := f.NodePatch(&n)
	must(t, err)
	w.try(t, "the annotations of the existing operator", func() error { return w.Patch(w.ctx, &n, patch) })
	w.forgetHost(t, n)
	w.live()
	starts := h.Starts()
	pause(w.ctx, time.Duration(w.random.Int64N(int64(2*time.Hour))))
	if w.random.IntN(2) == 0 { // one that is paused is looked at, and not changed
		w.edit(t, h.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":"true"}}}`)
		defer w.edit(t, h.name, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
		w.askAdoption(t, h, published.AdoptTrue)
		pause(w.ctx, time.Hour)
	}
	if has, err := f.HasAgent(w.ctx, h.Machine); !maps.Equal(starts, h.Starts()) || !has || err != nil {
		w.observer.Violate(ruleAdoption, "%s: %v, before %v", h.name, h.Starts(), starts)
	}
	w.askAdoption(t, h, published.AdoptTrue)
	w.interrupt(t, h)
	if w.random.IntN(3) == 0 {
		w.askAdoption(t, h, "false")
		w.interrupt(t, h)
		w.askAdoption(t, h, published.AdoptTrue)
	}
}

// forgetHost removes the record of a host.
func (w *world) forgetHost(t testing.TB, n corev1.Node) {
	t.Helper()
	if r, ok := w.recordOf(t, n); ok {
		w.try(t, "the record of a host", func() error { return w.records().ForgetRecord(w.ctx, r.ID()) })
	}
}

func (w *world) records() *hosts.Records {
	return &hosts.Records{Live: w, Client: w, Namespace: gather.OperatorNamespace}
}

// recordOf returns which host a Node is.
func (w *world) recordOf(t testing.TB, n corev1.Node) (r record.Record, ok bool) {
	t.Helper()
	w.try(t, "the records of hosts", func() error {
		all, err := w.records().LiveRecords(w.ctx)
		r, ok = all.OfNode(n.Name, n.UID)
		return err
	})
	return r, ok
}

// askAdoption writes what `wmco adopt` does, or withdraws that.
func (w *world) askAdoption(t testing.TB, h *host, value string) {
	t.Helper()
	w.disturbHost(h)
	w.edit(t, h.name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, published.AdoptAnnotation, value))
}

// TestAHostIsAdopted has a host become a node of the existing operator, and adopts it, three times. In the end it is removed.
func TestAHostIsAdopted(t *testing.T) {
	inWorld(t, options{nodes: 2, hosts: 1, seed: 1, patience: 3 * time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		for range 3 {
			w.rest(t)
			pause(w.ctx, time.Hour)
			starts := h.Starts()[bundle.AgentService]
			w.returnHost(t, h)
			w.rest(t)
			if h.Starts()[bundle.AgentService] < starts+2 {
				t.Errorf("its agent was started %d times, and %d times before", h.Starts()[bundle.AgentService], starts)
			}
			if len(w.observer.Violations()) > 0 {
				break
			}
		}
		w.listHost(t, h, false)
		w.rest(t)
		w.print(t)
	})
}
