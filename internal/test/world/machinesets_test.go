package world

import (
	"fmt"
	"maps"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/internal/hostsim/simulation"
)

// ruleNotReplaced is about Machines whose hosts refuse the login.
const ruleNotReplaced = "a Machine whose host refuses the login stays, or is counted after the next one has joined"

// refusesFor is how long the host of a Machine refuses the login until the Machine is replaced (docs/joining.md).
const refusesFor = 30 * time.Minute

// inARow is how many Machines of a MachineSet are replaced before one has joined.
const inARow = 2

// replaceMachines has a new MachineSet. The hosts of its first Machines, at most one more than inARow, refuse the login, as with an image that has another key: these are replaced, also
// by operators that are killed near the deletion. One too many in a row stays, until a person deletes it and its count. The next one joins, and ends the count.
func (w *world) replaceMachines(t *testing.T, refusing int) {
	set := fmt.Sprintf("set-%d", w.hostsMade)
	for n := range refusing {
		h := w.addMachineOf(t, set)
		must(t, h.Edit(w.ctx, func(s *simulation.State) {
			maps.DeleteFunc(s.Settings, func(_ string, x plan.Setting) bool { return x.Kind == bundle.KindAuthorizedKey })
		}))
		h.refuses = n < inARow
		w.listMachineOf(t, h, set)
		if !h.refuses {
			pause(w.ctx, 2*time.Hour)
			w.try(t, "the end of a count", func() error {
				return w.Patch(w.ctx, countsOfMachines(), mergePatch(fmt.Sprintf(`{"data":{%q:null}}`, set)))
			})
			w.deleteMachine(t, h)
			continue
		}
		if w.random.IntN(2) == 0 {
			pause(w.ctx, refusesFor-time.Minute)
			w.killAtWrite()
		}
		w.await(ruleNotReplaced, "the end of Machine "+h.name, func() bool { return !w.isMachineThere(t, h) })
		w.endHost(t, h)
	}
	h := w.addMachineOf(t, set)
	w.listMachineOf(t, h, set)
	w.interrupt(t, h)
	w.await(ruleNotReplaced, "the end of the count of "+set, func() bool {
		counts := countsOfMachines()
		err := w.Get(w.ctx, client.ObjectKeyFromObject(counts), counts)
		return client.IgnoreNotFound(err) == nil && counts.Data[set] == ""
	})
}

// countsOfMachines is the ConfigMap in which operators count the Machines that they replace.
func countsOfMachines() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-replacements"}}
}

// addMachineOf makes a host that gets a Machine of a MachineSet.
func (w *world) addMachineOf(t testing.TB, set string) *host {
	t.Helper()
	w.hostsMade++
	x := &host{name: fmt.Sprintf("winhost-%d", w.hostsMade), address: w.freeAddress(), ofMachine: true}
	w.install(t, x)
	w.mu.Lock()
	w.hosts[x.name] = x
	w.mu.Unlock()
	w.tell("(%s is made by %s)", x.name, set)
	return x
}

// listMachineOf makes the Machine of a host, which a MachineSet owns.
func (w *world) listMachineOf(t testing.TB, x *host, set string) {
	t.Helper()
	w.listHost(t, x, true)
	w.try(t, "the owner of a Machine", func() error {
		return w.Patch(w.ctx, machineOf(x), mergePatch(fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":"MachineSet","name":%q,"uid":%q,"controller":true}]}}`, machinev1beta1.GroupVersion, set, "uid-"+set)))
	})
}

func machineOf(x *host) *machinev1beta1.Machine {
	return &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: x.name}}
}

func (w *world) isMachineThere(t testing.TB, x *host) (is bool) {
	t.Helper()
	w.try(t, "a look at a Machine", func() error {
		err := w.Get(w.ctx, client.ObjectKeyFromObject(machineOf(x)), &machinev1beta1.Machine{})
		is = err == nil
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return is
}

// await waits for something that an operator does, and notes that a rule is broken if it does not come.
func (w *world) await(rule, what string, done func() bool) {
	for begun := time.Now(); !done(); pause(w.ctx, time.Minute) {
		if time.Since(begun) > w.options.patience {
			w.observer.Violate(rule, "%s: not after %s", what, w.options.patience)
			return
		}
		w.revive()
	}
}

// TestMachinesAreReplaced plays Machines whose hosts refuse the login, with operators that are killed around the deletion.
func TestMachinesAreReplaced(t *testing.T) {
	o := options{nodes: 2, hosts: 2, certificates: 6 * time.Hour, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		for refusing := range inARow + 1 {
			w.replaceMachines(t, refusing+1)
		}
		w.rest(t)
		w.print(t)
	})
}
