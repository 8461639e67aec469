package observer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// replaceNodes is called with a list: what was seen before and is not in it is deleted.
func (o *Observer) replaceNodes(list []corev1.Node, version uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.nodes
	o.nodes = map[string]seen{}
	for _, n := range list {
		o.enterNode(old[n.Name], n)
	}
	for name := range old {
		if _, ok := o.nodes[name]; !ok {
			o.noteHeld(name, version, false)
		}
	}
	// Together they are the state of one moment. Which of them was cordoned last is not known.
	o.judgeRules(false)
}

// seeNode is called with every change of a Node, in their order.
func (o *Observer) seeNode(n corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.nodes[n.Name]
	o.enterNode(before, n)
	if wrong := o.protected[n.Name]; wrong != nil && wrong(n) != "" {
		o.noteViolation(RuleProtected, "%s: %s", n.Name, wrong(n))
	}
	o.judgeRules(!before.cordoned && o.nodes[n.Name].cordoned && !before.gone && IsReady(before.node))
}

// deleteNode is called with the last state of a Node.
func (o *Observer) deleteNode(n corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events++
	o.moves++
	delete(o.nodes, n.Name)
	o.noteHeld(n.Name, Revision(n.ResourceVersion), false)
}

// enterNode is called with the mutex held.
func (o *Observer) enterNode(before seen, n corev1.Node) {
	o.events++
	if isMoved(before.node, n) {
		o.moves++
	}
	is := seen{standing: standingOf(n, o.excused[n.Name], o.foreign[n.Annotations[published.DesiredAnnotation]]), node: n}
	if is.gone {
		is.goneSince = before.goneSince
		if before.goneSince.IsZero() {
			is.goneSince = o.now()
		}
	}
	o.nodes[n.Name] = is
	o.noteHeld(n.Name, Revision(n.ResourceVersion), isHeld(n) || windowsnode.HasTaint(&n, windowsnode.RemovingTaint))
	for key, value := range n.Annotations {
		o.searchSecrets("annotation "+key+" of a Node", value)
	}
	for _, c := range n.Status.Conditions {
		o.searchSecrets("condition "+string(c.Type)+" of a Node", c.Message)
	}
}

// isMoved reports whether anything but signs of life has changed.
func isMoved(a, b corev1.Node) bool {
	return a.UID != b.UID || a.Spec.Unschedulable != b.Spec.Unschedulable || IsReady(a) != IsReady(b) || !maps.Equal(a.Annotations, b.Annotations)
}

// judgeRules checks the rules; began is true if a node that could be used was cordoned just now.
func (o *Observer) judgeRules(began bool) {
	restarting, cordoned, held, ours := 0, 0, 0, 0
	for _, x := range o.nodes {
		restarting += oneIf(x.restarting)
		cordoned += oneIf(x.cordoned)
		held += oneIf(x.held)
		ours += oneIf(x.cordoned || x.held)
	}
	if o.rules == nil {
		return
	}
	o.widenLimit()
	operators := max(o.rules.Operators, 1)
	alone := operators == 1
	switch {
	case held > o.limit, cordoned > o.limit*operators, alone && ours > o.limit, alone && began && o.countKnownAway() > o.limit:
		o.noteViolation(RuleAway, "%d because of us, of %d that may be: %s", ours, o.limit, o.listNodes(func(s standing) bool { return s.cordoned || s.held || s.gone }))
	case o.rules.Parallel > 0 && restarting > o.parallel*operators:
		o.noteViolation(RuleParallel, "%d, of %d that may: %s", restarting, o.parallel, o.listNodes(func(s standing) bool { return s.restarting }))
	}
}

// countKnownAway counts the nodes that an operator knows to be away.
func (o *Observer) countKnownAway() int {
	n := 0
	for _, x := range o.nodes {
		since := x.goneSince
		if since.Before(o.disturbed) {
			since = o.disturbed
		}
		n += oneIf(x.cordoned || x.held || x.gone && o.now().Sub(since) > o.noticed)
	}
	return n
}

// listNodes lists the nodes for which this holds, with what they do.
func (o *Observer) listNodes(is func(standing) bool) string {
	var names []string
	for name, x := range o.nodes {
		if is(x.standing) {
			names = append(names, name+" "+x.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func oneIf(is bool) int { //nolint:revive // a number, not a mode
	if is {
		return 1
	}
	return 0
}

// noteHeld notes when a node begins and ceases to be held.
func (o *Observer) noteHeld(node string, at uint64, held bool) {
	spans := o.held[node]
	open := len(spans) > 0 && spans[len(spans)-1].to == 0
	switch {
	case held && !open:
		o.held[node] = append(spans, span{from: at})
	case !held && open:
		spans[len(spans)-1].to = at
	}
}

// seePod is called with every change of a pod. An eviction is checked when the Nodes of its time were seen
// (CheckEvictions).
func (o *Observer) seePod(p corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	uid := string(p.UID)
	// registry/core/pod/storage/eviction.go of Kubernetes.
	evicted := p.DeletionTimestamp != nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Reason == "EvictionByEvictionAPI"
	})
	if evicted && !o.evicted[uid] {
		o.evicted[uid], o.evictions[uid] = true, eviction{p.Spec.NodeName, Revision(p.ResourceVersion)}
	}
}

// Revision reads a resource version of a real API server, which all kinds share.
func Revision(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
