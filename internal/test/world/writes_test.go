package world

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/layers"
	"wmco/controller/status"
	"wmco/controller/windowsnode"
	"wmco/internal/test/observer"
)

// The rules about what an operator writes. Each write is judged when the API server has it, with the objects as they were before.
const (
	ruleLease    = "an operator writes without the Lease"
	ruleRelease  = "an operator writes a Lease that another one has"
	ruleCounter  = "what is signed for a Node is not newer than before, or is for another Node"
	ruleWindow   = "something begins outside of its maintenance window"
	rulePaused   = "something begins that is paused"
	ruleDrained  = "what needs a drained node is permitted on one that is not drained"
	ruleBoot     = "a boot is permitted again, too soon, or while the node agent is at work"
	ruleCanary   = "nodes get what no canary has proved"
	ruleFailures = "nodes get what as many as failureLimit have failed with"
	ruleDeleted  = "nodes lose an input that was deleted, and that is not confirmed"
	ruleReadable = "nodes may read other Secrets than the layers that are published"
	ruleTold     = "a node is told of a layer that is not there, or that it may not read"
	ruleStale    = "a Node is changed that has changed since the operator looked"
	ruleNewer    = "what a newer operator has written is replaced"
	ruleStranger = "a Node whose host is not known gets something"
	ruleFetch    = "more nodes fetch executables than rollout.fetchNodes"
	ruleRemoval  = "a host is removed that has an entry, or was not told"
	ruleVersion  = "a Node gets the version of an operator whose bundle it does not have"
	ruleForeign  = "an operator deletes what is not its own"
)

const (
	// leaseDuration is how long an operator has the Lease that it does not renew.
	leaseDuration = 137 * time.Second
	// answersWithin is how long a node agent may take to say what it does. A turn ends a little later.
	answersWithin = 25 * time.Minute
	// windowsRest is the time between two boots of a host for what its Windows waits for.
	windowsRest = 6 * time.Hour
	// readableFor is how long nodes may read what is replaced, with the time of a rest.
	readableFor = 25 * time.Hour
)

// trail is what operators have written for Nodes.
type trail struct {
	mu    sync.Mutex
	nodes map[types.UID]*told
	// proved are the nodes that have worked with a layer of the cluster.
	proved map[bundle.Digest]map[string]bool
	// unwanted are Secrets that no node is told of, since that was seen first.
	unwanted map[string]time.Time
	// restored is when etcd was restored last: reports may be older than what hosts do.
	restored time.Time
}

// told is what was signed last for a Node, and the boots that were permitted.
type told struct {
	desired published.Desired
	at      time.Time
	boots   map[bundle.Digest]bool
	// reboots are the bundles for which a reboot was permitted.
	reboots map[bundle.Digest]bool
	// payloads are the executables of what was signed, permitted is when the node may fetch some since.
	payloads  map[bundle.Digest]bool
	permitted time.Time
	// forWindows is when the last boot for what Windows waits for was permitted.
	forWindows time.Time
}

func (x *trail) node(uid types.UID) *told {
	if x.nodes[uid] == nil {
		x.nodes[uid] = &told{boots: map[bundle.Digest]bool{}, payloads: map[bundle.Digest]bool{}, reboots: map[bundle.Digest]bool{}}
	}
	return x.nodes[uid]
}

// judged is for rest.Config.Wrap: it is the last one before the API server.
func (w *world) judged(o *operator) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			isLease := strings.Contains(r.URL.Path, "/leases")
			if !isStep(r) && !isLease || r.Method == http.MethodGet {
				answer, err := next.RoundTrip(r)
				if isLease && err == nil {
					w.noteHolder(o)
				}
				return answer, err
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			then := w.judge(o, r, body)
			answer, err := next.RoundTrip(withBody(r, body))
			if err == nil && answer.StatusCode < http.StatusMultipleChoices && then != nil {
				then()
			}
			return answer, err
		})
	}
}

