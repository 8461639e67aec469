package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// noticed is how long an operator may take to learn that a node is away: what it cordons before is no violation.
const noticed = 45 * time.Second

// observer checks what must hold at every moment. It asks no operator: what it knows is what anybody can see in the cluster.
type observer struct {
	now func() time.Time

	mu    sync.Mutex
	nodes map[string]observed
	// limit is the largest maxUnavailable since all nodes were at rest last.
	limit int
	// disturbed is when the operator could last not see the cluster as it is.
	disturbed time.Time
	// held are the resource versions between which each node was held; the last span may be open.
	held map[string][]span
	// evictions are those that were not checked yet, evicted all pods that were.
	evictions map[string]eviction
	evicted   map[string]bool
	secrets   []string
	found     []violation
	// bundles are those that were published for some nodes.
	bundles map[string]map[bundle.Digest]bool
	// peak is how many nodes were cordoned by us at once, at most; events is how many changes of Nodes were seen.
	peak, events int
}

// observed is a Node as the observer needs it.
type observed struct {
	standing
	// goneSince is when the node became gone; zero where it is not.
	goneSince time.Time
	node      *corev1.Node
}

// standing is how a node is, as anybody can see.
type standing struct {
	// cordoned is by us. Held is a node whose pods may be evicted, or on which a boot is permitted and not over. Gone is one that pods cannot use for
	// another reason.
	cordoned, held, gone bool
}

// span is between two resource versions; to is 0 while it lasts.
type span struct{ from, to uint64 }

type eviction struct {
	node string
	at   uint64
}

// violation is something that must not be. Count is how often it was seen.
type violation struct {
	rule, text string
	count      int
}

// The rules.
const (
	ruleAway    = "more nodes are away because of us than maxUnavailable"
	ruleCordon  = "a node is left cordoned by us"
	ruleSecret  = "a secret is where it should not be"
	ruleEvicted = "a pod is evicted from a node that is not held"
	ruleKept    = "what an administrator did was undone"
	ruleRest    = "nodes do not come to rest"
	ruleRender  = "a node has something else than what is rendered"
	ruleSecrets = "Secrets of layers are left"
	ruleRemoved = "something is left of an instance that was removed"
	ruleEnds    = "the operator ends by itself"
	ruleAdopted = "an adoption restarts more than it needs"
	ruleBack    = "an adoption is rolled back"
	ruleKeys    = "a host accepts another key of the operator than it should"

	ruleGoroutines = "the operator gets more and more goroutines"
	ruleMemory     = "the operator gets more and more memory"
)

func newObserver(now func() time.Time) *observer {
	return &observer{now: now, nodes: map[string]observed{}, limit: 1, held: map[string][]span{}, evictions: map[string]eviction{}, evicted: map[string]bool{}, bundles: map[string]map[bundle.Digest]bool{}}
}

// violate notes a violation, once for each text.
func (o *observer) violate(rule, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(rule, format, args...)
}

// note is violate with the mutex held.
func (o *observer) note(rule, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for i, v := range o.found {
		if v.rule == rule && v.text == text {
			o.found[i].count++
			return
		}
	}
	const most = 200
	if len(o.found) < most {
		o.found = append(o.found, violation{rule, text, 1})
	}
}

func (o *observer) violations() []violation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.found)
}

// forget forgets the violations.
func (o *observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found = nil
}

// disturb says that from now on, until the last call and a while longer, the operator may not see the cluster as it is.
func (o *observer) disturb() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.disturbed = o.now()
}

// allow is called before maxUnavailable is set to n.
func (o *observer) allow(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = max(o.limit, n)
}

// restAt is called when all nodes are at rest, and maxUnavailable is n.
func (o *observer) restAt(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit = n
}

// hide adds texts that must not be seen.
func (o *observer) hide(secrets ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.secrets = append(o.secrets, secrets...)
}

// searchText looks for secrets.
func (o *observer) searchText(place, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.search(place, text)
}

func (o *observer) search(place, text string) {
	for _, secret := range o.secrets {
		if strings.Contains(text, secret) {
			o.note(ruleSecret, "%q is in %s", secret, place)
		}
	}
}

// replaceNodes is called with a list: what was seen before and is not in it is deleted.
func (o *observer) replaceNodes(list []corev1.Node, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.nodes
	o.nodes = map[string]observed{}
	for _, n := range list {
		o.enter(old[n.Name], n)
	}
	for name := range old {
		if _, ok := o.nodes[name]; !ok {
			o.hold(name, version, false)
		}
	}
	// Together they are the state of one moment. Which of them was cordoned last is not known.
	if away := o.countOurs(); away > o.limit {
		o.note(ruleAway, "%d, of %d that may be, in a list at %d", away, o.limit, version)
	}
}

