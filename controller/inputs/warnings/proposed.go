package warnings

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"wmco/controller/base"
	"wmco/controller/windowsnode"
)

// change is one object as it was before a request or as it will be after it. Both come from the request: the answer
// reveals nothing about the object in the cluster to whoever asks about a made-up one.
type change struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
	// object is nil where there is none: before it is created, and after it is deleted.
	object *unstructured.Unstructured
}

// errOtherObject is the error for a request whose objects are not the one that it is about.
var errOtherObject = errors.New("an object of the request is another one than it is about")

// changesOf returns the object of a request before and after it.
func changesOf(req admission.Request) (before, after change, err error) {
	c := change{
		kind: schema.GroupVersionKind{Group: req.Kind.Group, Version: req.Kind.Version, Kind: req.Kind.Kind},
		key:  client.ObjectKey{Namespace: req.Namespace, Name: req.Name},
	}
	var is *unstructured.Unstructured
	if req.Operation != admissionv1.Delete {
		is, err = c.decodeObject(req.Object.Raw)
	}
	if err == nil && is != nil {
		c.key.Name = is.GetName() // a request about a name that the API server has made has none
	}
	was, errWas := c.decodeObject(req.OldObject.Raw)
	before, after = c, c
	before.object, after.object = was, is
	return before, after, errors.Join(err, errWas)
}

// decodeObject returns nil where there is no text.
func (c change) decodeObject(text []byte) (*unstructured.Unstructured, error) {
	if len(text) == 0 {
		return nil, nil //nolint:nilnil // null stands for no object
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if u.GroupVersionKind() != c.kind || u.GetNamespace() != c.key.Namespace || c.key.Name != "" &&
		u.GetName() != c.key.Name {
		return nil, errOtherObject
	}
	return u, nil
}

// changesPart reports whether a part of the object, such as its spec, differs. What is in the cluster has no part in
// that.
func changesPart(before, after change, part string) bool {
	partOf := func(c change) any {
		if c.object == nil {
			return nil
		}
		return c.object.Object[part]
	}
	return !reflect.DeepEqual(partOf(before), partOf(after))
}

// isObject reports whether an object is the one that changes.
func (c change) isObject(kind schema.GroupVersionKind, key client.ObjectKey) bool {
	return c.kind.GroupKind() == kind.GroupKind() && c.key == key
}

// proposed reads a cluster in which one object is as in a request, and in which there are few Windows nodes.
type proposed struct {
	client.Client
	change *change
	sample sample
}

// sample is some of the Windows Nodes.
type sample struct {
	// total is how many Windows Nodes there are, names are those of the sample.
	total int
	names map[string]bool
}

// newSample chooses at most so many of the Windows Nodes, spread over their names: nodes of one MachineSet have names
// that begin with the same text.
func newSample(ctx context.Context, from client.Reader, most int) (sample, error) {
	list := base.NewList(base.NodeKind())
	// Only names are read: nothing is copied from the cache.
	if err := from.List(ctx, list, client.MatchingLabels{corev1.LabelOSStable: windowsnode.Windows},
		client.UnsafeDisableDeepCopy); err != nil {
		return sample{}, err
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.GetName())
	}
	slices.Sort(names)
	s := sample{total: len(names), names: map[string]bool{}}
	for i := range min(most, len(names)) {
		s.names[names[i*len(names)/min(most, len(names))]] = true
	}
	return s, nil
}

// Get implements client.Reader.
func (p *proposed) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || p.change == nil || !p.change.isObject(u.GroupVersionKind(), key) {
		return p.Client.Get(ctx, key, o, options...)
	}
	if p.change.object == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: u.GroupVersionKind().Group,
			Resource: u.GetKind()}, key.Name)
	}
	u.Object = p.change.object.DeepCopy().Object
	return nil
}

// List implements client.Reader.
func (p *proposed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := p.Client.List(ctx, list, options...); err != nil {
		return err
	}
	u, ok := list.(*unstructured.UnstructuredList)
	if !ok {
		return nil
	}
	kind := u.GroupVersionKind()
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	o := (&client.ListOptions{}).ApplyOptions(options)
	if p.change != nil && p.change.kind.GroupKind() == kind.GroupKind() && (o.Namespace == "" || o.Namespace == p.change.key.Namespace) {
		u.Items = p.exchangeObject(u.Items, o.LabelSelector)
	}
	if p.sample.total > len(p.sample.names) {
		u.Items = p.sample.sampleItems(kind.GroupKind(), u.Items)
	}
	return nil
}

// exchangeObject returns the list with the object as it will be.
func (p *proposed) exchangeObject(items []unstructured.Unstructured,
	selector labels.Selector) []unstructured.Unstructured {
	items = slices.DeleteFunc(slices.Clone(items), func(u unstructured.Unstructured) bool {
		return client.ObjectKeyFromObject(&u) == p.change.key
	})
	if o := p.change.object; o != nil && (selector == nil || selector.Matches(labels.Set(o.GetLabels()))) {
		items = append(items, *o.DeepCopy())
	}
	return items
}

// sampleItems returns the Nodes of the sample, the Machines behind them, and all objects of other kinds.
func (s sample) sampleItems(kind schema.GroupKind, items []unstructured.Unstructured) []unstructured.Unstructured {
	var path []string
	switch kind {
	case corev1.SchemeGroupVersion.WithKind("Node").GroupKind():
		path = []string{"metadata", "name"}
	case schema.GroupKind{Group: "machine.openshift.io", Kind: "Machine"}:
		path = []string{"status", "nodeRef", "name"}
	default:
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), func(u unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(u.Object, path...)
		return !s.names[name]
	})
}
