package soak

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/testenv/controlplane"
	"wmco/payload"
)

// noticed is how long an operator may take to learn that a node is away.
const noticed = 45 * time.Second

// options are how long and how hard.
type options struct {
	nodes int
	// lasts is how long all rounds last together, storm how long each storm does, pause the time between two of its events, at most twice.
	lasts, storm, pause time.Duration
	seed                uint64
	// patience is how long nodes may take to come to rest, and collection how long Secrets that no node needs may be left then.
	patience, collection time.Duration
	// boundsUsage reports whether memory and goroutines at rest have limits: in storms that are long enough, and where they leak.
	boundsUsage bool
	sabotages   sabotages
}

// soak is a fleet in a storm.
type soak struct {
	client.Client
	options options
	//nolint:containedctx // the fleet lives as long as it
	ctx      context.Context
	observer *observer.Observer
	random   *rand.Rand
	example  cluster.Example

	// mu guards machines while they are added, and the counts.
	mu       sync.Mutex
	machines map[string]*machine
	// made is how many nodes were made.
	made, boots int

	operator *operator
	// lives is how many operators were started, baseline what this one used when all nodes were first at rest.
	lives    int
	baseline *usage
	logMutex sync.Mutex
	logged   []string

	settings settings
	// mayKill is false while operators have to live.
	mayKill bool
	// passwords is how many there were, cordoned is the node that an administrator has cordoned.
	passwords int
	cordoned  string
	// deck are the next events, dealt is how often all were shuffled.
	deck  []event
	dealt int
	// badDays are the next faults of bad days; each comes before any comes again.
	badDays []faults.Fault
	// changes and faults are how often each happened, usages what the operator used at rest.
	changes, faults map[string]int
	usages          []usage
	waited          time.Duration
}

// shortSeed is that of the short storms: only their timing differs from run to run.
const shortSeed = 32

// TestSoak is short, with few nodes, unless WMCO_SOAK_MINUTES is set: then each run makes other choices. They are those of WMCO_SOAK_SEED, which is
// printed.
func TestSoak(t *testing.T) {
	o := options{nodes: number(t, "WMCO_SOAK_NODES", 10), seed: uint64(number(t, "WMCO_SOAK_SEED", shortSeed)), patience: controlplane.Patience + 2*time.Minute, lasts: 30 * time.Second, storm: 15 * time.Second, pause: 200 * time.Millisecond, collection: 3 * time.Minute} //nolint:gosec // not negative
	if minutes := number(t, "WMCO_SOAK_MINUTES", 0); minutes > 0 {
		o.boundsUsage = true
		o.lasts, o.storm, o.pause, o.patience = time.Duration(minutes)*time.Minute, 90*time.Second, time.Second, 15*time.Minute
		o.nodes, o.seed = number(t, "WMCO_SOAK_NODES", 200), uint64(number(t, "WMCO_SOAK_SEED", int(time.Now().Unix()))) //nolint:gosec // not negative
	}
	t.Logf("%d nodes, %s, seed %d", o.nodes, o.lasts, o.seed)
	s := newSoak(t, o)
	begun := time.Now()
	s.run(t)
	s.print(t, time.Since(begun))
}

// newSoak returns when all nodes have their wanted bundles.
func newSoak(t testing.TB, o options) *soak {
	t.Helper()
	server.LoadExample(t, "../../..", "deploy/rbac", "deploy/admission", "deploy/crd")
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, machinev1beta1.Install(scheme))
	config := *server.Config(t)
	config.QPS = -1
	c, err := client.New(&config, client.Options{Scheme: scheme})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &soak{
		Client: c, options: o, ctx: ctx, observer: observer.New(time.Now, noticed), random: rand.New(rand.NewPCG(o.seed, 0)), //nolint:gosec // tests repeat
		machines: map[string]*machine{}, changes: map[string]int{}, faults: map[string]int{},
	}
	executables, err = readPayload()
	must(t, err)
	s.example, err = cluster.ReadExample("../../..")
	must(t, err)
	kubelet, _ := executables.set.Find(payload.For(payload.Kubelet, payload.TestedKubernetes).Name)
	s.example.Template.Status.NodeInfo.KubeletVersion = kubelet.Version
	t.Cleanup(func() { s.end(t, cancel) })
	s.observer.HideSecrets("ZXhhbXBsZS11c2VyOmV4YW1wbGUtcGFzc3dvcmQ=") // of the example cluster
	must(t, s.observer.Watch(ctx, &config))
	// The nodes get their first bundle at once.
	s.settings = settings{maxUnavailable: o.nodes, maxParallel: 10_000, maxPods: 250}
	s.write(t)
	s.putMirrorSet(t, 0)
	s.putCAs(t, func() bool { return false })
	s.addNodes(t, o.nodes)
	s.live(t)
	s.rest(t)
	s.settings = settings{maxUnavailable: 2, maxParallel: 20, canaries: 1, maxPods: 250}
	s.write(t)
	s.observer.KeepRules(s.settings.rules())
	go s.keepPods(ctx, o.nodes/4)
	return s
}