// seeNode is called with every change of a Node, in their order.
func (o *observer) seeNode(n corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.nodes[n.Name]
	o.enter(before, n)
	is := o.nodes[n.Name]
	if ours := o.countOurs(); ours > o.limit {
		o.note(ruleAway, "%d, of %d that may be: %s", ours, o.limit, o.ours())
		return
	}
	if began := !before.cordoned && is.cordoned && !before.gone; !began {
		return
	}
	others := o.countKnownAway(n.Name)
	if others+1 > o.limit {
		o.note(ruleAway, "%s is cordoned while %d others are away, of %d that may be: %s", n.Name, others, o.limit, o.ours())
	}
}

// deleteNode is called with the last state of a Node.
func (o *observer) deleteNode(n corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	delete(o.nodes, n.Name)
	o.hold(n.Name, revision(n.ResourceVersion), false)
}

// enter is called with the mutex held.
func (o *observer) enter(before observed, n corev1.Node) {
	o.events++
	is := observed{standing: standingOf(n), node: &n}
	if is.gone {
		is.goneSince = before.goneSince
		if before.goneSince.IsZero() {
			is.goneSince = o.now()
		}
	}
	o.nodes[n.Name] = is
	o.peak = max(o.peak, o.countOurs())
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	o.hold(n.Name, revision(n.ResourceVersion), err == nil && state.Claim.Held || isRemoved(n))
	o.enterPublished(n)
	for key, value := range n.Annotations {
		o.search("annotation "+key+" of a Node", value)
	}
	for _, c := range n.Status.Conditions {
		o.search("condition "+string(c.Type)+" of a Node", c.Message)
	}
}

func (o *observer) countOurs() int {
	n := 0
	for _, x := range o.nodes {
		if x.cordoned || x.held {
			n++
		}
	}
	return n
}

// countKnownAway counts the nodes that an operator knows to be away, without one.
func (o *observer) countKnownAway(but string) int {
	n := 0
	for name, x := range o.nodes {
		since := x.goneSince
		if since.Before(o.disturbed) {
			since = o.disturbed
		}
		if known := x.cordoned || x.held || x.gone && o.now().Sub(since) > noticed; known && name != but {
			n++
		}
	}
	return n
}

func (o *observer) ours() string {
	var names []string
	for name, x := range o.nodes {
		switch {
		case x.cordoned:
			names = append(names, name+" (cordoned by us)")
		case x.held:
			names = append(names, name+" (held)")
		case x.gone:
			names = append(names, name+" (gone)")
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func standingOf(n corev1.Node) standing {
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, unread := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, undecoded := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	known := err == nil && unread == nil
	open := known && (r.Desired != d.Bundle || r.State == published.StateApplying || r.State == published.StateRebootPending)
	drastic := d.MaxImpact == bundle.ImpactDrain || d.MaxImpact == bundle.ImpactReboot
	s := standing{cordoned: isCordonedByUs(n), held: undecoded == nil && state.Claim.Held || open && drastic}
	// A new node was never Ready.
	s.gone = n.Spec.Unschedulable && !s.cordoned || known && r.Applied != "" && !isReady(n)
	return s
}

func isCordonedByUs(n corev1.Node) bool { return n.Annotations[published.CordonAnnotation] != "" }

// isRemoved reports whether the node is cordoned because its instance is removed.
func isRemoved(n corev1.Node) bool {
	return n.Spec.Unschedulable && n.Annotations[published.JoiningAnnotation] != ""
}

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
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

// seePod is called with every change of a pod. An eviction is checked when the Nodes of its time were seen (checkEvictions).
func (o *observer) seePod(p corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid := string(p.UID)
	// registry/core/pod/storage/eviction.go of Kubernetes.
	evicted := p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	})
	if evicted && !o.evicted[uid] {
		o.evicted[uid], o.evictions[uid] = true, eviction{p.Spec.NodeName, revision(p.ResourceVersion)}
	}
}

// checkEvictions is called at rest: every change until then was seen.
func (o *observer) checkEvictions() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, e := range o.evictions {
		within := func(s span) bool { return s.from < e.at && (s.to == 0 || e.at < s.to) }
		if !slices.ContainsFunc(o.held[e.node], within) {
			o.note(ruleEvicted, "pod %s at %d from %s, which was held in %v", uid, e.at, e.node, o.held[e.node])
		}
	}
	clear(o.evictions)
	for name := range o.held {
		if spans := o.held[name]; len(spans) > 0 && spans[len(spans)-1].to != 0 {
			delete(o.held, name)
		}
	}
}

// snapshot returns the Nodes as they were seen last.
func (o *observer) snapshot() map[string]corev1.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := map[string]corev1.Node{}
	for name, x := range o.nodes {
		all[name] = *x.node
	}
	return all
}

// checkLeft checks that no node is left cordoned by us, or with a claim.
func (o *observer) checkLeft() {
	nodes := o.snapshot()
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
		if isCordonedByUs(n) || err != nil || !state.Claim.IsZero() {
			o.violate(ruleCordon, "%s has the cordon %q and the claim %+v (%v)", name, n.Annotations[published.CordonAnnotation], state.Claim, err)
		}
	}
}