// judge returns what to do when the API server has taken a request.
func (w *world) judge(o *operator, r *http.Request, body []byte) func() {
	folder, name := path.Split(r.URL.Path)
	kind := path.Base(folder)
	if r.Method == http.MethodPost {
		kind, name = name, ""
	}
	if kind == "leases" && r.Method == http.MethodPatch { // it has no holder, and is there (base.CreateLease)
		return nil
	}
	if kind == "leases" {
		before := w.lease()
		return func() { w.judgeLease(o, before, writtenHolder(body)) }
	}
	own := w.judgeLeading(o, kind)
	switch {
	case name == "approval":
		wrong := w.judgeApproval(kind) // the kubelet may have its certificate a moment later
		return func() {
			own()
			if wrong != "" {
				w.observer.Violate(ruleCertificate, "%s: %s", kind, wrong)
			}
		}
	case r.Method == http.MethodDelete:
		isOwn := w.isOwn(kind, name)
		return func() {
			own()
			if !isOwn {
				w.observer.Violate(ruleForeign, "%s %s", kind, name)
			}
		}
	case kind == "nodes" && r.Method == http.MethodPatch:
		var before corev1.Node
		if w.Get(w.ctx, client.ObjectKey{Name: name}, &before) != nil {
			return own
		}
		after := patchedNode(before, body)
		return func() {
			own()
			w.judgeCordon(before, after)
			w.judgeFetch(before, after)
			w.judgeVersion(before, after)
			w.judgeNode(before, after)
		}
	case kind == "roles" && bytes.Contains(body, []byte(layers.Access)), kind == "roles" && name == layers.Access:
		return func() {
			own()
			w.judgeRole(o)
		}
	}
	return own
}

// patchedNode returns a Node with what is judged of a merge patch.
func patchedNode(n corev1.Node, patch []byte) corev1.Node {
	var p struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]*string
		}
		Spec struct{ Unschedulable *bool }
	}
	after := *n.DeepCopy()
	if json.Unmarshal(patch, &p) != nil {
		return after
	}
	for key, value := range p.Metadata.Annotations {
		delete(after.Annotations, key)
		if value != nil {
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, *value)
		}
	}
	after.ResourceVersion = p.Metadata.ResourceVersion
	if p.Spec.Unschedulable != nil {
		after.Spec.Unschedulable = *p.Spec.Unschedulable
	}
	return after
}

// lease is the Lease of the operators. One that cannot be read has no holder.
func (w *world) lease() coordinationv1.LeaseSpec {
	var l coordinationv1.Lease
	_ = w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: status.OperatorName}, &l) // as said
	return l.Spec
}

// hasEnded reports whether another one may take a Lease.
func hasEnded(l coordinationv1.LeaseSpec) bool {
	return holderOf(l) == "" || l.RenewTime == nil || time.Since(l.RenewTime.Time) > leaseDuration
}

func holderOf(l coordinationv1.LeaseSpec) string {
	if l.HolderIdentity == nil {
		return ""
	}
	return *l.HolderIdentity
}

// writtenHolder returns the holder of a Lease that is written; empty where it is released. The Lease itself may be of a
// restored etcd by then.
func writtenHolder(body []byte) string {
	o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	l, ok := o.(*coordinationv1.Lease)
	if err != nil || !ok {
		return ""
	}
	return holderOf(l.Spec)
}

// judgeLease is called when an operator has written the Lease, and has it now; empty is a release.
func (w *world) judgeLease(o *operator, before coordinationv1.LeaseSpec, now string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now != "" {
		o.identity, o.renewed = now, time.Now()
	}
	if holder := holderOf(before); !hasEnded(before) && holder != o.identity {
		w.observer.Violate(ruleRelease, "%s has written %q after %s: it was of %s, who renewed it %s ago",
			o.identity, now, time.Since(w.begun).Round(time.Second), holder, time.Since(before.RenewTime.Time).Round(time.Second))
	}
}

// noteHolder is called when an operator has read the Lease.
func (w *world) noteHolder(o *operator) {
	holder := holderOf(w.lease())
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.identity != "" && holder != "" && holder != o.identity && o.superseded.IsZero() {
		o.superseded = time.Now()
	}
}

// judgeLeading returns what to do when an operator has written something else. What it writes before it leads is the same for all, and no Node.
func (w *world) judgeLeading(o *operator, kind string) func() {
	o.mu.Lock()
	identity, since, superseded := o.identity, time.Since(o.renewed), o.superseded
	o.mu.Unlock()
	return func() {
		switch {
		case !o.elected:
		case identity == "" && kind == "nodes":
			w.observer.Violate(ruleLease, "a Node, before it leads")
		case identity == "":
		case since > leaseDuration:
			w.observer.Violate(ruleLease, "%s, %s after it has renewed it", kind, since.Round(time.Second))
		case !superseded.IsZero() && time.Since(superseded) > time.Second:
			w.observer.Violate(ruleLease, "%s, %s after it has read that another one has it", kind, time.Since(superseded).Round(time.Second))
		}
	}
}

