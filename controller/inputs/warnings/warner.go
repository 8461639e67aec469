package warnings

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	"wmco/render/preview"
	"wmco/render/review"
)

const (
	// defaultLimit is how long an answer takes at most. The API server waits for 2 seconds (deploy/warnings), and applies what it has no answer for.
	defaultLimit = 1500 * time.Millisecond
	// mostNodes is how many nodes are rendered, twice. Changes of these inputs are mostly the same for all.
	mostNodes = 40
	// mostLines and mostLength are how many warnings an answer has, and of how many bytes: an API server cuts longer ones
	// (kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers, Response).
	mostLines  = 4
	mostLength = 250
)

// Warner answers the requests of the API server about objects that Windows nodes depend on.
type Warner struct {
	// Read reads the inputs from a reader of objects.
	Read func(context.Context, client.Reader) (*desired.Hosts, error)
	// Cache has what the operator watches, which are Wants. Nothing else is asked about.
	Cache client.Client
	Wants []objects.Want
	Log   logr.Logger
	// Limit is how long an answer takes at most; 0 is less than the API server waits.
	Limit time.Duration

	// busy holds a place while a request is worked on: predictions take a processor.
	busy chan struct{}
}

// NewWarner returns a Warner that works on one request at a time.
func NewWarner(w Warner) *Warner {
	w.busy = make(chan struct{}, 1)
	w.Limit = cmp.Or(w.Limit, defaultLimit)
	return &w
}

// Handle implements admission.Handler. It allows every request.
func (w *Warner) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, w.Limit)
	defer cancel()
	lines, err := w.warningsOf(ctx, req)
	if err != nil {
		// Without the error, which may quote the object.
		w.Log.V(1).Info("a change is not predicted", "kind", req.Kind.Kind, "namespace", req.Namespace, "name", req.Name, "timeout", ctx.Err() != nil)
	}
	return admission.Allowed("").WithWarnings(lines...)
}

func (w *Warner) warningsOf(ctx context.Context, req admission.Request) ([]string, error) {
	c, err := changeOf(req)
	if err != nil || !w.isWanted(c) {
		return nil, err
	}
	select {
	case w.busy <- struct{}{}:
		defer func() { <-w.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	some, err := newSample(ctx, w.Cache, mostNodes)
	if err != nil {
		return nil, err
	}
	if some.total > 0 && changesProxySpec(req) {
		return []string{proxyFollows}, nil
	}
	before, _, err := w.renderSide(ctx, &proposed{Client: w.Cache, sample: some})
	if err != nil {
		return nil, err
	}
	after, findings, err := w.renderSide(ctx, &proposed{Client: w.Cache, sample: some, change: &c})
	if err != nil {
		return nil, err
	}
	return warningLines(review.Compare(before, after), some, findings), ctx.Err()
}

// proxyFollows is said of a Proxy whose spec changes: nodes follow its status, which is written a moment later.
const proxyFollows = "Windows nodes change when the network operator has written the status of Proxy/cluster: their services restart"

// changesProxySpec reports whether a request changes the spec of the cluster's proxy.
func changesProxySpec(req admission.Request) bool {
	if req.Kind.Kind != "Proxy" || req.Operation != admissionv1.Update {
		return false
	}
	var before, after struct {
		Spec configv1.ProxySpec `json:"spec"`
	}
	if json.Unmarshal(req.OldObject.Raw, &before) != nil || json.Unmarshal(req.Object.Raw, &after) != nil {
		return false
	}
	return !reflect.DeepEqual(before, after)
}

// changeOf returns what a request changes.
func changeOf(req admission.Request) (change, error) {
	c := change{
		kind: schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind},
		key:  client.ObjectKey{Namespace: req.Namespace, Name: req.Name},
	}
	if req.Operation == admissionv1.Delete {
		return c, nil
	}
	c.object = &unstructured.Unstructured{}
	if err := c.object.UnmarshalJSON(req.Object.Raw); err != nil {
		return c, err
	}
	c.key.Name = c.object.GetName()
	return c, nil
}

// isWanted reports whether nodes depend on the object.
func (w *Warner) isWanted(c change) bool {
	return slices.ContainsFunc(w.Wants, func(want objects.Want) bool {
		return want.Group == c.kind.Group && want.Version == c.kind.Version && want.Kind == c.kind.Kind &&
			(want.Namespace == "" || want.Namespace == c.key.Namespace) && (len(want.Names) == 0 || slices.Contains(want.Names, c.key.Name))
	})
}

// renderSide returns the nodes as they are rendered from a reader, and the findings about the inputs. Where those are refused, the nodes have no bundle.
func (w *Warner) renderSide(ctx context.Context, from *proposed) ([]review.Node, bundle.Findings, error) {
	hosts, err := w.Read(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	list, findings, err := hosts.RenderBundles(hosts.ListJoined())
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	var nodes []review.Node
	for _, r := range list {
		nodes = append(nodes, review.Node{Name: r.Node.ID(), Address: r.Node.Address, Bundle: r.Bundle.Bundle, Findings: preview.Shown(r.Findings)})
	}
	if len(nodes) == 0 {
		// What is wrong with the inputs is said without nodes too.
		nodes = []review.Node{{Findings: preview.Shown(findings)}}
	}
	return nodes, desired.BlockingFindings(hosts.Findings), nil
}

// warningLines returns the sentence of wmco diff, and what to do about new findings. Nothing is said of a change that no node notices.
func warningLines(r review.Review, some sample, blocking bundle.Findings) []string {
	var lines []string
	added := slices.DeleteFunc(slices.Clone(r.Findings.Added), func(f bundle.Finding) bool { return f.Severity == bundle.SeverityInfo })
	r.Findings.Added, r.Findings.Removed = added, nil
	r.Added, r.Removed = nil, nil
	switch {
	case len(blocking) > 0 && len(added) > 0:
		lines = append(lines, "the inputs of Windows nodes would be refused: all nodes keep what they have")
	case len(r.Groups)+len(added) > 0:
		lines = append(lines, scaleReview(r, some).Summary())
	}
	for _, f := range added {
		if len(deletions.HoldingFindings(bundle.Findings{f})) > 0 {
			lines = append(lines, "no node gets this until it is confirmed: no pod could start with it (docs/operations.md, Changes that are held)")
		}
		lines = append(lines, warningLine(f, lines[0]))
	}
	for i, l := range lines {
		lines[i] = published.ShortenTo(strings.Join(strings.Fields(l), " "), mostLength)
	}
	return lines[:min(len(lines), mostLines)]
}

// warningLine returns a finding, and of one that was said already what to do.
func warningLine(f bundle.Finding, said string) string {
	if f.Fix != "" && strings.Contains(said, f.Message) {
		return "fix: " + f.Fix
	}
	text := f.Message
	if where := f.Object.String(); where != "" {
		text = where + ": " + text
	}
	if f.Severity == bundle.SeverityError {
		text = "error: " + text
	}
	if f.Fix != "" {
		text += " (fix: " + f.Fix + ")"
	}
	return text
}

// scaleReview returns the review of all nodes for that of a sample.
func scaleReview(r review.Review, some sample) review.Review {
	n := len(some.names)
	if n == 0 || some.total == n {
		return r
	}
	r.Groups = slices.Clone(r.Groups)
	for i, g := range r.Groups {
		r.Groups[i].Nodes = make([]string, (len(g.Nodes)*some.total+n-1)/n)
	}
	return r
}
