package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// NewClusterReader reads a live cluster: objects with known names one by one, all others as lists. A missing name is
// not a finding. A missing kind is one, unless the want is optional, and so is a forbidden request. Objects have no
// Source and no Line.
func NewClusterReader(r client.Reader) Reader { return &clusterReader{client: r} }

// NewCachedClusterReader is NewClusterReader for an informer cache that is read again and again: the digest of an
// object that has not changed is not made again, and objects of the cache are not copied. One reading after the other
// is made.
func NewCachedClusterReader(r client.Reader) Reader {
	return &clusterReader{client: r, digests: &knownDigests{}}
}

type clusterReader struct {
	client client.Reader
	// digests is nil where each object is read once.
	digests *knownDigests
}

// scoper is the part of a client.Client that a client.Reader may lack.
type scoper interface {
	IsObjectNamespaced(obj runtime.Object) (bool, error)
}

// Read implements Reader. It returns an error if the cluster does not answer.
func (c *clusterReader) Read(ctx context.Context, wants []Want) (Set, error) {
	found := make(map[identity]Object)
	var findings bundle.Findings
	defer c.digests.beginReading()()
	for _, w := range wants {
		size := 0
		err := c.fetchWanted(ctx, w, func(items []unstructured.Unstructured) (more bool) {
			for _, item := range items {
				p, bad := fromCluster(item, w)
				switch {
				case bad != nil:
					findings = append(findings, flawedFinding(p, *bad))
				case w.admitsObject(p):
					p.Content = c.digests.digestOf(item, p)
					found[p.objectIdentity()] = p.Object
					size += len(p.JSON)
				}
			}
			return size < boundedBytes
		})
		refused, err := refusalFindings(w, err)
		if err != nil {
			return Set{}, err
		}
		findings = append(findings, refused...)
	}
	return newSet(found, findings), nil
}

// fromCluster converts an object of the client.
func fromCluster(u unstructured.Unstructured, w Want) (parsed, *flaw) {
	p, bad := identifyObject(u.Object, typeMeta{w.Kind, apiVersion(w.Group, w.Version)})
	if bad == nil {
		bad = p.encodeJSON(u.Object)
	}
	return p, bad
}

// fetchWanted gives the objects of the want and few others to take, at once or in parts. If some of the names are
// forbidden, it gives the other objects and returns an error.
func (c *clusterReader) fetchWanted(ctx context.Context, w Want, take func([]unstructured.Unstructured) (more bool)) error {
	byName, err := c.canGet(w)
	switch {
	case err != nil:
		return &requestError{"discover", w, "", err}
	case byName:
		items, err := c.getEachName(ctx, w)
		take(items)
		return err
	}
	return c.listKind(ctx, w, take)
}

// requestError is an error with the verb, the kind and the name of the request.
type requestError struct {
	verb string
	want Want
	// name is empty for a list.
	name string
	err  error
}

// Error implements error.
func (e *requestError) Error() string {
	what := e.verb + " " + e.want.Kind
	if e.name != "" {
		what += " " + e.name
	}
	if e.want.Namespace != "" {
		what += " in namespace " + e.want.Namespace
	}
	if errors.Is(e.err, context.Canceled) {
		return what + ": interrupted"
	}
	var network interface{ Timeout() bool }
	if errors.As(e.err, &network) && network.Timeout() {
		what += ": the API server gives no answer"
	}
	return what + ": " + e.err.Error()
}

// Unwrap returns the error of the client.
func (e *requestError) Unwrap() error { return e.err }

// canGet reports whether the names of the objects are known, and their namespaces if they have any.
func (c *clusterReader) canGet(w Want) (bool, error) {
	if len(w.Names) == 0 || w.NamePrefix != "" {
		return false, nil
	}
	scopes, ok := c.client.(scoper)
	if !ok || w.Namespace != "" {
		return true, nil
	}
	namespaced, err := scopes.IsObjectNamespaced(NewObject(w.groupVersionKind()))
	return !namespaced, err
}

// getEachName requests each name. A forbidden name does not stop it from requesting the others.
func (c *clusterReader) getEachName(ctx context.Context, w Want) ([]unstructured.Unstructured, error) {
	var items []unstructured.Unstructured
	var forbidden error
	for _, name := range w.Names {
		object := NewObject(w.groupVersionKind())
		err := c.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, object)
		switch {
		case err == nil:
			items = append(items, *object)
		case apierrors.IsForbidden(err):
			forbidden = &requestError{"get", w, name, err}
		case !apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			return nil, &requestError{"get", w, name, err}
		case kindIsGone(err):
			return nil, errNotServed
		}
	}
	return items, forbidden
}

