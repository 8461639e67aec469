package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/protocol"
	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/layers"
	"wmco/controller/windowsnode"
	"wmco/layout"
	"wmco/preflight"
)

// lifeHost is a Windows host with its kubelet, its node agent and the pods of its node.
type lifeHost struct {
	number        int
	name, address string
	key           ssh.PublicKey
	// off is a host without power, stopped an agent whose service is stopped, blocked a budget that allows no eviction.
	off, stopped, blocked bool
	// existing is true while the host has the agent of the existing operator.
	existing bool
	// has is the bundle that was applied, executables the contents that an operator has copied.
	has         bundle.Bundle
	digest      bundle.Digest
	layers      []bundle.Digest
	executables map[bundle.Digest]bool
	// overlay is true once the agent has applied a bundle of a node: the network exists then.
	overlay bool
	// busy is the bundle that the agent applies, boots whether the host boots for it.
	busy  *published.Desired
	boots bool
	// told is what the agent is permitted, since when.
	told  string
	since time.Duration
	// slow is how often the agent does nothing, lost how many of its reports do not arrive.
	slow, lost int
	pods       int
}

// runsKubelet reports whether a kubelet runs on the host.
func (h *lifeHost) runsKubelet() bool { return !h.off && (h.existing || h.digest != "") }

// runsAgent reports whether the node agent of this operator does.
func (h *lifeHost) runsAgent() bool { return !h.off && !h.stopped && h.digest != "" }

// facts are those of the host.
func (h *lifeHost) facts() bundle.Facts {
	f := bundle.Facts{
		Schema: bundle.FactsSchema, HostName: strings.ToUpper(h.name), Addresses: []string{h.address}, OSBuild: "10.0.20348", DefenderRunning: true,
		DefaultRoute: bundle.DefaultRoute{Address: h.address, Gateway: "10.0.0.1"}, Features: []string{"Containers"},
	}
	if h.overlay {
		f.Addresses = append(f.Addresses, fmt.Sprintf("10.132.%d.2", h.number))
		f.Networks = []bundle.HNSNetwork{{Name: layout.OverlayNetwork, AddressPrefix: h.subnet(), ManagementIP: h.address}}
		f.Endpoints = []bundle.HNSEndpoint{{Name: "VIPEndpoint", Network: layout.OverlayNetwork, IP: fmt.Sprintf("10.132.%d.5", h.number)}}
	}
	return f
}

func (h *lifeHost) subnet() string { return fmt.Sprintf("10.132.%d.0/24", h.number) }

// apply applies a manifest to the host.
func (h *lifeHost) apply(m bundle.Manifest) {
	h.digest, h.layers, h.has = m.Digest, nil, bundle.Bundle{}
	for _, l := range m.Layers {
		h.layers = append(h.layers, l.Digest)
		if l.Layer.Kind == bundle.LayerCluster {
			h.has.Cluster = l.Layer
		} else {
			h.has.Node = l.Layer
		}
	}
	h.overlay = h.overlay || h.has.Node.Stage == bundle.StageJoined
	h.busy, h.boots, h.stopped, h.existing = nil, false, false, false
}

// answer does what a command over SSH does.
func (h *lifeHost) answer(words []string, stdin io.Reader) (any, error) {
	var m bundle.Manifest
	if slices.Contains([]string{"observe", "apply", "stage"}, words[0]) {
		r, err := archive.NewReader(stdin)
		if err != nil {
			return nil, err
		}
		m = r.Manifest
	}
	switch words[0] {
	case "facts":
		return h.facts(), nil
	case "pending-key":
		return remote.PendingKey{}, nil
	case "preflight":
		return preflight.Answer{}, nil
	case "confirm":
		return nil, nil
	case "observe":
		o := protocol.Observation{Schema: protocol.Schema, Bundle: m.Digest, Applied: h.digest, InSync: h.digest == m.Digest && !h.stopped, Impact: bundle.ImpactDrain}
		if o.InSync {
			o.Impact = bundle.ImpactNone
		}
		return o, nil
	case "apply":
		h.apply(m)
		fallthrough
	case "stage":
		for d := range m.PayloadDigests() {
			h.executables[d] = true
		}
	case "repair":
		h.stopped = false
	case "cleanup":
		*h = lifeHost{number: h.number, name: h.name, address: h.address, key: h.key, blocked: h.blocked, executables: map[bundle.Digest]bool{}}
	default:
		return nil, fmt.Errorf("the model knows no command %q", words[0])
	}
	return protocol.Event{Schema: protocol.Schema, Event: protocol.EventResult, Result: protocol.ResultApplied}, nil
}

// lifeNetwork is a transport to hosts.
type lifeNetwork struct {
	world *lifeWorld
	login *hosts.Login
}

func (*lifeNetwork) Connect(context.Context, remote.Target) error { return nil }

