package fleettest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// rules are what a rollout must keep at every moment.
type rules struct {
	// unavailable is how many nodes may be, a number or a percentage, and parallel how many may restart services.
	unavailable intstr.IntOrString
	parallel    int
	// operators is how many believe that they lead. Two may cordon one node each where one is allowed, until one withdraws: no pod is
	// evicted meanwhile.
	operators int
}

// observer watches Nodes and pods, every event of them, and checks what must hold after each. It asks no operator: what it knows is what
// anybody can see in the cluster.
//
//	Nodes --watch--> unavailable because of a rollout, restarting, cordons and annotations of administrators
//	pods  --watch--> evicted only while the node is held
type observer struct {
	mu    sync.Mutex
	nodes map[string]corev1.Node
	// events are those of Nodes, moves those after which a node is in another place.
	events, moves int
	rules         *rules
	// peak is the largest limit of unavailable nodes since begin: their number changes while nodes come and go.
	peak int
	// excused are nodes that the test itself keeps from being Ready.
	excused map[string]bool
	// kept says for a node what an administrator has done to it: it returns what is wrong.
	kept map[string]func(corev1.Node) string
	// restarting is how many nodes restarted services at once, away how many the rollout had cordoned.
	restarting, away int
	// told are the bundles that each node was told of.
	told map[string]map[bundle.Digest]bool
	// held is between which resource versions each node was held; the last span may be open.
	held map[string][]span
	// evicted are the pods that were told to end, by their first resource version that says so.
	evicted map[string]eviction
	broken  []string
}

// span is a time between two resource versions; to is 0 while it lasts.
type span struct{ from, to uint64 }

type eviction struct {
	node string
	at   uint64
}

// watch observes until the end of the test.
func (f *fleet) watch(t *testing.T) *observer {
	t.Helper()
	clients, err := kubernetes.NewForConfig(f.plane.Config)
	must(t, err)
	o := &observer{nodes: map[string]corev1.Node{}, excused: map[string]bool{}, kept: map[string]func(corev1.Node) string{}, held: map[string][]span{}, evicted: map[string]eviction{}}
	o.begin()
	windows := func(l *metav1.ListOptions) { l.LabelSelector = corev1.LabelOSStable + "=windows" }
	list, err := clients.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: corev1.LabelOSStable + "=windows"})
	must(t, err)
	for _, n := range list.Items {
		o.see(apiwatch.Event{Type: apiwatch.Added, Object: &n})
	}
	o.follow(t, cache.NewFilteredListWatchFromClient(clients.CoreV1().RESTClient(), "nodes", "", windows), list.ResourceVersion)
	pods, err := clients.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	o.follow(t, cache.NewFilteredListWatchFromClient(clients.CoreV1().RESTClient(), "pods", metav1.NamespaceDefault, func(*metav1.ListOptions) {}), pods.ResourceVersion)
	return o
}

// follow sees every event after a resource version: a watch that ends is continued where it was.
func (o *observer) follow(t *testing.T, from *cache.ListWatch, version string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w, err := watchtools.NewRetryWatcherWithContext(ctx, version, from)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for e := range w.ResultChan() {
			o.see(e)
		}
	})
	t.Cleanup(func() { stop(); all.Wait() })
}

func (o *observer) see(e apiwatch.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch x := e.Object.(type) {
	case *corev1.Node:
		o.events++
		before := o.nodes[x.Name]
		if e.Type == apiwatch.Deleted {
			delete(o.nodes, x.Name)
			o.hold(x.Name, revision(x.ResourceVersion), false)
			return
		}
		o.nodes[x.Name] = *x
		if isMoved(before, *x) {
			o.moves++
		}
		o.seeNode(before, *x)
	case *corev1.Pod:
		if _, ok := o.evicted[string(x.UID)]; !ok && isEvicted(*x) {
			o.evicted[string(x.UID)] = eviction{x.Spec.NodeName, revision(x.ResourceVersion)}
		}
	case *metav1.Status:
		o.fault("the watch ended: %v", apierrors.FromObject(x))
	}
}

// isMoved reports whether anything but signs of life has changed.
func isMoved(a, b corev1.Node) bool {
	return a.UID != b.UID || a.Spec.Unschedulable != b.Spec.Unschedulable || isReady(a) != isReady(b) || !maps.Equal(a.Annotations, b.Annotations)
}

// isEvicted reports whether the pod ends because of an eviction, and not because the test has deleted it (registry/core/pod/storage of
// Kubernetes, eviction.go).
func isEvicted(p corev1.Pod) bool {
	return p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	})
}

// revision is a resource version of a real API server, which all kinds share.
func revision(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (o *observer) seeNode(before, n corev1.Node) {
	if d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation]); err == nil {
		if o.told[n.Name] == nil {
			o.told[n.Name] = map[bundle.Digest]bool{}
		}
		o.told[n.Name][d.Bundle] = true
	}
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	o.hold(n.Name, revision(n.ResourceVersion), err == nil && state.Claim.Held)
	if wrong := o.kept[n.Name]; wrong != nil && wrong(n) != "" {
		o.fault("%s: %s", n.Name, wrong(n))
	}
	restarting, away, held, all := 0, 0, 0, 0
	var names []string
	for _, x := range o.nodes {
		is := o.standing(x)
		restarting += one(is.restarting)
		away += one(is.cordoned)
		held += one(is.held)
		all += one(is.cordoned || is.held || is.gone)
		if is.cordoned || is.held || is.gone {
			names = append(names, x.Name+" "+is.String())
		}
	}
	slices.Sort(names)
	o.restarting, o.away = max(o.restarting, restarting), max(o.away, away)
	if o.rules == nil {
		return
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&o.rules.unavailable, len(o.nodes), false)
	if err != nil {
		o.fault("%v", err)
	}
	o.peak = max(o.peak, limit, 1)
	began := !isCordonedByUs(before) && isCordonedByUs(n) && isReady(before)
	switch {
	case held > o.peak, o.rules.operators < 2 && all > o.peak && began, away > o.peak*max(o.rules.operators, 1):
		o.fault("%d of %d nodes are unavailable, of %d that may be, when %s changes at %s: %s", all, len(o.nodes), o.peak, n.Name, n.ResourceVersion, strings.Join(names, ", "))
	case restarting > o.rules.parallel*max(o.rules.operators, 1):
		o.fault("%d nodes restart services, of %d", restarting, o.rules.parallel)
	}
}

