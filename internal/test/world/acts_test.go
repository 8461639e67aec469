package world

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/faults"
)

// act is something that a storm does. Weight is how often, beside the others; each is done once before any is done again.
type act struct {
	name   string
	weight int
	fault  bool
	// do reports whether it was possible.
	do func(*testing.T) bool
}

// step is an act with what it draws from, and the time after it. Nth is how often it was done before.
type step struct {
	name  string
	seed  uint64
	nth   int
	after time.Duration
}

// The acts that are not dealt: a storm ends, and hosts are off for days.
const (
	actKilled   = "operator killed"
	actRest     = "rest"
	actDays     = "hosts off for days"
	actBadDay   = "bad day of the API server or the clock"
	operatorOff = 3 * time.Hour
)

// always is an act that is always possible.
func always(do func(*testing.T)) func(*testing.T) bool {
	return func(t *testing.T) bool { do(t); return true }
}

func (w *world) acts() []act {
	hosts := func(weight int) int { return min(w.options.hosts, 1) * weight }
	all := []act{
		{"mirror set", 5, false, always(w.changeMirrors)},
		{"pull secret", 2, false, always(w.changePullSecret)},
		{"proxy", 3, false, always(w.changeProxy)},
		{"mode of mirrors", 2, false, always(w.changeMode)},
		{"maintenance window", 1, false, always(w.openWindow)},
		{"trusted CAs", 1, false, always(w.changeCAs)},
		{"settings of kubelets", 2, false, always(w.changeKubelets)},
		{"a setting that kubelets refuse", 2, true, always(w.breakKubelets)},
		{"limits of the rollout", 3, false, always(w.changeLimits)},
		{"signing key", 1, false, always(w.changeSigningKey)},
		{"boots that Windows features need", 3, false, w.toEach(3, w.isOrdinary, w.loseFeature)},
		{"boot by annotation", 2, false, w.toEach(2, w.isOrdinary, w.askForBoot)},
		{"Windows waits for a boot", 2, false, w.toEach(1, w.isOrdinary, w.askTwice)},
		{"drift", 3, false, w.toEach(3, isOn, w.drift)},
		{"nodes added", 2, false, always(func(t *testing.T) { w.addNodes(t, 1+w.random.IntN(1+w.options.nodes/20)) })},
		{"nodes removed", 2, false, w.removeNodes},
		{"entry removed", 2, false, w.toEach(1, func(m *machine) bool { return m.entry != "" && w.isOrdinary(m) }, w.removeEntry)},
		{"budget that allows no eviction", 2, true, always(w.denyEvictions)},
		{"pause and resume", 1, false, always(w.pauseNodes)},
		{"all paused and resumed", 1, false, always(w.pauseAll)},
		{"mirror sets deleted", 1, false, always(w.deleteMirrors)},
		{"annotation restored", 2, true, w.toEach(2, w.isOrdinary, w.restoreAnnotation)},
		{"annotation forged", 1, true, w.toEach(1, w.isOrdinary, w.forge)},
		{"a newer operator has written", 1, true, w.toEach(1, w.isOrdinary, w.writeNewer)},
		{"a stranger among the nodes", 1, true, always(w.addStranger)},
		{"a Secret is replaced", 1, true, always(w.replaceSecret)},
		{"host with a full disk", 2, true, w.breakSome(1, func(s *simulation.Script) { s.Full = []string{`C:`} })},
		{"hosts that deny writes", 2, true, w.breakSome(2, func(s *simulation.Script) { s.Denied = []string{`C:\k`} })},
		{"a host that does not come back from a boot", 1, true, always(w.leaveInBoot)},
		{actKilled, 4, true, always(func(*testing.T) { w.operator.kill(); w.live() })},
		{"operators killed at writes", 2, true, always(w.killAtWrites)},
		{"operator away", 2, true, always(w.leaveAlone)},
		{"another operator waits, and leads", 1, true, always(w.changeLeader)},
		{"the Lease is taken", 1, true, always(w.takeLease)},
		{"two operators lead", 1, true, always(w.leadTwice)},
		{"another release of the operator", 3, false, always(w.exchangeOperator)},
		{"registries fail", 2, true, always(w.failRegistries)},
		{"upgrade of the cluster", 1, false, w.upgradeCluster},
		{"sources of executables", 1, false, always(w.changeSources)},
		{"API server away", 1, true, always(w.stopAPIServer)},
		{"etcd restored", 1, true, always(w.restoreEtcd)},
		{actBadDay, 3, true, nil},
		{"hosts off", 3, true, w.toEach(2, w.isOrdinary, w.powerOff)},
		{"hosts on", 3, false, w.powerAllOn},
		{"instance joins", hosts(4), false, w.joinHost},
		{"joined instance's entry removed", hosts(3), false, w.toEachHost(isEntry, w.removeHost)},
		{"host reinstalled at the same address", hosts(1), false, w.toEachHost(isEntry, w.reinstallHost)},
		{"key to log in with", hosts(2), false, always(w.changeLoginKey)},
		{"SSH breaks", hosts(2), true, w.toEachHost(isListed, w.breakSSH)},
		{"joined host loses its power", hosts(2), true, w.toEachHost(isListed, w.cutHost)},
		{"kubelet certificate expires", hosts(1), true, w.toEachHost(isEntry, w.expireCertificate)},
		{"a node lies", 3, true, w.toEach(1, w.isOrdinary, w.lieOf)},
		{"an impostor has an entry", hosts(3), true, w.joinImpostor},
		{"an impostor has the entry of a host that is off", hosts(1), true, w.toEachHost(isCalm, w.replaceHost)},
		{"a host has a second entry", hosts(1), true, w.toEachHost(isAddressed, w.secondEntry)},
		{"the entry of a host is replaced", hosts(1), false, w.toEachHost(isAddressed, w.moveEntry)},
		{"the name of a host has another address", hosts(1), true, w.toEachHost(isNamed, w.moveName)},
		{"certificates are asked for that a host must not get", hosts(2), true, w.toEachHost(isEntry, w.forgeRequests)},
		{"the clock of a host is wrong", hosts(1), true, w.toEachHost(isCalm, w.setClock)},
		{"the existing operator has taken a host back", hosts(3), false, w.toEachHost(isSettled, w.returnHost)},
		{"hosts of Machines refuse the login", hosts(2), true, always(func(t *testing.T) { w.replaceMachines(t, 1+w.random.IntN(inARow+1)) })},
		{"Machine of a joined host deleted", hosts(2), false, w.toEachHost(isMachine, w.deleteMachine)},
		{actDays, 0, true, always(w.days)},
		{actRest, 0, false, always(func(t *testing.T) { w.calm(t); w.rest(t) })},
	}
	only := regexp.MustCompile(os.Getenv("WMCO_WORLD_ACTS"))
	for i, a := range all {
		if !only.MatchString(a.name) {
			all[i].weight = 0
		}
	}
	return all
}