func (*lifeNetwork) Close() error { return nil }

func (*lifeNetwork) Transfer(context.Context, remote.Target, func(remote.Files) error) error {
	return remote.ErrNoSFTP
}

// Run implements remote.Transport.
func (n *lifeNetwork) Run(ctx context.Context, t remote.Target, c remote.Command) error {
	i := slices.IndexFunc(n.world.hosts, func(h *lifeHost) bool { return h.address == t.Host() && !h.off })
	if i < 0 {
		return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errors.New("connection refused")}
	}
	h := n.world.hosts[i]
	if pinned, err := n.login.Pinned(ctx, t); err != nil {
		return err
	} else if len(pinned) == 0 {
		if err := n.login.Pin(ctx, t, h.key); err != nil {
			return err
		}
	}
	signers, err := n.login.Signers(ctx)
	if err != nil {
		return err
	}
	n.login.NoteLogin(t, signers[0].PublicKey())
	var stdin bytes.Buffer
	if c.Stdin != nil {
		if err := c.Stdin(ctx, &stdin); err != nil {
			return err
		}
	}
	answer, err := h.answer(strings.Fields(c.Line)[1:], &stdin)
	if err != nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.Stdout(bytes.NewReader(text))
}

// RoundTrip answers what a drain asks of an API server.
func (w *lifeWorld) RoundTrip(r *http.Request) (*http.Response, error) {
	code := http.StatusOK
	var answer any
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
	switch path := r.URL.Path; {
	case path == "/api/v1/pods":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, h := range w.hosts {
			for i := range h.pods {
				if h.name == name {
					list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", h.name, i)}, Spec: corev1.PodSpec{NodeName: h.name}})
				}
			}
		}
		answer = list
	case strings.HasSuffix(path, "/eviction"):
		i := slices.IndexFunc(w.hosts, func(h *lifeHost) bool { return strings.Contains(path, "/pods/"+h.name+"-") })
		h := w.hosts[i]
		if h.blocked {
			refused := apierrors.NewTooManyRequests("the budget allows none", 0).ErrStatus
			refused.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			refused.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
			code, answer = http.StatusTooManyRequests, refused
			break
		}
		h.pods--
		answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}
	default:
		answer = policyv1.PodDisruptionBudgetList{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudgetList"}}
	}
	text, err := json.Marshal(answer)
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// kubelet registers the Node of a host, and reports its state.
func (w *lifeWorld) kubelet(h *lifeHost) {
	node, ok := w.node(h)
	if !ok {
		if !h.runsKubelet() || !h.existing && !w.isListed(h) { // without an entry, its certificate is not approved
			return
		}
		w.nodes++
		node = corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: h.name, UID: types.UID(fmt.Sprintf("node-%d", w.nodes)), Labels: map[string]string{corev1.LabelOSStable: "windows"},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}, CreationTimestamp: metav1.NewTime(w.clock.Now()),
		}}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: h.name}, {Type: corev1.NodeInternalIP, Address: h.address}}
		w.setReady(&node, h)
		w.must(w.client.Create(w.ctx, &node))
		h.told = ""
		return
	}
	if node.Annotations["k8s.ovn.org/hybrid-overlay-node-subnet"] == "" {
		w.annotate(h, "k8s.ovn.org/hybrid-overlay-node-subnet", h.subnet())
	}
	w.writeReady(h)
}

// writeReady writes the conditions of a Node, if they change or are older than lifeHeartbeat.
func (w *lifeWorld) writeReady(h *lifeHost) corev1.Node {
	node, ok := w.node(h)
	before := slices.Clone(node.Status.Conditions)
	if w.setReady(&node, h); ok && !slices.Equal(before, node.Status.Conditions) {
		w.must(w.client.Status().Update(w.ctx, &node))
	}
	return node
}

// lifeHeartbeat is how often kubelets and agents give a sign of life.
const lifeHeartbeat = 5 * time.Minute

// setReady sets the conditions of a Node: the cluster loses a kubelet that does not run.
func (w *lifeWorld) setReady(node *corev1.Node, h *lifeHost) {
	now := metav1.NewTime(w.clock.Now().Truncate(time.Second))
	status := corev1.ConditionUnknown
	switch {
	case h.runsKubelet() && h.boots:
		status = corev1.ConditionFalse
	case h.runsKubelet():
		status = corev1.ConditionTrue
	}
	set := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, alive bool) {
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		if i < 0 {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, LastHeartbeatTime: now})
			i = len(node.Status.Conditions) - 1
		}
		c := &node.Status.Conditions[i]
		if c.Status != status {
			c.Status, c.LastTransitionTime = status, now
		}
		if alive && (c.LastTransitionTime.Equal(&now) || now.Sub(c.LastHeartbeatTime.Time) >= lifeHeartbeat) {
			c.LastHeartbeatTime = now
		}
	}
	set(corev1.NodeReady, status, h.runsKubelet())
	if node.Annotations[published.ReportAnnotation] != "" && h.runsAgent() {
		applied := corev1.ConditionFalse
		if windowsnode.Decode(*node).Report.State == published.StateApplied {
			applied = corev1.ConditionTrue
		}
		set(published.Condition, applied, true)
	}
}