// isOwn reports whether an operator may delete an object: its own Secrets, Nodes whose hosts are not there any longer, and Machines whose hosts have refused
// the login for long.
func (w *world) isOwn(kind, name string) bool {
	switch kind {
	case "secrets":
		var s corev1.Secret
		err := w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: name}, &s)
		return err != nil || s.Labels[published.LayerLabel] != ""
	case "nodes":
		w.mu.Lock()
		defer w.mu.Unlock()
		m := w.machines[name]
		return m == nil && w.mayDeleteHost(w.hosts[name]) || m != nil && w.mayDelete(m)
	case "machines":
		w.mu.Lock()
		defer w.mu.Unlock()
		h := w.hosts[name]
		return h != nil && h.refuses && time.Since(h.since) > refusesFor
	}
	return false
}

// judgeRole is called when an operator has said which Secrets nodes may read.
func (w *world) judgeRole(o *operator) {
	var role rbacv1.Role
	if !o.elected || w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: layers.Access}, &role) != nil {
		return
	}
	for _, rule := range role.Rules {
		if len(rule.ResourceNames) == 0 {
			w.observer.Violate(ruleReadable, "all of them")
		}
		for _, name := range rule.ResourceNames {
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: name}, &corev1.Secret{}); apierrors.IsNotFound(err) {
				w.observer.Violate(ruleReadable, "%s, which is not there", name)
			}
		}
	}
}

// change is what an operator has made of a Node.
type change struct {
	before  corev1.Node
	was, is published.Desired
	report  published.Report
	// state is that before, next the one after it.
	state, next windowsnode.RolloutState
	// last is what was signed before.
	last *told
	// joined reports whether the node has joined and has had a bundle, begins whether it gets another one or may do more.
	joined, begins bool
}

// judgeNode is called when an operator has changed a Node.
func (w *world) judgeNode(before, after corev1.Node) {
	text := after.Annotations[published.DesiredAnnotation]
	is, err := published.DecodeDesired(text)
	if err != nil || text == before.Annotations[published.DesiredAnnotation] {
		return
	}
	if after.ResourceVersion != before.ResourceVersion {
		w.observer.Violate(ruleStale, "%s: told from version %q, it has %s", before.Name, after.ResourceVersion, before.ResourceVersion)
	}
	w.judgeLayers(before.Name, is)
	var nodes corev1.NodeList
	var pods corev1.PodList
	_ = w.List(w.ctx, &nodes)                                             // none while the API server is away
	_ = w.List(w.ctx, &pods, client.InNamespace(metav1.NamespaceDefault)) // as above
	x := &w.trail
	x.mu.Lock()
	defer x.mu.Unlock()
	c := change{before: before, is: is, last: x.node(before.UID)}
	c.was, err = published.DecodeDesired(before.Annotations[published.DesiredAnnotation])
	c.report, _ = published.DecodeReport(before.Annotations[published.ReportAnnotation])
	var newer *bundle.SchemaError
	c.next, _ = windowsnode.DecodeRolloutState(after.Annotations[published.RolloutAnnotation])
	state, unread := windowsnode.DecodeRolloutState(before.Annotations[published.RolloutAnnotation])
	if c.state = state; errors.As(unread, &newer) {
		w.observer.Violate(ruleNewer, "%s", before.Name)
	}
	c.joined = before.Annotations[published.VersionAnnotation] != "" && c.report.Applied != "" && err == nil && c.was.Counter() == c.last.desired.Counter()
	c.begins = is.Bundle != c.was.Bundle || is.MaxImpact.Rank() > c.was.MaxImpact.Rank()
	if is.NodeUID != string(before.UID) || is.Counter().Compare(c.last.desired.Counter()) <= 0 {
		w.observer.Violate(ruleCounter, "%s: %s for %s after %s for %s", before.Name, is.Counter(), is.NodeUID, c.last.desired.Counter(), before.UID)
	}
	if is.Remove && !c.last.desired.Remove {
		w.judgeToRemove(before)
	}
	if c.joined && !is.Remove {
		for rule, wrong := range map[string]string{
			rulePaused: c.beginsPaused(w.isPaused()), ruleWindow: c.beginsOutside(w.isOutsideOfWindow()), ruleDrained: c.isNotDrained(pods.Items), ruleBoot: c.bootsWrongly(), ruleDeleted: c.loses(),
		} {
			if wrong != "" {
				w.observer.Violate(rule, "%s: %s", before.Name, wrong)
			}
		}
		w.judgeOrder(c, nodes.Items)
	}
	if is.Boot != "" {
		c.last.boots[is.Boot] = true
		if is.Boot != c.last.desired.Boot && !c.isForPerson() {
			c.last.forWindows = time.Now()
		}
	}
	if is.MaxImpact == bundle.ImpactReboot {
		c.last.reboots[is.Bundle] = true
	}
	if why := w.tooNew(is.Payload); why != "" {
		w.observer.Violate(ruleSkew, "%s: %s", before.Name, why)
	}
	c.last.payloads[is.Payload] = true
	c.last.desired, c.last.at = is, time.Now()
}

