package gather

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/mirrors"
)

// What would otherwise be ignored in silence: sources without an object, fields that no type has, optional objects that
// are absent.

// reportUnusedSources reports the sources that have no object that is read.
func (g *gatherer) reportUnusedSources(sources []string) {
	for _, source := range sources {
		g.addFinding(bundle.SeverityWarning, reason.InputUnused, bundle.Finding{
			Object: bundle.Ref{Source: source}, Message: "has no object from which Windows nodes are rendered",
			Fix: "check the path, and the kinds and names of its objects; leave out one that has others alone, such as MachineSets",
		})
	}
}

// byHand are the kinds that users write by hand, and whether unknown fields are reported in a cluster's copy too. The
// API of a newer cluster may have more fields. That of mirror sets is settled.
var byHand = map[[2]string]bool{
	{groupConfig, string(mirrors.DigestSet)}:             true,
	{groupConfig, string(mirrors.TagSet)}:                true,
	{groupOperator, string(mirrors.ContentSourcePolicy)}: true,
	{groupConfig, "Image"}:                               false,
	{groupConfig, "Proxy"}:                               false,
	{groupConfig, "APIServer"}:                           false,
	{groupConfig, "Network"}:                             false,
	{groupOperator, "Network"}:                           false,
	{"", "ConfigMap"}:                                    false,
}

// unknownFields reports the fields that the type of an object from a file does not have, if a person may have written
// them: not in metadata and status, and only in a few kinds. An object with a uid is a cluster's copy.
func (g *gatherer) unknownFields(o objects.Object, decoded any, unknown []error) {
	copiesToo, ok := byHand[[2]string{o.Group, o.Kind}]
	object, isObject := decoded.(metav1.Object)
	if !ok || o.Source == "" || isObject && object.GetUID() != "" && !copiesToo {
		return
	}
	for _, err := range unknown {
		var field kjson.FieldError
		if !errors.As(err, &field) {
			continue
		}
		path := field.FieldPath()
		if top, _, _ := strings.Cut(path, "."); top == "metadata" || top == "status" {
			continue
		}
		g.addFinding(bundle.SeverityWarning, reason.FieldUnknown, bundle.Finding{
			Object: o.Ref, Field: path, Message: o.Kind + " has no such field; it is ignored" +
				bundle.DidYouMean(lastName(path), fieldsAt(decoded, path)), Fix: "correct the field; `oc explain " +
				strings.ToLower(o.Kind) + "` shows the fields and their place",
		})
	}
}

// lastName is the field at the end of a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// fieldsAt returns the names of the fields that are known where a path ends.
func fieldsAt(decoded any, path string) []string {
	t := reflect.TypeOf(decoded)
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		name, _, _ = strings.Cut(name, "[")
		field, ok := fieldNamed(elementType(t), name)
		if !ok {
			return nil
		}
		t = field
	}
	if t = elementType(t); t.Kind() != reflect.Struct {
		return nil
	}
	var known []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known = append(known, name)
	}
	return known
}

// elementType is the type behind pointers and lists.
func elementType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

// isWithoutEffect reports whether a finding is about a document or a field that a person wrote and that has no effect.
func isWithoutEffect(f bundle.Finding) bool {
	_, isByHand := byHand[[2]string{f.Object.Group, f.Object.Kind}]
	return f.Reason == reason.DocumentSkipped || f.Reason == reason.FieldUnknown && isByHand
}

// PromoteSilentFindings makes errors of the findings about documents and fields without effect.
func PromoteSilentFindings(findings bundle.Findings) bundle.Findings {
	out := slices.Clone(findings)
	for i, f := range out {
		if isWithoutEffect(f) {
			out[i].Severity = bundle.SeverityError
		}
	}
	return out
}

// reportAbsentObjects names the optional objects that are not in the inputs, and their defaults. A complete
// source lacks what the cluster lacks.
func (g *gatherer) reportAbsentObjects() {
	if g.options.Complete {
		return
	}
	var list []string
	for _, o := range []struct {
		place
		assumed string
	}{
		{place{groupConfig, "APIServer", "", clusterName}, "TLS 1.2"},
		{place{groupConfig, "Image", "", clusterName}, "no registry is blocked or insecure"},
		{place{groupConfig, "Proxy", "", clusterName}, "the proxy of the operator's Deployment, if it has one"},
		{place{"", "ConfigMap", g.options.Namespace, settingsName}, "the default settings"},
		{place{"", "ConfigMap", g.options.Namespace, render.InstancesConfigMap}, "no instances"},
	} {
		isRefused := func(f bundle.Finding) bool { return f.Object.Kind == o.kind && f.Object.Name == o.name }
		if _, ok := g.findObject(o.place); !ok && !slices.ContainsFunc(g.findings, isRefused) {
			list = append(list, fmt.Sprintf("%s/%s (%s)", o.kind, o.name, o.assumed))
		}
	}
	if len(list) > 0 {
		g.addFinding(bundle.SeverityInfo, reason.DefaultsAssumed, bundle.Finding{
			Message: "not in the inputs, so defaults are assumed: " +
				strings.Join(list, ", "), Fix: "none if the cluster lacks them too; otherwise add them",
		})
	}
}