// toEach does something to some machines for which this holds, most at most.
func (w *world) toEach(most int, is func(*machine) bool, do func(testing.TB, *machine)) func(*testing.T) bool {
	return func(t *testing.T) bool {
		list := w.choose(1+w.random.IntN(most), is)
		for _, m := range list {
			do(t, m)
		}
		return len(list) > 0
	}
}

// isOrdinary reports whether a machine is on, and its node is not cordoned.
func (w *world) isOrdinary(m *machine) bool { return isOn(m) && m.name != w.cordoned }

// choose returns some machines for which this holds.
func (w *world) choose(count int, is func(*machine) bool) []*machine {
	list := w.named(is)
	w.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(count, len(list))]
}

// plan returns what happens, by the seed: storms, each with a rest after it, and after every second one hosts are off for days. All acts come in a
// random order, then all again as often as their weight says, and so on. In every third storm no operator is killed: it has to live long too.
func (w *world) plan() []step {
	var steps []step
	var deck []act
	random, dealt, count := rand.New(rand.NewPCG(w.options.seed, 1)), 0, map[string]int{} //nolint:gosec // tests repeat
	add := func(name string, after time.Duration) {
		steps = append(steps, step{name, random.Uint64(), count[name], after})
		count[name]++
	}
	for round := 1; round <= w.options.rounds; round++ {
		for left := w.options.acts; left > 0; {
			if len(deck) == 0 {
				for _, a := range w.acts() {
					for range max(min(a.weight, 1), a.weight*min(dealt, 1)) {
						deck = append(deck, a)
					}
				}
				random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
				dealt++
			}
			a := deck[0]
			deck = deck[1:]
			if a.name == actKilled && round%3 == 0 {
				continue
			}
			add(a.name, []time.Duration{time.Second, 20 * time.Second, 5 * time.Minute, time.Hour}[random.IntN(4)]+time.Duration(random.Int64N(int64(time.Minute)))) //nolint:mnd // of the four
			left--
		}
		add(actRest, 0)
		if round%2 == 0 {
			add(actDays, 0)
		}
	}
	return steps
}

// play does an act. What it draws depends on no other one.
func (w *world) play(t *testing.T, s step) {
	w.revive()
	w.checkLogins()
	w.random = rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // tests repeat
	all := w.acts()
	a := all[slices.IndexFunc(all, func(a act) bool { return a.name == s.name })]
	if s.name == actBadDay {
		fault := faults.All()[(int(w.options.seed)+s.nth)%len(faults.All())] //nolint:gosec // small
		a.name, a.do = "("+string(fault)+")", always(func(*testing.T) { w.badDay(fault) })
	}
	w.tell("%s", a.name)
	if a.do(t) {
		counts := w.changes
		if a.fault {
			counts = w.faults
		}
		counts[a.name]++
	}
	w.checkExecutables()
	pause(w.ctx, s.after)
}