// fetchPatience is how long a node that may fetch counts for rollout.fetchNodes, whatever it reports of its progress.
const fetchPatience = 10 * time.Minute

// judgeFetch is called when an operator has changed a Node: with it, no more nodes fetch than may.
func (w *world) judgeFetch(before, after corev1.Node) {
	payload := after.Annotations[published.FetchAnnotation]
	if payload == "" || payload == before.Annotations[published.FetchAnnotation] {
		return
	}
	var nodes corev1.NodeList
	_ = w.List(w.ctx, &nodes) // none while the API server is away
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	w.trail.node(before.UID).permitted = time.Now()
	fetching := []string{before.Name}
	for _, n := range nodes.Items {
		r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		ended := string(r.Fetch.Payload) == payload && (r.Fetch.Done || r.Fetch.Failed)
		if n.Name != before.Name && n.Annotations[published.FetchAnnotation] == payload && isLongReady(n) && !ended && time.Since(w.trail.node(n.UID).permitted) < fetchPatience {
			fetching = append(fetching, n.Name)
		}
	}
	most := 0
	for _, x := range w.recentSettings() {
		most = max(most, x.fetchNodes*max(1, x.operators))
	}
	if len(fetching) > most {
		w.observer.Violate(ruleFetch, "%v, %d may", fetching, most)
	}
}

// isLongReady reports whether a node is Ready, and every operator knows it.
func isLongReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && time.Since(c.LastTransitionTime.Time) > noticed
	})
}

// judgeVersion is called when an operator has changed a Node.
func (w *world) judgeVersion(before, after corev1.Node) {
	version := after.Annotations[published.VersionAnnotation]
	if version == "" || version == before.Annotations[published.VersionAnnotation] {
		return
	}
	d, _ := published.DecodeDesired(before.Annotations[published.DesiredAnnotation])
	r, _ := published.DecodeReport(before.Annotations[published.ReportAnnotation])
	has := slices.ContainsFunc(w.releases, func(r release) bool { return r.version == version && r.has(d.Payload) })
	if !has || r.Applied != d.Bundle {
		w.observer.Violate(ruleVersion, "%s gets %s, with executables %s and bundle %s; it was told of %s", before.Name, version, d.Payload.Short(), r.Applied.Short(), d.Bundle.Short())
	}
}

// isForPerson reports whether the boot is that which a person asks for.
func (c change) isForPerson() bool {
	return c.is.Boot == bundle.Of([]byte(c.before.Annotations[published.RebootAnnotation]))
}

// beginsPaused returns what begins although the node is paused, or all of them are. What is urgent does not wait, and a turn goes on.
func (c change) beginsPaused(all bool) string {
	_, paused := c.before.Annotations[published.PausedAnnotation]
	if c.begins && !c.is.Urgent && (paused || all && c.is.Bundle != c.was.Bundle && c.state.Slot.IsZero()) {
		return "another bundle or a higher impact"
	}
	return ""
}

// beginsOutside returns what begins although no window is open. A turn goes on, and what a person asks for or is urgent does not wait.
func (c change) beginsOutside(outside bool) string {
	begun := !c.state.Slot.IsZero() || c.state.Turn.Bundle == c.is.Bundle && !c.state.Turn.Permitted.IsZero()
	if outside && c.begins && !c.is.Urgent && !begun && !c.isForPerson() && c.is.MaxImpact.Rank() >= bundle.ImpactRestart.Rank() {
		return "bundle " + c.is.Bundle.Short() + " with at most " + string(c.is.MaxImpact)
	}
	return ""
}

