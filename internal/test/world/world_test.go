package world

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/memoryssh"
	"wmco/internal/test/testenv/manifests"
	"wmco/internal/test/world/api"
)

// noticed is how long an operator may take to learn that a node is away.
const noticed = 45 * time.Second

// options are how long and how hard.
type options struct {
	nodes int
	// hosts is how many whole hosts join over SSH.
	hosts int
	// certificates is how long certificates are valid; zero is certificateLifetime.
	certificates time.Duration
	// rounds is how many storms there are, acts how many acts each has.
	rounds, acts int
	seed         uint64
	// patience is how long nodes may take to come to rest, and collection how long Secrets that no node needs may be left then.
	patience, collection time.Duration
	// slowest is how long the slowest host takes to start a service; zero is no time.
	slowest time.Duration
	// boundsUsage reports whether memory and goroutines at rest have limits.
	boundsUsage bool
	sabotages   sabotages
	// counts reports whether there is a tally.
	counts bool
	// steps are what happens; nil is what the seed says.
	steps []step
}

// world is a fleet with its cluster.
type world struct {
	client.Client
	options options
	//nolint:containedctx // the fleet lives as long as it
	ctx    context.Context
	cancel context.CancelFunc
	server *api.Server
	// certificates is how long certificates are valid; zero is a world without an authority.
	certificates time.Duration
	// admin is the configuration of an administrator's client.
	admin    *rest.Config
	observer *observer.Observer
	tally    *tally
	random   *rand.Rand
	example  cluster.Example

	// mu guards the counts, the story, the settings since the last rest, whether all is paused, and when a window opens; machines are changed with it.
	mu       sync.Mutex
	machines map[string]*machine
	hosts    map[string]*host
	// hostsMade is how many hosts were made, addressesMade how many further addresses; second is the second entry of a host.
	hostsMade, addressesMade int
	second                   string
	since                    []settings
	paused                   bool
	opens                    time.Time
	trail                    trail
	// made is how many nodes were made.
	made, boots int
	// begun is when the world began, story what happened since, lasted how long that was.
	begun  time.Time
	story  []string
	lasted time.Duration

	// releases are those of the operator, released which one works.
	releases   []release
	released   int
	registries registries
	// clusterIs is which release of Kubernetes nodes get.
	clusterIs atomic.Int32
	// network, names and loginKey are how operators reach hosts.
	network  memoryssh.Network
	names    *names
	loginKey ssh.Signer
	operator *operator
	// lives is how many operators were started, baseline what this one used when all nodes were first at rest.
	lives    int
	baseline *usage

	settings settings
	// passwords is how many there were, cordoned is the node that an administrator has cordoned.
	passwords int
	cordoned  string
	// foreign are the Secrets that a person has put in the place of parts of layers, by their UIDs.
	foreign map[types.UID]bool
	// earlier is what nodes were told of at the last rest.
	earlier map[string]string
	// changes and faults are how often each happened.
	changes, faults map[string]int
}

// root is the folder of this module.
var root = filepath.Join("..", "..", "..")

// inWorld runs a test in a world that has come to rest, in virtual time.
func inWorld(t *testing.T, o options, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		defer w.end(t)
		w.begin(t)
		test(t, w)
	})
}

// newWorld returns an API server without objects.
func newWorld(t testing.TB, o options) *world {
	t.Helper()
	definitions, err := manifests.Read(filepath.Join(root, "deploy", "crd"))
	must(t, err)
	kinds, err := api.WithDefinition(append(api.Kinds(), operatorCondition()), definitions[0].Unstructured)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	server, err := api.New(ctx, kinds)
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, machinev1beta1.Install(scheme))
	admin := server.Config(&user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}})
	c, err := client.New(admin, client.Options{Scheme: scheme})
	must(t, err)
	w := &world{
		Client: c, options: o, ctx: ctx, cancel: cancel, server: server, admin: admin, random: rand.New(rand.NewPCG(o.seed, 0)), //nolint:gosec // tests repeat
		observer: observer.New(time.Now, noticed), machines: map[string]*machine{}, hosts: map[string]*host{}, changes: map[string]int{}, faults: map[string]int{}, begun: time.Now(), names: knownNames(), foreign: map[types.UID]bool{},
		trail: trail{nodes: map[types.UID]*told{}, proved: map[bundle.Digest]map[string]bool{}, unwanted: map[string]time.Time{}},
	}
	if o.counts {
		w.tally = &tally{counts: newCounts()}
	}
	return w
}

