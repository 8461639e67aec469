package api

import (
	"context"
	"reflect"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// strategy is what the registry asks about a kind: which part of an object a request may change.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind Kind
	// status and approval are true for requests of the subresource.
	status, approval bool
}

// requestKind is a kind that is stored as its requester, and approved.
const requestKind = "CertificateSigningRequest"

var (
	_ rest.RESTCreateStrategy         = strategy{}
	_ rest.RESTUpdateStrategy         = strategy{}
	_ rest.RESTGracefulDeleteStrategy = strategy{}
	_ rest.ResetFieldsStrategy        = strategy{}
)

func (s strategy) NamespaceScoped() bool                                            { return s.kind.Namespaced }
func (s strategy) AllowCreateOnUpdate() bool                                        { return s.kind.Kind == "Lease" || s.kind.Kind == "Event" }
func (s strategy) AllowUnconditionalUpdate() bool                                   { return !s.kind.Custom && s.kind.Kind != "Lease" }
func (s strategy) Canonicalize(runtime.Object)                                      {}
func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (s strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }

// Validate checks names and the other metadata. What is in an object is not checked, but for requests for certificates.
func (s strategy) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	names := validation.NameIsDNSSubdomain
	if s.kind.Group == rbacGroup || s.kind.Kind == "Event" || s.kind.Kind == requestKind {
		names = pathSegment
	}
	return append(validation.ValidateObjectMetaAccessor(o.(metav1.Object), s.kind.Namespaced, names, field.NewPath("metadata")), validateRequest(o)...)
}

// pathSegment is how names of Events, of requests for certificates and of RBAC are checked, also those that another part follows.
func pathSegment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// ValidateUpdate checks requests for certificates alone: names cannot change.
func (s strategy) ValidateUpdate(_ context.Context, o, old runtime.Object) field.ErrorList {
	return s.validateKept(o, old)
}

// PrepareForCreate removes what a client cannot set.
func (s strategy) PrepareForCreate(ctx context.Context, o runtime.Object) {
	if s.kind.Status && !s.takesStatusOnCreate() {
		setPart(o, "status", nil)
	}
	if s.kind.Generation {
		o.(metav1.Object).SetGeneration(1)
	}
	if p, ok := o.(*corev1.Pod); ok {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBestEffort}
	}
	if r, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
		setRequester(ctx, r)
	}
	if n, ok := o.(*corev1.Namespace); ok {
		n.Status.Phase = corev1.NamespaceActive
	}
}

// takesStatusOnCreate reports whether the status of a new object is kept, as that of a Node is.
func (s strategy) takesStatusOnCreate() bool { return s.kind.Kind == "Node" }

// PrepareForUpdate keeps what the request cannot change.
func (s strategy) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	now, before := o.(metav1.Object), old.(metav1.Object)
	if r, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
		s.keepRequest(r, old.(*certificatesv1.CertificateSigningRequest))
		return
	}
	switch {
	case s.status && s.kind.Custom:
		status := partOf(o, "status")
		managed, version := now.GetManagedFields(), now.GetResourceVersion()
		u, kept := o.(*unstructured.Unstructured), old.(*unstructured.Unstructured).DeepCopy()
		u.Object = kept.Object
		setPart(u, "status", status)
		u.SetManagedFields(managed)
		u.SetResourceVersion(version)
	case s.status:
		// Labels and annotations of a Node are taken from a request of its status.
		setPart(o, "spec", partOf(old, "spec"))
	case s.kind.Status:
		setPart(o, "status", partOf(old, "status"))
	}
	now.SetGeneration(before.GetGeneration())
	if s.kind.Generation && !s.status && !apiequality.Semantic.DeepEqual(specOf(o), specOf(old)) {
		now.SetGeneration(before.GetGeneration() + 1)
	}
}

// specOf returns an object without its metadata and status.
func specOf(o runtime.Object) map[string]any {
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil
	}
	rest := map[string]any{}
	for k, v := range all {
		if k != "metadata" && k != "status" && k != "kind" && k != "apiVersion" {
			rest[k] = v
		}
	}
	return rest
}

// partOf returns the spec or status of an object.
func partOf(o runtime.Object, name string) any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object[name]
	}
	f := reflect.ValueOf(o).Elem().FieldByName(goName(name))
	if !f.IsValid() {
		return nil
	}
	return f.Interface()
}

// setPart sets the spec or status of an object. Nil is none.
func setPart(o runtime.Object, name string, value any) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		if value == nil {
			delete(u.Object, name)
			return
		}
		u.Object[name] = value
		return
	}
	f := reflect.ValueOf(o).Elem().FieldByName(goName(name))
	switch {
	case !f.IsValid():
	case value == nil:
		f.SetZero()
	default:
		f.Set(reflect.ValueOf(value))
	}
}

func goName(part string) string { return strings.ToUpper(part[:1]) + part[1:] }

// CheckGracefulDelete has pods end in their time, as the registry of pods does.
func (s strategy) CheckGracefulDelete(_ context.Context, o runtime.Object, options *metav1.DeleteOptions) bool {
	p, ok := o.(*corev1.Pod)
	if !ok || options == nil {
		return false
	}
	period := int64(0)
	switch {
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		period = *p.Spec.TerminationGracePeriodSeconds
	}
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		period = 0
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

// GetResetFields implements rest.ResetFieldsStrategy: an apply owns nothing of the other part.
func (s strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if !s.kind.Status {
		return nil
	}
	reset := fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	if s.status {
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if s.kind.Custom {
			reset.Insert(fieldpath.MakePathOrDie("metadata", "labels"))
		}
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(s.kind.GroupVersion().String()): reset}
}

// attributes are what selectors see.
func (s strategy) attributes(o runtime.Object) (labels.Set, fields.Set, error) {
	set, err := fieldsOf(s.kind, o)
	if err != nil {
		return nil, nil, err
	}
	return o.(metav1.Object).GetLabels(), set, nil
}