// standing is how a node is, as anybody can see.
type standing struct {
	// cordoned is by a rollout. Held is a node whose pods may be evicted, or on which a boot is permitted and not over. Gone is one that
	// pods cannot use for another reason: it is not Ready, or somebody else cordoned it. Restarting is one whose services may restart.
	cordoned, held, gone, restarting bool
}

func (s standing) String() string {
	var words []string
	for word, is := range map[string]bool{"cordoned by us": s.cordoned, "held": s.held, "gone": s.gone} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return "(" + strings.Join(words, ", ") + ")"
}

func (o *observer) standing(n corev1.Node) standing {
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, unread := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, undecoded := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	known := err == nil && unread == nil
	open := known && (r.Desired != d.Bundle || r.State == published.StateApplying || r.State == published.StateRebootPending)
	drastic := d.MaxImpact == bundle.ImpactDrain || d.MaxImpact == bundle.ImpactReboot
	s := standing{cordoned: isCordonedByUs(n), held: undecoded == nil && state.Claim.Held || open && drastic}
	s.restarting = open && d.MaxImpact == bundle.ImpactRestart && !o.excused[n.Name]
	// A node that restarts services may be without a kubelet for a moment: that is counted apart. A new one was never Ready.
	s.gone = n.Spec.Unschedulable && !s.cordoned || known && r.Applied != "" && !isReady(n) && !s.restarting
	return s
}

func isCordonedByUs(n corev1.Node) bool { return n.Annotations[published.CordonAnnotation] != "" }

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// hold notes when a node begins and ceases to be held.
func (o *observer) hold(node string, at uint64, held bool) {
	spans := o.held[node]
	open := len(spans) > 0 && spans[len(spans)-1].to == 0
	switch {
	case held && !open:
		o.held[node] = append(spans, span{from: at})
	case !held && open:
		spans[len(spans)-1].to = at
	}
}

func (o *observer) fault(format string, args ...any) {
	const most = 20
	if len(o.broken) < most {
		o.broken = append(o.broken, fmt.Sprintf(format, args...))
	}
}

// begin forgets what was.
func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.restarting, o.away, o.peak, o.told = 0, 0, 0, map[string]map[bundle.Digest]bool{}
}

// most returns what was the most since then, and who was told of another bundle than before.
func (o *observer) most(before map[string]bundle.Digest) (restarting, away int, told []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, bundles := range o.told {
		for b := range bundles {
			if b != before[name] && !slices.Contains(told, name) {
				told = append(told, name)
			}
		}
	}
	return o.restarting, o.away, told
}

// keep has the observer check rules from now on.
func (o *observer) keep(r rules) {
	o.begin()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rules = &r
}

// excuse says that the test itself keeps a node from being Ready, or does so no longer.
func (o *observer) excuse(node string, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.excused[node] = is
}

// protect has what an administrator has done to a node checked with every event.
func (o *observer) protect(node string, wrong func(corev1.Node) string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept[node] = wrong
}

// every reports whether all nodes are as they should be, as far as the observer has seen.
func (o *observer) every(is func(corev1.Node) bool) bool {
	return len(o.those(is)) == o.count()
}

// those returns the names of nodes, sorted.
func (o *observer) those(are func(corev1.Node) bool) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var names []string
	for name, n := range o.nodes {
		if are(n) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (o *observer) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.nodes)
}

// progress is the number of events that moved a node.
func (o *observer) progress() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.moves
}

// String shows all nodes, for messages.
func (o *observer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.nodes)) {
		n := o.nodes[name]
		d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		state, _ := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
		fmt.Fprintf(&text, "%s %s: Ready %t, unschedulable %t, desired %s with at most %s, reported %s for %s with %s needed: %q; turn %+v, claim %+v\n", name, o.standing(n), isReady(n), n.Spec.Unschedulable,
			d.Bundle.Short(), d.MaxImpact, r.State, r.Desired.Short(), r.Impact, r.Message, state.Turn, state.Claim)
	}
	return text.String()
}

// check fails the test for every rule that was broken. The pods that were evicted must have been on nodes that were held.
func (o *observer) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, e := range o.evicted {
		within := func(s span) bool { return s.from < e.at && (s.to == 0 || e.at < s.to) }
		if !slices.ContainsFunc(o.held[e.node], within) {
			o.fault("pod %s was evicted from %s at %d, which was held in %v", uid, e.node, e.at, o.held[e.node])
		}
	}
	clear(o.evicted)
	for _, text := range o.broken {
		t.Error(text)
	}
	o.broken = nil
	for _, n := range o.nodes {
		state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
		if isCordonedByUs(n) || err != nil || !state.Claim.IsZero() {
			t.Errorf("%s is left with the cordon %q and the claim %+v (%v)", n.Name, n.Annotations[published.CordonAnnotation], state.Claim, err)
		}
	}
}
