package world

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"fmt"
	"net"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/windowsnode"
	"wmco/internal/test/existing"
	"wmco/internal/test/observer"
)

// The rules about hosts that join.
const (
	ruleLogin       = "an operator logs in to a host that works, and has not asked for it"
	ruleCertificate = "a certificate is approved for a key that its host does not have"
	ruleImpostor    = "a host with another key than the one that is pinned is logged in to"
)

// unrestOfHosts returns why the hosts that are on are not at rest: those with an entry are nodes, the others have nothing any longer.
func (w *world) unrestOfHosts(nodes map[string]corev1.Node) string {
	for _, h := range w.allHosts() {
		if !h.IsOn() || h.impostor {
			continue
		}
		n, is := nodes[h.name]
		snapshot, err := h.Snapshot(w.ctx)
		switch {
		case err != nil:
			return err.Error()
		case h.listed && !is:
			return h.name + " has an entry, and is no node: " + w.stateOf(h)
		case h.listed && (!observer.IsAtRest(n) || n.Spec.Unschedulable || windowsnode.HasTaint(&n, windowsnode.RemovingTaint)):
			return observer.DescribeNode(n) + w.stateOf(h)
		case h.listed && cmp.Or(w.notUpgraded(n), w.unlikeKeys(h), w.unlikeKubelet(n)) != "":
			return cmp.Or(w.notUpgraded(n), w.unlikeKeys(h), w.unlikeKubelet(n))
		case !h.listed && is:
			return fmt.Sprintf("%s has no entry, and is a node, whose removal is %+v: %s", h.name, removalOf(n), observer.DescribeNode(n))
		case !h.listed && leftOn(snapshot, h.stays()...) != "":
			return h.name + " has no entry, and has " + leftOn(snapshot, h.stays()...) + w.stateOf(h)
		}
	}
	for _, h := range w.allHosts() {
		w.observer.Excuse(h.name, !h.IsOn())
	}
	return ""
}

// stays is what a removal leaves: the program that has done it over SSH, and some of the existing operator, but no key of its agent (docs/takeover.md).
func (h *host) stays() []string {
	if h.returned {
		return []string{bundle.UploadFolder, existing.Agent, `C:\Temp`}
	}
	return []string{bundle.UploadFolder}
}

// stateOf describes a host, for messages.
func (w *world) stateOf(h *host) string {
	var list certificatesv1.CertificateSigningRequestList
	_ = w.List(w.ctx, &list) // none while the API server is away
	var requests []string
	for _, r := range list.Items {
		requests = append(requests, fmt.Sprintf("%s of %s %v", r.Spec.SignerName, r.Spec.Username, r.Status.Conditions))
	}
	return fmt.Sprintf(", services %v, logins %d, requests %v", h.Starts(), h.ssh.Logins(), requests)
}

// countHosts returns how many Nodes of hosts there have to be: hosts that are off may be nodes.
func (w *world) countHosts(nodes map[string]corev1.Node) int {
	count := 0
	for _, h := range w.allHosts() {
		if _, is := nodes[h.name]; is || isListed(h) {
			count++
		}
	}
	return count
}

// unlikeHosts returns which host does not have what is rendered for it.
func (w *world) unlikeHosts(rendered map[string]desired.Rendered) string {
	for _, h := range w.allHosts() {
		if !isListed(h) {
			continue
		}
		r, ok := rendered[h.name]
		if !ok {
			return "nothing is rendered for " + h.name
		}
		request, err := r.ArchiveRequest(w.present().contents)
		if err != nil {
			return err.Error()
		}
		seen, err := h.Observe(w.ctx, request)
		if err != nil {
			return fmt.Sprintf("comparing %s: %v", h.name, err)
		}
		if !seen.InSync {
			return fmt.Sprintf("%s has something else than its bundle: %+v", h.name, seen.Actions)
		}
	}
	return ""
}

// noteLogins is called when all hosts have come to rest.
func (w *world) noteLogins() {
	for _, h := range w.allHosts() {
		h.rested, h.logins = true, h.ssh.Logins()
	}
}

// checkLogins is called before anything happens to hosts that are at rest: no operator has logged in since.
func (w *world) checkLogins() {
	for _, h := range w.allHosts() {
		if h.rested && !h.impostor && h.ssh.Logins() != h.logins {
			w.observer.Violate(ruleLogin, "%s: %d logins at rest", h.name, h.ssh.Logins()-h.logins)
		}
		h.rested = false
	}
}

// calmFor is how long a host has to be a node that works until no login is expected.
const calmFor = 45 * time.Minute

// dial is how operators reach hosts. Each attempt is judged: none is needed for a host that has joined, whose agent reports, that has its entry and the
// executables of the operator (docs/keys.md, When the operator logs in).
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, _ := net.SplitHostPort(address)
	for _, h := range w.copyHosts() {
		if h.address != name && h.dns != name && !slices.Contains(h.had, name) {
			continue
		}
		h.dials.Add(1)
		var n corev1.Node
		w.mu.Lock()
		calm := h.listed && isUndisturbed(h)
		w.mu.Unlock()
		if err := w.Get(w.ctx, client.ObjectKey{Name: h.name}, &n); err == nil && calm && (w.worksAlone(n) || w.fetchesAlone(n)) {
			w.observer.Violate(ruleLogin, "%s: %s", h.name, observer.DescribeNode(n))
		}
	}
	if at, err := w.names.LookupHost(ctx, name); err == nil {
		address = net.JoinHostPort(at[0], port)
	}
	return w.network.Dial(ctx, network, address)
}

func (w *world) copyHosts() []*host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.allHosts()
}

// worksAlone reports whether a node is one that has joined long ago, whose agent and kubelet report, with what the operator has.
func (w *world) worksAlone(n corev1.Node) bool {
	return observer.IsCurrent(n) && n.Annotations[published.VersionAnnotation] == w.present().version && reportsLong(n)
}

// fetchesAlone is for a node that has joined long ago and lacks executables, which only registries may give it.
func (w *world) fetchesAlone(n corev1.Node) bool {
	isOther := func(s settings) bool { return s.from != "Registry" }
	return n.Annotations[published.VersionAnnotation] != "" && reportsLong(n) && !slices.ContainsFunc(w.recentSettings(), isOther)
}

func reportsLong(n corev1.Node) bool {
	beat := time.Time{}
	for _, c := range n.Status.Conditions {
		if c.Type == published.Condition {
			beat = c.LastHeartbeatTime.Time
		}
	}
	return observer.IsReady(n) && time.Since(n.CreationTimestamp.Time) > calmFor && time.Since(beat) < published.SilentAfter && n.DeletionTimestamp == nil
}

// mayDeleteHost reports whether an operator may delete the Node of a host: its entry was removed, it joins again because its certificate has expired, or it
// is no host.
func (w *world) mayDeleteHost(h *host) bool {
	return h == nil || !h.listed || time.Since(h.disturbed) < w.certificates
}

// hasKey reports whether the kubelet of a host waits with a key for its first certificate, or has one.
func (h *host) hasKey(public any) bool {
	for _, name := range []string{"kubelet-client.key.tmp", "kubelet-client-current.pem"} {
		own, err := keyutil.ParsePrivateKeyPEM([]byte(h.Text(`C:\var\lib\kubelet\pki\` + name)))
		if key, ok := own.(*ecdsa.PrivateKey); err == nil && ok && key.PublicKey.Equal(public) {
			return true
		}
	}
	return false
}
