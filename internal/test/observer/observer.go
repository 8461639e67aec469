package observer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// Rules are what a rollout must keep at every moment.
type Rules struct {
	// Unavailable is how many nodes may be, a number or a percentage. Parallel is how many may restart services; zero
	// is not judged.
	Unavailable intstr.IntOrString
	Parallel    int
	// Operators is how many believe that they lead, zero is one. Two may cordon one node each where one is allowed,
	// until one withdraws: no pod is evicted before that.
	Operators int
}

// The rules that are broken, in violations.
const (
	RuleAway      = "more nodes are away because of us than maxUnavailable"
	RuleParallel  = "more nodes restart services than maxParallel"
	RuleCordon    = "a node is left cordoned by us"
	RuleSecret    = "a secret is where it should not be"
	RuleEvicted   = "a pod is evicted from a node that is not held"
	RuleProtected = "what an administrator did was undone"
)

// Violation is something that must not be. Count is how often it was seen.
type Violation struct {
	Rule, Text string
	Count      int
}

// Observer knows the Nodes and pods as they were seen last.
type Observer struct {
	now func() time.Time
	// noticed is how long an operator may take to learn that a node is away: what it cordons before is no violation.
	noticed time.Duration

	mu    sync.Mutex
	nodes map[string]seen
	// rules are those of now; nil is none.
	rules *Rules
	// limit and parallel are the largest numbers of unavailable and of restarting nodes that were allowed since KeepRules:
	// the rules and the number of nodes change.
	limit, parallel int
	// disturbed is when the operator could last not see the cluster as it is.
	disturbed time.Time
	// excused are nodes that the test itself keeps from being Ready; protected returns what was changed of an
	// administrator's change of a node.
	excused   map[string]bool
	protected map[string]func(corev1.Node) string
	// foreign are annotations of published bundles that the operator has not written where they are.
	foreign map[string]bool
	// held are the resource versions between which each node was held; the last span may be open.
	held map[string][]span
	// evictions are those that were not checked yet, evicted all pods that were.
	evictions map[string]eviction
	evicted   map[string]bool
	secrets   []string
	found     []Violation
	// events is how many changes of Nodes were seen, moves how many of them changed more than signs of life.
	events, moves int
}

// seen is a Node as the observer needs it.
type seen struct {
	standing
	// goneSince is when the node became gone; zero where it is not.
	goneSince time.Time
	node      corev1.Node
}

// span is between two resource versions; to is 0 while it lasts.
type span struct{ from, to uint64 }

type eviction struct {
	node string
	at   uint64
}

// New returns an observer that has seen nothing.
func New(now func() time.Time, noticed time.Duration) *Observer {
	return &Observer{
		now: now, noticed: noticed, nodes: map[string]seen{}, excused: map[string]bool{}, protected: map[string]func(corev1.Node) string{},
		foreign: map[string]bool{}, held: map[string][]span{}, evictions: map[string]eviction{}, evicted: map[string]bool{},
	}
}

// KeepRules has rules checked from now on, when all nodes are at rest.
func (o *Observer) KeepRules(r Rules) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rules, o.limit, o.parallel = &r, 0, 0
}

// AllowRules is called before rules change: until the next KeepRules the wider limits hold.
func (o *Observer) AllowRules(r Rules) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.widenLimit()
	o.rules = &r
	o.widenLimit()
}

// widenLimit is called with the mutex held, when the rules or the number of nodes has changed.
func (o *Observer) widenLimit() {
	if o.rules == nil {
		return
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&o.rules.Unavailable, len(o.nodes), false)
	if err != nil {
		o.noteViolation(RuleAway, "%v", err)
	}
	o.limit, o.parallel = max(o.limit, n, 1), max(o.parallel, o.rules.Parallel)
}

// Excuse notes that the test itself keeps a node from being Ready, or does so no longer.
func (o *Observer) Excuse(node string, is bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.excused[node] = is
}

// NoteForeign notes that another client than the operator gives a Node this annotation of a published bundle.
func (o *Observer) NoteForeign(annotation string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.foreign[annotation] = true
}

// Protect has an administrator's change of a node checked with every event: wrong returns the problem.
func (o *Observer) Protect(node string, wrong func(corev1.Node) string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.protected[node] = wrong
}

// Disturb notes that from now on, until the last call and a while longer, the operator may not see the cluster as it is.
func (o *Observer) Disturb() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.disturbed = o.now()
}

// HideSecrets adds texts that must not be seen.
func (o *Observer) HideSecrets(secrets ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = append(o.secrets, secrets...)
}

// SearchText looks for secrets.
func (o *Observer) SearchText(place, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.searchSecrets(place, text)
}

func (o *Observer) searchSecrets(place, text string) {
	for _, secret := range o.secrets {
		if strings.Contains(text, secret) {
			o.noteViolation(RuleSecret, "%q is in %s", secret, place)
		}
	}
}

// Violate notes a violation, once for each text.
func (o *Observer) Violate(rule, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.noteViolation(rule, format, args...)
}

// noteViolation is Violate with the mutex held.
func (o *Observer) noteViolation(rule, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for i, v := range o.found {
		if v.Rule == rule && v.Text == text {
			o.found[i].Count++
			return
		}
	}
	const most = 200
	if len(o.found) < most {
		o.found = append(o.found, Violation{rule, text, 1})
	}
}

// Violations returns what was found.
func (o *Observer) Violations() []Violation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.found)
}

// Snapshot returns the Nodes as they were seen last.
func (o *Observer) Snapshot() map[string]corev1.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]corev1.Node{}
	for name, x := range o.nodes {
		all[name] = x.node
	}
	return all
}

// Count returns how many nodes there are.
func (o *Observer) Count() int { return len(o.Snapshot()) }

// NodesThat returns the names of nodes, sorted.
func (o *Observer) NodesThat(are func(corev1.Node) bool) []string {
	nodes := o.Snapshot()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(nodes)), func(name string) bool { return !are(nodes[name]) })
}

// Progress returns the number of events, and of those that changed more than signs of life.
func (o *Observer) Progress() (events, moves int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.events, o.moves
}

// String shows all nodes, for messages.
func (o *Observer) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(o.nodes)) {
		fmt.Fprintf(&text, "%s %s\n", o.nodes[name].standing, DescribeNode(o.nodes[name].node))
	}
	return text.String()
}

// CheckEvictions is called at rest, when every change was seen: pods must have been evicted from nodes that were held.
func (o *Observer) CheckEvictions() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, e := range o.evictions {
		within := func(s span) bool { return s.from < e.at && (s.to == 0 || e.at < s.to) }
		if !slices.ContainsFunc(o.held[e.node], within) {
			o.noteViolation(RuleEvicted, "pod %s at %d from %s, which was held in %v", uid, e.at, e.node, o.held[e.node])
		}
	}
	clear(o.evictions)
	for name, spans := range o.held {
		if len(spans) > 0 && spans[len(spans)-1].to != 0 {
			delete(o.held, name)
		}
	}
}

// CheckLeft checks at rest that no node is left cordoned by us, or with a claim.
func (o *Observer) CheckLeft() {
	for _, n := range o.Snapshot() {
		state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
		if IsCordonedByUs(n) || err != nil || !state.Slot.IsZero() {
			o.Violate(RuleCordon, "%s has the cordon %q and the slot %+v (%v)", n.Name, n.Annotations[published.CordonAnnotation], state.Slot, err)
		}
	}
}