// isNotDrained returns why the node is not drained for what it may do. Where the kubelet does not work, pods that were told to end cannot do so.
func (c change) isNotDrained(pods []corev1.Pod) string {
	if !c.begins || c.is.MaxImpact.Rank() < bundle.ImpactDrain.Rank() {
		return ""
	}
	if !c.before.Spec.Unschedulable || !c.state.Slot.Held {
		return "it is not cordoned, or not its turn"
	}
	for _, p := range pods {
		mayStay := p.DeletionTimestamp != nil && !observer.IsReady(c.before)
		if p.Spec.NodeName == c.before.Name && !mayStay && time.Since(p.CreationTimestamp.Time) > time.Minute {
			return "pod " + p.Name + " runs on it"
		}
	}
	return ""
}

// bootsWrongly returns what is wrong about a boot that is permitted. One that is permitted already goes on, whatever others have written since.
func (c change) bootsWrongly() string {
	open := c.was.MaxImpact.Rank() >= bundle.ImpactRestart.Rank() && c.report.Desired != c.was.Bundle && time.Since(c.last.at) < answersWithin
	switch {
	case c.is.Boot == "" || c.is.Boot == c.last.desired.Boot:
	case !c.isForPerson() && c.is.Boot != c.next.WindowsBoot.Request:
		return "neither a person nor Windows asks for it"
	case c.last.boots[c.is.Boot]:
		return "it was permitted before"
	case !c.isForPerson() && time.Since(c.last.forWindows) < windowsRest:
		return "the last one was " + time.Since(c.last.forWindows).String() + " ago"
	case open || c.report.State == published.StateApplying:
		return "its node agent is at work"
	}
	return ""
}

// loses returns which input is deleted although no person has confirmed it.
func (c change) loses() string {
	confirmed := strings.Split(c.before.Annotations[published.ConfirmAnnotation], ",")
	for _, input := range []published.Input{published.InputMirrors, published.InputSettings} {
		if slices.Contains(c.was.Inputs, input) && !slices.Contains(c.is.Inputs, input) && !slices.Contains(confirmed, string(input)) {
			return string(input)
		}
	}
	return ""
}

// judgeOrder checks that canaries go first, and that what fails goes no further. What only values of nodes differ in is not judged.
func (w *world) judgeOrder(c change, nodes []corev1.Node) {
	layer := c.is.Cluster.Digest
	if c.is.Urgent || c.was.Cluster.Digest == layer {
		return
	}
	limits := w.recentSettings()
	if slices.ContainsFunc(limits, func(x settings) bool { return x.operators > 1 }) {
		return // each has canaries of its own, and one learns late of those of the other
	}
	proved := w.trail.proved[layer]
	if proved == nil {
		proved = map[string]bool{}
		w.trail.proved[layer] = proved
	}
	var unproved, failed []string
	hosts := 0
	for _, n := range nodes {
		d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		if err != nil || d.Cluster.Digest != layer || n.Name == c.before.Name {
			continue
		}
		if w.awaitsExecutables(n, d) != w.awaitsExecutables(c.before, c.was) || !slices.Equal(d.Inputs, c.is.Inputs) || buildOf(n) != buildOf(c.before) {
			continue // it gets another bundle or is of another kind, with a canary of its own, or keeps this one until a deletion is confirmed
		}
		r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		s, _ := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
		_, paused := n.Annotations[published.PausedAnnotation]
		switch {
		case r.Refused != "":
			// it is told again
		case r.Desired == d.Bundle && (r.State == published.StateRolledBack || r.State == published.StateFailed && !r.Heals()):
			if time.Since(reportedAt(n)) < noticed {
				continue // the operator may not know
			}
			failed = append(failed, fmt.Sprintf("%s (%s: %s)", n.Name, r.Fault, published.Shorten(r.Message)))
			if r.BlamesHost() {
				hosts++
			}
		case r.Desired == d.Bundle && r.Applied == d.Bundle && (s.Turn.Bundle != d.Bundle || !s.Turn.Canary || !s.Turn.Confirmed.IsZero()):
			proved[n.Name] = true
		case r.Applied == "" || paused || !observer.IsReady(n) || n.Spec.Unschedulable && !observer.IsCordonedByUs(n) || r.WaitsForRoom() || r.BlamesHost() || !s.Postponed.IsZero():
			// it joins, or another node is the canary
		default:
			unproved = append(unproved, n.Name)
		}
	}
	fewest, most, failures := 1<<10, 0, 0
	for _, x := range limits {
		fewest, most, failures = min(fewest, x.canaries), max(most, x.canaries), max(failures, x.failureLimit)
	}
	if open := len(proved) >= fewest; !open && len(unproved)+len(failed)-hosts >= most-len(proved) {
		w.observer.Violate(ruleCanary, "%s, after %v, of which %v failed", c.before.Name, append(unproved, failed...), failed)
	}
	if len(failed)-min(hosts, 1) >= failures {
		w.observer.Violate(ruleFailures, "%s, after %v, %d of them for their hosts alone", c.before.Name, failed, hosts)
	}
}

