package world

import (
	"maps"
	"strings"
	"testing"
	"time"

	"wmco/controller/gather"
	"wmco/controller/rollout/steps"
)

// TestASettingThatKubeletsRefuseStopsAtTheCanary: the canary is rolled back, the other hosts do not get the setting, and an Event
// names what has stopped the rollout, and what to correct. A correct setting reaches all.
func TestASettingThatKubeletsRefuseStopsAtTheCanary(t *testing.T) {
	inWorld(t, options{nodes: 3, seed: 1, patience: time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		before := w.starts(t)
		w.settings.maxPods = failsEverywhere
		w.write(t)
		pause(w.ctx, 90*time.Minute)
		after := w.starts(t)
		maps.DeleteFunc(after, func(name string, starts map[string]int) bool { return maps.Equal(starts, before[name]) })
		if len(after) != 1 {
			t.Errorf("services of %d hosts were started: %v", len(after), after)
		}
		notes := strings.Join(w.notes(t, steps.EventRolloutStopped, ""), "; ")
		for _, text := range []string{"stopped: canary ", "rolled back", `file C:\k\kubelet.conf`, "ConfigMap/" + gather.OperatorNamespace + "/windows-machine-config", "fix: "} {
			if !strings.Contains(notes, text) {
				t.Errorf("the events %q lack %q", notes, text)
			}
		}
		w.settings.maxPods = 90
		w.write(t)
		w.rest(t)
		w.print(t)
	})
}

// TestOnlyRegistriesGiveExecutables where executables.from is Registry: a host whose registries are off keeps what it has, and no
// operator logs in to it.
func TestOnlyRegistriesGiveExecutables(t *testing.T) {
	o := options{nodes: 2, hosts: 1, seed: 1, patience: 3 * time.Hour, collection: time.Hour}
	inWorld(t, o, func(t *testing.T, w *world) {
		h := w.addHost(t)
		w.listHost(t, h, true)
		w.rest(t)
		pause(w.ctx, time.Hour)
		w.settings.from = "Registry"
		w.write(t)
		w.rest(t)
		w.registries.setTrouble(troubleOff, false)
		h.dials.Store(0)
		w.exchange()
		pause(w.ctx, 3*time.Hour)
		if n := h.dials.Load(); n > 0 {
			t.Errorf("%d attempts to reach it", n)
		}
		w.calm(t)
		w.rest(t)
		w.print(t)
	})
}