// agent does the next thing that the node agent of a host does.
func (w *lifeWorld) agent(h *lifeHost) {
	node, ok := w.node(h)
	if !ok || !h.runsAgent() || !h.runsKubelet() {
		return
	}
	if h.slow > 0 {
		h.slow--
		return
	}
	h.overlay = h.overlay || h.has.Node.Stage == bundle.StageJoined
	if h.boots {
		h.boots = false
	}
	d, err := published.DecodeDesired(node.Annotations[published.DesiredAnnotation])
	if err != nil || !d.IsSignedFor(published.NodeID{Name: node.Name, UID: string(node.UID)}) {
		w.report(h, published.Report{State: published.StateUnpublished})
		return
	}
	if text := string(d.Bundle) + string(d.MaxImpact) + d.Counter().String(); h.told != text {
		h.told, h.since = text, w.elapsed()
	}
	w.report(h, w.follow(h, node, d))
}

// follow brings the host to its published bundle as far as that is permitted.
func (w *lifeWorld) follow(h *lifeHost, node corev1.Node, d published.Desired) published.Report {
	r := published.Report{State: published.StateApplied, Desired: d.Bundle}
	if h.busy != nil && h.busy.Bundle == d.Bundle {
		w.applyDesired(h, d)
		return r
	}
	h.busy = nil
	if h.digest == d.Bundle {
		return r
	}
	next := bundle.Bundle{Cluster: w.layer(d.Cluster), Node: w.layer(d.Node)}
	m, err := next.Manifest()
	w.must(err)
	for x := range m.PayloadDigests() {
		if !h.executables[x] {
			r.State, r.Missing = published.StatePayloadMissing, append(r.Missing, string(x))
		}
	}
	if slices.Sort(r.Missing); r.State == published.StatePayloadMissing {
		return r
	}
	r.Impact = bundle.Diff(h.has, next).Impact()
	r.Expired = d.PermitFor > 0 && r.Impact.Rank() > bundle.ImpactRestart.Rank() && w.elapsed()-h.since > time.Duration(d.PermitFor)*time.Second
	switch {
	case r.Impact.Rank() > d.MaxImpact.Rank(), r.Expired:
		r.State = published.StateNeedsPermission
	case r.Impact.Rank() < bundle.ImpactRestart.Rank():
		w.applyDesired(h, d)
		r.Impact = ""
	default:
		if r.Impact.Rank() >= bundle.ImpactDrain.Rank() && node.Annotations[published.JoiningAnnotation] == "" && (h.pods > 0 || !node.Spec.Unschedulable) {
			w.breakLaw("%s changes with impact %s, cordoned %t, with %d pods", h.name, r.Impact, node.Spec.Unschedulable, h.pods)
		}
		h.busy, h.boots = &d, r.Impact == bundle.ImpactReboot
		r.State, r.Impact = published.StateApplying, ""
	}
	return r
}

func (w *lifeWorld) applyDesired(h *lifeHost, d published.Desired) {
	next := bundle.Bundle{Cluster: w.layer(d.Cluster), Node: w.layer(d.Node)}
	m, err := next.Manifest()
	w.must(err)
	h.apply(m)
}

// layer reads a layer that is published, as an agent does.
func (w *lifeWorld) layer(l published.Layer) bundle.Layer {
	known, ok := w.layers[l.Digest]
	if ok {
		return known
	}
	var err error
	if len(l.Inline) > 0 {
		known, err = l.Open(nil)
	} else {
		known, err = layers.ReadLayer(w.ctx, w.client, lifeNamespace, l.Digest)
	}
	w.must(err)
	w.layers[l.Digest] = known
	return known
}

// report writes a report of an agent. One that is lost is written again with the next.
func (w *lifeWorld) report(h *lifeHost, r published.Report) {
	facts := h.facts()
	r.Applied, r.Layers, r.Facts, r.Features = h.digest, h.layers, &facts, published.Features()
	text, err := r.Encode()
	w.must(err)
	if h.lost > 0 {
		h.lost--
		return
	}
	w.annotate(h, published.ReportAnnotation, text)
	w.writeReady(h)
}

// annotate writes an annotation of a Node, as whoever has the right to patch Nodes.
func (w *lifeWorld) annotate(h *lifeHost, key, value string) {
	node, ok := w.node(h)
	if !ok || node.Annotations[key] == value {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	w.must(err)
	w.must(w.client.Patch(w.ctx, &node, client.RawPatch(types.MergePatchType, patch)))
}