// end removes what was made.
func (s *soak) end(t testing.TB, cancel context.CancelFunc) {
	if s.operator != nil {
		s.operator.kill()
	}
	for _, m := range s.named(isOn) {
		m.stop()
	}
	cancel()
	ctx := context.Background()
	zero := client.GracePeriodSeconds(0)
	for _, err := range []error{
		s.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), zero),
		s.DeleteAllOf(ctx, &corev1.Node{}, client.MatchingLabels{corev1.LabelOSStable: "windows"}),
		s.DeleteAllOf(ctx, &machinev1beta1.Machine{}, client.InNamespace(machineNamespace)),
		s.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, o := range s.written() {
		if err := client.IgnoreNotFound(s.Delete(ctx, o)); err != nil {
			t.Error(err)
		}
	}
}

// run has storms, and a rest after each. After every second one, nodes are off for days.
func (s *soak) run(t *testing.T) {
	administrated := s.choose(1, isOn)
	s.cordoned = administrated[0].name
	s.edit(t, s.cordoned, `{"spec":{"unschedulable":true}}`)
	seen := 0
	for round, begun := 1, time.Now(); time.Since(begun) < s.options.lasts && !t.Failed(); round++ {
		s.storm(t, round, s.options.storm)
		s.calm(t)
		s.rest(t)
		if round%2 == 0 {
			s.days(t)
		}
		u := s.usages[len(s.usages)-1]
		t.Logf("round %d: %d nodes at rest after %s; life %d of the operator: %d goroutines, %d MiB; %d violations", round, len(s.machines), s.waited.Round(time.Second), s.lives, u.goroutines, u.heap>>20, len(s.observer.Violations()))
		for _, v := range s.observer.Violations()[seen:] {
			t.Logf("violation: %s: %s", v.Rule, v.Text)
			seen++
		}
	}
	// The last life has changes of each kind, and must not grow.
	for range 3 {
		s.change(t, "mirror set", always(s.changeMirrors))
		s.change(t, "proxy", always(s.changeProxy))
		s.rest(t)
	}
}

// print prints what there was, and fails for each violation.
func (s *soak) print(t *testing.T, took time.Duration) {
	t.Helper()
	total := func(counts map[string]int) (all int, text string) {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			all += counts[name]
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
		return all, strings.Join(parts, ", ")
	}
	never := s.countUnseen()
	changes, which := total(s.changes)
	faulty, whichFaults := total(s.faults)
	found := s.observer.Violations()
	events, _ := s.observer.Progress()
	last := s.usages[len(s.usages)-1]
	s.mu.Lock()
	boots := s.boots
	s.mu.Unlock()
	t.Logf("seed %d, %s: %d nodes at the end of %d made; %d operators; %d boots; %d changes of Nodes observed; the last operator had %d goroutines and %d MiB",
		s.options.seed, took.Round(time.Second), len(s.machines), s.made, s.lives, boots, events, last.goroutines, last.heap>>20)
	t.Logf("%d changes: %s", changes, which)
	t.Logf("%d faults: %s", faulty, whichFaults)
	if len(never) > 0 && s.options.lasts >= wholeStorm {
		t.Errorf("never happened: %s", strings.Join(never, ", "))
	}
	t.Logf("%d violations", len(found))
	for _, v := range found {
		t.Errorf("%s (seen %d times): %s", v.Rule, v.Count, v.Text)
	}
	if t.Failed() {
		s.logMutex.Lock()
		defer s.logMutex.Unlock()
		t.Logf("the operator logged last:\n%s", strings.Join(s.logged, "\n"))
	}
}

// wholeStorm is after how long everything has happened.
const wholeStorm = 6 * time.Minute

// countUnseen gives what never happened a count of zero, and returns its names.
func (s *soak) countUnseen() []string {
	var never []string
	see := func(counts map[string]int, name string) {
		if counts[name] == 0 {
			counts[name] = 0
			never = append(never, name)
		}
	}
	for _, e := range s.events() {
		if e.fault {
			see(s.faults, e.name)
		} else {
			see(s.changes, e.name)
		}
	}
	for _, f := range faults.All() {
		s.faults[badDayOf(f)] += 0
		if !slices.Contains(s.badDays, f) { // it is not still to come: a slow computer has fewer bad days than there are faults
			see(s.faults, badDayOf(f))
		}
	}
	see(s.faults, faultDaysOff)
	return never
}

func (s *soak) count(n *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*n++
}

// attempt tries until it works, or for two minutes: the API server may be away.
func (s *soak) attempt(do func() error) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := do()
		if err == nil || time.Now().After(deadline) || s.ctx.Err() != nil {
			return err
		}
		pause(s.ctx, 200*time.Millisecond)
	}
}

func (s *soak) try(t testing.TB, what string, do func() error) {
	t.Helper()
	if err := s.attempt(do); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