// buildOf is the build of Windows, without the number of its update.
func buildOf(n corev1.Node) string {
	parts := strings.SplitN(n.Status.NodeInfo.KernelVersion, ".", 4) //nolint:mnd // three are the build
	return strings.Join(parts[:min(len(parts), 3)], ".")
}

// awaitsExecutables reports whether a node lacks the executables of the present release.
func (w *world) awaitsExecutables(n corev1.Node, d published.Desired) bool {
	is := w.present().digest(w.minor())
	return d.Payload != is && n.Annotations[published.PayloadAnnotation] != string(is)
}

// reportedAt is when a node agent has changed its report last.
func reportedAt(n corev1.Node) (last time.Time) {
	for _, m := range n.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), published.ReportAnnotation) && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// judgeCordon is called when an operator has changed a Node.
func (w *world) judgeCordon(before, after corev1.Node) {
	if observer.IsCordonedByUs(after) && !observer.IsCordonedByUs(before) && after.Annotations[windowsnode.ScaleDownAnnotation] != "true" {
		w.observer.Violate(ruleDrained, "%s is cordoned, and the autoscaler may remove it", before.Name)
	}
	r, err := published.DecodeReport(before.Annotations[published.ReportAnnotation])
	asked := bundle.Of([]byte(before.Annotations[published.RebootAnnotation]))
	if observer.IsCordonedByUs(after) && !observer.IsCordonedByUs(before) && w.isOutsideOfWindow() && (before.Annotations[published.RebootAnnotation] == "" || asked == r.Rebooted) {
		w.observer.Violate(ruleWindow, "%s is cordoned", before.Name)
	}
	if err == nil && r.WaitsForRoom() && r.Desired != "" && !before.Spec.Unschedulable && observer.IsCordonedByUs(after) {
		if d, err := published.DecodeDesired(before.Annotations[published.DesiredAnnotation]); err == nil && d.Bundle == r.Desired {
			w.observer.Violate(ruleDrained, "%s is cordoned, and its disk is full", before.Name)
		}
	}
}

// judgeLayers is called when a node was told of layers.
func (w *world) judgeLayers(node string, d published.Desired) {
	var role rbacv1.Role
	if w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: layers.Access}, &role) != nil {
		return
	}
	for _, name := range slices.Concat(d.Cluster.Names(), d.Node.Names()) {
		err := w.Get(w.ctx, client.ObjectKey{Namespace: gather.OperatorNamespace, Name: name}, &corev1.Secret{})
		isReadable := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, name) })
		if apierrors.IsNotFound(err) || !isReadable {
			w.observer.Violate(ruleTold, "%s: %s (%v), readable %t", node, name, err, isReadable)
		}
	}
}

// judgeBoot is called when the node agent boots a host. It may be at work with a bundle that another one has followed since. What an operator has
// written in the same moment is known a moment later: agents may be faster than the judge of the write.
func (w *world) judgeBoot(name string) {
	pause(w.ctx, time.Millisecond)
	n, ok := w.observer.Snapshot()[name]
	var now corev1.Node
	if w.Get(w.ctx, client.ObjectKey{Name: name}, &now) == nil {
		n, ok = now, true // the observer may not have seen yet what the agent has just reported
	}
	w.trail.mu.Lock()
	defer w.trail.mu.Unlock()
	report, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	if last := w.trail.nodes[n.UID]; ok && last != nil && time.Since(w.trail.restored) > answersWithin && last.desired.MaxImpact != bundle.ImpactReboot && (err != nil || !last.reboots[report.Desired]) {
		w.observer.Violate(ruleBoot, "%s boots with at most %s", name, last.desired.MaxImpact)
	}
}
