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
	"testing"
	"testing/synctest"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/testenv/manifests"
	"wmco/internal/test/world/api"
	"wmco/payload"
)

// noticed is how long an operator may take to learn that a node is away.
const noticed = 45 * time.Second

// options are how long and how hard.
type options struct {
	nodes int
	// rounds is how many storms there are, acts how many acts each has.
	rounds, acts int
	seed         uint64
	// patience is how long nodes may take to come to rest, and collection how long Secrets that no node needs may be left then.
	patience, collection time.Duration
	// boundsUsage reports whether memory and goroutines at rest have limits.
	boundsUsage bool
	sabotages   sabotages
}

// world is a fleet with its cluster.
type world struct {
	client.Client
	options options
	//nolint:containedctx // the fleet lives as long as it
	ctx    context.Context
	cancel context.CancelFunc
	server *api.Server
	// admin is the configuration of an administrator's client.
	admin    *rest.Config
	observer *observer.Observer
	random   *rand.Rand
	example  cluster.Example

	// mu guards the counts and the story.
	mu       sync.Mutex
	machines map[string]*machine
	// made is how many nodes were made.
	made, boots int
	// begun is when the world began, story what happened since.
	begun time.Time
	story []string

	operator *operator
	// lives is how many operators were started, baseline what this one used when all nodes were first at rest.
	lives    int
	baseline *usage

	settings settings
	// mayKill is false while operators have to live.
	mayKill bool
	// passwords is how many there were, cordoned is the node that an administrator has cordoned.
	passwords int
	cordoned  string
	// deck are the next acts, dealt is how often all were shuffled.
	deck  []act
	dealt int
	// badDays are the next faults of bad days; each comes before any comes again.
	badDays []faults.Fault
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
	kinds, err := api.WithDefinition(api.Kinds(), definitions[0].Unstructured)
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
	return &world{
		Client: c, options: o, ctx: ctx, cancel: cancel, server: server, admin: admin, random: rand.New(rand.NewPCG(o.seed, 0)), //nolint:gosec // tests repeat
		observer: observer.New(time.Now, noticed), machines: map[string]*machine{}, changes: map[string]int{}, faults: map[string]int{}, begun: time.Now(),
	}
}

// begin makes the cluster and its nodes, and returns when all of them are at rest.
func (w *world) begin(t testing.TB) {
	t.Helper()
	w.load(t, "golden/clusters/common", "golden/clusters/none/infrastructure.yaml", "golden/clusters/none/controllerconfig.yaml",
		"golden/clusters/none/machineconfigs.yaml", "deploy/rbac", "deploy/admission")
	var err error
	executables, err = readPayload()
	must(t, err)
	w.example, err = cluster.ReadExample(root)
	must(t, err)
	kubelet, _ := executables.set.Find(payload.For(payload.Kubelet, payload.TestedKubernetes).Name)
	w.example.Template.Status.NodeInfo.KubeletVersion = kubelet.Version
	w.observer.HideSecrets("ZXhhbXBsZS11c2VyOmV4YW1wbGUtcGFzc3dvcmQ=") // of the example cluster
	must(t, w.observer.Watch(w.ctx, w.admin))
	// The nodes get their first bundle at once.
	w.settings = settings{maxUnavailable: w.options.nodes, maxParallel: 10_000, maxPods: 250}
	w.write(t)
	w.putMirrorSet(t, 0)
	w.putCAs(t, func() bool { return false })
	w.addNodes(t, w.options.nodes)
	w.live()
	w.rest(t)
	w.settings = settings{maxUnavailable: 2, maxParallel: 20, canaries: 1, maxPods: 250}
	w.write(t)
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
	if t.Failed() {
		t.Logf("the story, seed %d:\n%s", w.options.seed, strings.Join(w.story, "\n"))
	}
	for _, m := range w.named(isOn) {
		m.stop()
	}
	if w.operator != nil {
		w.operator.stop()
	}
	w.cancel()
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

// run has storms, and a rest after each. After every second one, nodes are off for days.
func (w *world) run(t *testing.T) {
	w.cordoned = w.choose(1, isOn)[0].name
	w.edit(t, w.cordoned, `{"spec":{"unschedulable":true}}`)
	for round := 1; round <= w.options.rounds && !t.Failed(); round++ {
		w.storm(t, round)
		w.calm(t)
		w.rest(t)
		if round%2 == 0 {
			w.days(t)
		}
		if len(w.observer.Violations()) > 0 {
			break
		}
	}
	w.print(t)
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
			w.options.seed, time.Since(w.begun).Round(time.Minute), len(w.machines), w.made, w.lives, boots, events, changes, which, faulty, whichFaults)
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
	first := number(t, "WMCO_WORLD_SEED", 1)
	for seed := range number(t, "WMCO_WORLD_SEEDS", 2) { //nolint:mnd // half a minute
		t.Run(fmt.Sprintf("seed %d", first+seed), func(t *testing.T) {
			inWorld(t, options{
				nodes: number(t, "WMCO_WORLD_NODES", 5), rounds: number(t, "WMCO_WORLD_ROUNDS", 2), acts: 12, seed: uint64(first + seed), //nolint:gosec,mnd // not negative
				patience: 3 * time.Hour, collection: time.Hour,
			}, func(t *testing.T, w *world) { w.run(t) })
		})
	}
}
