package api

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// newScheme returns the kinds of the server: those of Kubernetes as Go types, custom ones unstructured. There are no
// internal versions: each kind has the one in which it is asked for.
func newScheme(kinds []Kind) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	if err := metav1.AddMetaToScheme(s); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if !k.Custom {
			continue
		}
		s.AddKnownTypeWithName(k.GroupVersionKind, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
		metav1.AddToGroupVersion(s, k.GroupVersion())
	}
	return s, nil
}

// codecs is the serializer of all kinds. It converts nothing, as there is one version of each kind.
type codecs struct {
	serializer.CodecFactory
	scheme *runtime.Scheme
}

// EncoderForVersion implements runtime.NegotiatedSerializer.
func (c codecs) EncoderForVersion(e runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	return encoder{runtime.WithVersionEncoder{Version: gv, Encoder: e, ObjectTyper: c.scheme}, e, c.scheme}
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c codecs) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder{d, c.scheme}
}

// encoder sets the version and kind of Go types. Unstructured objects have theirs.
type encoder struct {
	runtime.WithVersionEncoder
	plain  runtime.Encoder
	scheme *runtime.Scheme
}

func (e encoder) Encode(o runtime.Object, w io.Writer) error {
	if _, ok := o.(runtime.Unstructured); ok {
		return e.plain.Encode(o, w)
	}
	if unversioned, ok := e.scheme.IsUnversioned(o); ok && unversioned {
		kinds, _, err := e.scheme.ObjectKinds(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(kinds[0])
		return e.plain.Encode(o, w)
	}
	return e.WithVersionEncoder.Encode(o, w)
}

// decoder removes the version and kind of Go types, and sets defaults.
type decoder struct {
	runtime.Decoder
	defaulter runtime.ObjectDefaulter
}

func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, gvk, err := d.Decoder.Decode(data, defaults, into)
	if o == nil {
		return o, gvk, err
	}
	if into != nil && gvk != nil && (reflect.TypeOf(o) != reflect.TypeOf(into) || defaults != nil && gvk.Kind != defaults.Kind && isUnstructured(o)) {
		return nil, gvk, fmt.Errorf("%s is no %T", gvk.Kind, into)
	}
	if !isUnstructured(o) {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		d.defaulter.Default(o)
		takeStrings(o)
	}
	return o, gvk, err
}

func isUnstructured(o runtime.Object) bool {
	_, ok := o.(runtime.Unstructured)
	return ok
}

// convertor converts between versions where there is one of each kind.
type convertor struct{ *runtime.Scheme }

// Convert implements runtime.ObjectConvertor.
func (c convertor) Convert(in, out, _ any) error {
	return fmt.Errorf("the server in memory does not convert %T to %T", in, out)
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (c convertor) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	if u, ok := in.(*unstructured.Unstructured); ok {
		return c.toGo(u)
	}
	if _, ok := in.(runtime.Unstructured); ok {
		return in, nil
	}
	kinds, _, err := c.ObjectKinds(in)
	if err != nil {
		return nil, err
	}
	if gvk, ok := target.KindForGroupVersionKinds(kinds); ok && gvk.Version != runtime.APIVersionInternal {
		in.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return in, nil
}

// toGo returns the Go type of an object, where there is one: a server-side apply merges unstructured objects.
func (c convertor) toGo(u *unstructured.Unstructured) (runtime.Object, error) {
	o, err := c.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if _, ok := o.(runtime.Unstructured); ok {
		return u, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, err
	}
	takeStrings(o)
	return o, nil
}

// takeStrings makes the strings of a Secret part of its data, as API servers do: nothing is stored as a string.
func takeStrings(o runtime.Object) {
	s, ok := o.(*corev1.Secret)
	if !ok || len(s.StringData) == 0 {
		return
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, text := range s.StringData {
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (c convertor) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	if isSelectable(gvk.GroupKind(), label) {
		return label, value, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// selectable are the fields of kinds, besides name and namespace, by which they are selected.
var selectable = map[schema.GroupKind][]string{
	{Kind: "Pod"}:    {"spec.nodeName", "status.phase", "spec.serviceAccountName"},
	{Kind: "Secret"}: {"type"},
	{Kind: "Node"}:   {"spec.unschedulable"},
	{Kind: "Event"}: {
		"involvedObject.kind", "involvedObject.name", "involvedObject.namespace", "involvedObject.uid", "reason", "type",
		"reportingComponent", "source",
	},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {"spec.signerName"},
}

func isSelectable(gk schema.GroupKind, label string) bool {
	return label == "metadata.name" || label == "metadata.namespace" || slices.Contains(selectable[gk], label)
}

// fieldsOf are what selectors of fields see of an object.
func fieldsOf(k Kind, o runtime.Object) (fields.Set, error) {
	m, ok := o.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", o)
	}
	set := fields.Set{"metadata.name": m.GetName()}
	if k.Namespaced {
		set["metadata.namespace"] = m.GetNamespace()
	}
	list := selectable[k.GroupKind()]
	if len(list) == 0 {
		return set, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	for _, f := range list {
		set[f] = ""
		if v, ok, _ := unstructured.NestedFieldNoCopy(content, strings.Split(f, ".")...); ok {
			set[f] = fmt.Sprint(v)
		}
	}
	return set, nil
}