// begin makes the cluster and its nodes, and returns when all of them are at rest.
func (w *world) begin(t testing.TB) {
	t.Helper()
	w.load(t, "golden/clusters/common", "golden/clusters/none/infrastructure.yaml", "golden/clusters/none/controllerconfig.yaml",
		"golden/clusters/none/machineconfigs.yaml", "deploy/rbac", "deploy/admission")
	w.installOLM(t)
	w.beginHosts(t)
	w.addLinux(t)
	var err error
	w.example, err = cluster.ReadExample(root)
	must(t, err)
	w.registries.slowest = w.options.slowest / 3
	w.addReleases(t)
	w.example.Template.Status.NodeInfo.KubeletVersion = kubernetes()[0].Version
	w.observer.HideSecrets("ZXhhbXBsZS11c2VyOmV4YW1wbGUtcGFzc3dvcmQ=") // of the example cluster
	must(t, w.observer.Watch(w.ctx, w.admin))
	// The nodes get their first bundle at once.
	w.settings = settings{maxUnavailable: w.options.nodes, maxParallel: 10_000, maxPods: 250, failureLimit: 1, from: "Any", fetchNodes: 1}
	w.write(t)
	w.putMirrorSet(t, 0)
	w.putCAs(t, func() bool { return false })
	w.addNodes(t, w.options.nodes)
	w.live()
	w.rest(t)
	w.settings = settings{maxUnavailable: 2, maxParallel: 2, canaries: 1, maxPods: 250, failureLimit: 1, from: "Any", fetchNodes: 1}
	w.write(t)
	w.forgetSettings()
	w.observer.KeepRules(w.settings.rules())
	go w.keepPods(w.ctx, max(2, w.options.nodes/2))
}

// load makes the objects of files below the root.
func (w *world) load(t testing.TB, names ...string) {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(root, filepath.FromSlash(name)))
	}
	list, err := manifests.Read(paths...)
	must(t, err)
	namespaces, others := manifests.Namespaces(list)
	for _, m := range append(namespaces, others...) {
		must(t, m.Create(w.ctx, w))
	}
}

// end ends everything that runs, and prints the story of a failure. Nodes end first: what they still write is read.
func (w *world) end(t *testing.T) {
	if t.Failed() || len(w.observer.Violations()) > 0 && os.Getenv("WMCO_WORLD_SHRINK") == "" {
		t.Logf("the story, seed %d:\n%s", w.options.seed, strings.Join(w.story, "\n"))
		if os.Getenv("WMCO_WORLD_TELL") != "" {
			t.Logf("the end of the operator's log:\n%s", strings.Join(w.operator.logged, ""))
		}
	}
	for _, m := range w.named(runs) {
		m.stop()
	}
	if w.operator != nil {
		w.operator.stop()
	}
	for _, h := range w.allHosts() {
		h.ssh.Stop()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	w.lasted = time.Since(w.begun)
	w.cancel()
	time.Sleep(w.certificates) // client-go ends what renews a certificate when that is due
	synctest.Wait()
	_ = w.server.Etcd.Close()
}

// tell adds to the story.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%12s  ", time.Since(w.begun).Round(time.Second)) + fmt.Sprintf(format, args...)
	w.story = append(w.story, line)
	if os.Getenv("WMCO_WORLD_TELL") != "" {
		fmt.Fprintln(os.Stderr, line)
	}
}

// run lets everything happen until a rule is broken.
func (w *world) run(t *testing.T) {
	if w.options.steps == nil {
		w.options.steps = w.plan()
	}
	w.cordoned = w.choose(1, isOn)[0].name
	w.edit(t, w.cordoned, `{"spec":{"unschedulable":true}}`)
	w.rest(t)
	w.observer.Protect(w.cordoned, func(n corev1.Node) string {
		return map[bool]string{true: "it has lost the administrator's cordon"}[!n.Spec.Unschedulable || observer.IsCordonedByUs(n)]
	})
	for _, s := range w.options.steps {
		if t.Failed() || len(w.observer.Violations()) > 0 {
			return
		}
		w.play(t, s)
	}
	w.calm(t)
	w.rest(t)
}

