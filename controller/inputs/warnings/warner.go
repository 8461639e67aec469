package warnings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/deletions"
	"wmco/controller/inputs/desired"
	policies "wmco/deploy/admission"
	"wmco/render/preview"
	"wmco/render/review"
)

const (
	// mostNodes is how many nodes are rendered, twice. Changes of these inputs are mostly the same for all.
	mostNodes = 40
	// mostLines and mostLength are how many warnings an answer has, and of how many bytes: an API server cuts longer
	// ones (kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers, Response).
	mostLines  = 4
	mostLength = 250
)

// Warner answers the requests of the API server about objects that Windows nodes depend on.
type Warner struct {
	// Read reads the inputs from a reader of objects, without credentials.
	Read func(context.Context, client.Reader) (*desired.Hosts, error)
	// Cache has what the operator watches, which are Wants. Nothing else is asked about.
	Cache client.Client
	Wants []objects.Want
	Log   logr.Logger
	// Limit is how long an answer takes at most (door); 0 is less than the API server waits.
	Limit time.Duration
}

// Handle implements admission.Handler. It allows every request.
func (w *Warner) Handle(ctx context.Context, req admission.Request) admission.Response {
	lines, err := w.warningsOf(ctx, req)
	if err != nil {
		// Without the error, which may quote the object.
		w.Log.V(1).Info("a change is not predicted", "kind", req.Kind.Kind, "namespace", req.Namespace, "name",
			req.Name, "timeout", ctx.Err() != nil)
	}
	return admission.Allowed("").WithWarnings(lines...)
}

func (w *Warner) warningsOf(ctx context.Context, req admission.Request) ([]string, error) {
	if !w.isWanted(req) {
		return nil, nil
	}
	before, after, err := changesOf(req)
	if err != nil {
		return nil, err
	}
	some, err := newSample(ctx, w.Cache, mostNodes)
	if err != nil || some.total == 0 && holdsCredentials(req.Kind.Kind) {
		return nil, err
	}
	switch {
	case !holdsCredentials(req.Kind.Kind):
		return w.compareSides(ctx, some, before, after)
	case req.Kind.Kind == kindProxy && changesPart(before, after, "spec"):
		return []string{proxyFollows}, nil
	case req.Kind.Kind == kindSecret && after.object == nil:
		return []string{inputsRefused}, nil
	case req.Kind.Kind == kindSecret && changesPart(before, after, "data"):
		return []string{pullSecretFollows}, nil
	}
	return nil, nil
}

const (
	kindProxy  = "Proxy"
	kindSecret = "Secret"
)

// holdsCredentials reports whether objects of a kind hold credentials. Such an object is never put into the place of
// the one of the cluster: whoever reaches the port asks without a credential, and would hear whether a guess is right.
func holdsCredentials(kind string) bool { return kind == kindProxy || kind == kindSecret }

const (
	// proxyFollows is the warning about a Proxy whose spec changes: nodes follow its status, which is written a moment later.
	proxyFollows = "Windows nodes restart their services when the network operator has written the status of Proxy/cluster"
	// pullSecretFollows is the warning about a pull secret that changes (render/mirrors, credentials).
	pullSecretFollows = "Windows nodes get credentials of this Secret for their mirrors and pinned images, without " +
		"a restart; the number of nodes is not shown for a Secret"
	inputsRefused = "the inputs of Windows nodes would be refused, and all nodes keep their bundles"
)

// isWanted reports whether nodes depend on the object, and API servers ask about it (deploy/admission, WarningWebhook).
func (w *Warner) isWanted(req admission.Request) bool {
	return policies.AsksAbout(req.Kind.Group, req.Kind.Kind, req.Namespace, req.Name) &&
		slices.ContainsFunc(w.Wants, func(want objects.Want) bool {
			return want.Group == req.Kind.Group && want.Version == req.Kind.Version && want.Kind == req.Kind.Kind &&
				(want.Namespace == "" || want.Namespace == req.Namespace) &&
				(len(want.Names) == 0 || slices.Contains(want.Names, req.Name))
		})
}

// compareSides returns what the nodes change between the two.
func (w *Warner) compareSides(ctx context.Context, some sample, before, after change) ([]string, error) {
	was, _, err := w.renderSide(ctx, &proposed{Client: w.Cache, sample: some, change: &before})
	if err != nil {
		return nil, err
	}
	is, findings, err := w.renderSide(ctx, &proposed{Client: w.Cache, sample: some, change: &after})
	if err != nil {
		return nil, err
	}
	return warningLines(review.Compare(was, is), some, findings), ctx.Err()
}

// errCredentials is the error for inputs that a made-up object could be compared with.
var errCredentials = errors.New("the inputs have credentials")

// renderSide returns the nodes as they are rendered from a reader, and the findings about the inputs. Where those are
// refused, the nodes have no bundle.
func (w *Warner) renderSide(ctx context.Context, from *proposed) ([]review.Node, bundle.Findings, error) {
	hosts, err := w.Read(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	if !hosts.WithoutCredentials {
		return nil, nil, errCredentials
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
		nodes = append(nodes, review.Node{Name: r.Node.ID(), Address: r.Node.Address, Bundle: r.Bundle.Bundle,
			Findings: preview.Shown(r.Findings)})
	}
	if len(nodes) == 0 {
		// Findings about the inputs are shown without nodes too.
		nodes = []review.Node{{Findings: preview.Shown(findings)}}
	}
	return nodes, desired.BlockingFindings(hosts.Findings), nil
}

// warningLines returns the sentence of wmco diff, and what to do about new findings. There is no warning about a change that
// no node notices.
func warningLines(r review.Review, some sample, blocking bundle.Findings) []string {
	var lines []string
	added := slices.DeleteFunc(slices.Clone(r.Findings.Added), func(f bundle.Finding) bool {
		return f.Severity == bundle.SeverityInfo
	})
	r.Findings = review.Findings{Added: added}
	r.Added, r.Removed = nil, nil
	switch {
	case len(blocking) > 0 && len(added) > 0:
		lines = append(lines, inputsRefused)
	case len(r.Groups)+len(added) > 0:
		lines = append(lines, scaleReview(r, some).Summary())
	}
	for _, f := range added {
		if len(deletions.HoldingFindings(bundle.Findings{f})) > 0 {
			lines = append(lines, "the change is held until you confirm it, because no pod could start with it (docs/held-changes.md)")
		}
		lines = append(lines, warningLine(f, lines[0]))
	}
	for i, l := range lines {
		lines[i] = published.ShortenTo(strings.Join(strings.Fields(l), " "), mostLength)
	}
	return lines[:min(len(lines), mostLines)]
}

// warningLine returns a finding, with its fix if it was shown already.
func warningLine(f bundle.Finding, shown string) string {
	if f.Fix != "" && strings.Contains(shown, f.Message) {
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