// kindIsGone reports whether the server does not have the path, rather than the object. It answers with a Status only
// if the object is missing; client-go makes a Status for a bare 404 and notes that as a cause. A client that has cached
// the kind requests it even after it was removed.
func kindIsGone(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

const (
	// partSize is how many objects of a bounded kind are in memory whole, each as large as an object may be.
	partSize = 25
	// boundedBytes is how much is kept of a bounded kind, as JSON.
	boundedBytes = 64 << 20
)

// errMore is the error for a bounded kind of which the cluster has more.
var errMore = errors.New("there is more")

// listKind requests all objects of the kind, in the namespace and with the labels of the want.
func (c *clusterReader) listKind(ctx context.Context, w Want, take func([]unstructured.Unstructured) (more bool)) error {
	list := NewList(w.groupVersionKind())
	options := []client.ListOption{
		client.InNamespace(w.Namespace), client.MatchingLabels(w.Labels),
		client.UnsafeDisableDeepCopyOption(c.digests != nil),
	}
	if w.Bounded {
		options = append(options, client.Limit(partSize))
	}
	for {
		err := c.client.List(ctx, list, append(options, client.Continue(list.GetContinue()))...)
		switch {
		case apierrors.IsNotFound(err):
			return errNotServed
		case err != nil:
			return &requestError{"list", w, "", err}
		}
		switch goesOn := take(list.Items); {
		case !w.Bounded || list.GetContinue() == "": // a cache gives all at once, and a token that it does not take
			return nil
		case !goesOn:
			return errMore
		}
		list.Items = nil
	}
}

// WatchError means that a cache cannot list and watch a kind: Err is the API server's answer.
type WatchError struct{ Err error }

func (e *WatchError) Error() string { return e.Err.Error() }

// Unwrap implements errors.
func (e *WatchError) Unwrap() error { return e.Err }

// errNotServed is the error for a kind that the cluster does not serve.
var errNotServed = errors.New("the kind is not served")

// NewObject returns an empty object of a kind.
func NewObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// NewList returns an empty list of objects of a kind.
func NewList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func (w Want) groupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind}
}

// refusalFindings converts an error that retrying does not change into findings, and returns any other.
func refusalFindings(w Want, err error) (bundle.Findings, error) {
	switch {
	case err == nil:
		return nil, nil
	case meta.IsNoMatchError(err) || errors.Is(err, errNotServed):
		if w.Optional {
			return nil, nil
		}
		return bundle.Findings{notServedFinding(w)}, nil
	case apierrors.IsForbidden(err):
		return bundle.Findings{forbiddenFinding(w, err)}, nil
	case errors.Is(err, errMore):
		return bundle.Findings{moreFinding(w)}, nil
	}
	return nil, err
}

func moreFinding(w Want) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputTooLarge, Object: bundle.Ref{Kind: w.Kind, Namespace: w.Namespace},
		Message: fmt.Sprintf(
			"the cluster has more than %s of %s objects in namespace %s, and the rest is not read",
			sizeText(boundedBytes), w.Kind, w.Namespace,
		),
		Fix: "look for who makes so many of them",
	}
}

func notServedFinding(w Want) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.KindNotServed, Object: bundle.Ref{Kind: w.Kind},
		Message: fmt.Sprintf("the cluster does not serve %s of %s", w.Kind, apiVersion(w.Group, w.Version)),
		Fix:     "install the component that defines the kind, or use a version of this program for this cluster",
	}
}

// forbiddenFinding is the finding for a forbidden request. It has the rule that allows it.
func forbiddenFinding(w Want, err error) bundle.Finding {
	verb, resource := forbiddenVerb(err), resourceOf(w, err)
	verbs := fmt.Sprintf("%q", verb)
	watched := errors.As(err, new(*WatchError))
	if watched {
		verb, verbs = "list", `"list", "watch"`
	}
	rule := fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]", w.Group, resource, verbs)
	if verb == "get" || watched && len(w.Names) == 1 {
		rule += ", resourceNames: [" + quoteNames(w.Names) + "]"
	}
	where, role := "in the whole cluster", "a ClusterRole"
	if w.Namespace != "" {
		where, role = "in namespace "+w.Namespace, "a Role in namespace "+w.Namespace
	}
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.Forbidden, Object: bundle.Ref{Kind: w.Kind, Namespace: w.Namespace},
		Message: fmt.Sprintf("the user cannot %s %s %s", verb, schema.GroupResource{Group: w.Group, Resource: resource}, where),
		Fix:     fmt.Sprintf("add the rule %s} to %s that is bound to this user", rule, role),
	}
}

// forbiddenVerb returns the verb of the forbidden request.
func forbiddenVerb(err error) string {
	var request *requestError
	if errors.As(err, &request) && request.verb != "discover" {
		return request.verb
	}
	return "list"
}

// resourceOf returns the resource that the cluster names in its answer, or else the usual plural of the kind.
func resourceOf(w Want, err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind != "" {
		return status.Status().Details.Kind
	}
	plural, _ := meta.UnsafeGuessKindToResource(w.groupVersionKind())
	return plural.Resource
}

// quoteNames returns the names, sorted and each in quotes.
func quoteNames(names []string) string {
	out := slices.Clone(names)
	slices.Sort(out)
	for i, name := range out {
		out[i] = strconv.Quote(name)
	}
	return strings.Join(out, ", ")
}