// print fails for each violation.
func (w *world) print(t *testing.T) {
	t.Helper()
	total := func(counts map[string]int) (all int, text string) {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			all += counts[name]
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
		return all, strings.Join(parts, ", ")
	}
	changes, which := total(w.changes)
	faulty, whichFaults := total(w.faults)
	events, _ := w.observer.Progress()
	w.mu.Lock()
	boots := w.boots
	w.mu.Unlock()
	if testing.Verbose() {
		t.Logf("seed %d, %s: %d nodes at the end of %d made; %d operators; %d boots; %d changes of Nodes observed; %d changes: %s; %d faults: %s",
			w.options.seed, w.lasted.Round(time.Minute), len(w.machines), w.made, w.lives, boots, events, changes, which, faulty, whichFaults)
	}
	for _, v := range w.observer.Violations() {
		t.Errorf("%s (seen %d times): %s", v.Rule, v.Count, v.Text)
	}
}

func (w *world) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// attempt tries until it works, or for longer than the API server is ever away.
func (w *world) attempt(do func() error) error {
	deadline := time.Now().Add(2 * longestOutage)
	for {
		err := do()
		if err == nil || time.Now().After(deadline) || w.ctx.Err() != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *world) try(t testing.TB, what string, do func() error) {
	t.Helper()
	if err := w.attempt(do); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

// TestWorld plays one seed after the other. In a run of all tests they are few.
func TestWorld(t *testing.T) {
	first := number(t, "WMCO_WORLD_SEED", 6)             //nolint:mnd // it has another release of the operator, and registries that fail
	for seed := range number(t, "WMCO_WORLD_SEEDS", 2) { //nolint:mnd // half a minute
		t.Run(fmt.Sprintf("seed %d", first+seed), func(t *testing.T) {
			o := options{
				nodes: number(t, "WMCO_WORLD_NODES", 5), hosts: number(t, "WMCO_WORLD_HOSTS", 0), rounds: number(t, "WMCO_WORLD_ROUNDS", 1), acts: 12, seed: uint64(first + seed), //nolint:gosec,mnd // not negative
				patience: 3 * time.Hour, collection: time.Hour, slowest: time.Minute,
			}
			w := lifeOf(t, o)
			w.print(t)
			if found := w.observer.Violations(); len(found) > 0 && os.Getenv("WMCO_WORLD_SHRINK") != "" {
				w = shrink(t, w.options, found[0].Rule)
				t.Logf("the same rule is broken by %d nodes and %d acts:\n%s", w.options.nodes, len(w.options.steps), strings.Join(w.story, "\n"))
			}
		})
	}
}

// TestStories plays what has broken a rule of a seed, and was corrected in the product.
func TestStories(t *testing.T) {
	for name, acts := range map[string][]string{
		"etcd is restored and nothing else changes: nodes refuse the earlier annotations, and the operator signs them again": {"etcd restored", actRest},
		"an entry is removed: the agent removes everything from its host":                                                    {"entry removed", actRest},
		"an annotation is forged before an operator of another release leads, without SSH: the node learns what to fetch":    {actRest, "another operator waits, and leads", "annotation forged", actRest},
	} {
		t.Run(name, func(t *testing.T) {
			o := options{nodes: 5, seed: 1, patience: 3 * time.Hour, collection: time.Hour, slowest: time.Minute}
			for i, a := range acts {
				o.steps = append(o.steps, step{name: a, seed: uint64(i), after: 30 * time.Second}) //nolint:gosec // not negative
			}
			lifeOf(t, o).print(t)
		})
	}
}

// lifeOf returns a world in which everything has happened.
func lifeOf(t *testing.T, o options) (w *world) {
	t.Helper()
	inWorld(t, o, func(t *testing.T, lived *world) {
		w = lived
		w.run(t)
	})
	return w
}

// shrink returns a world with fewer acts and nodes in which the same rule is broken: it leaves out halves, then quarters, and so on.
func shrink(t *testing.T, o options, rule string) *world {
	t.Helper()
	var last *world
	breaks := func(o options) bool {
		w := lifeOf(t, o)
		is := slices.ContainsFunc(w.observer.Violations(), func(v observer.Violation) bool { return v.Rule == rule })
		if is {
			last = w
		}
		return is
	}
	for size := len(o.steps); size > 0; size /= 2 {
		for from := 0; from < len(o.steps); {
			fewer := o
			fewer.steps = slices.Concat([]step{}, o.steps[:from], o.steps[min(len(o.steps), from+size):])
			if breaks(fewer) {
				o = fewer
			} else {
				from += size
			}
		}
	}
	for fewer := o; o.nodes > 2 && breaks(fewer); o = fewer {
		fewer.nodes = o.nodes - 1
	}
	if last == nil {
		last = lifeOf(t, o)
	}
	return last
}
