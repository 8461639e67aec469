package objects

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// misfitFinding returns a finding if an object that is not wanted seems to be meant as one that is: its kind is written
// in another case, its group is not the kind's, or it has no kind.
func (r *reading) misfitFinding(s segment, h head) batch {
	switch {
	case h.isUnclear:
		return batch{}
	case h.kind == "":
		return r.withoutKind(s, h)
	}
	kind, version := h.kind, h.apiVersion
	if slices.ContainsFunc(r.wants, func(w Want) bool { return w.Kind == kind && w.Group == groupOf(version) }) {
		return r.wrongNamespaceFinding(s, h)
	}
	i := slices.IndexFunc(r.wants, func(w Want) bool { return r.mayBeMeant(w, h) })
	if i < 0 {
		return r.misspeltKindFinding(s, h)
	}
	w := r.wants[i]
	f := r.skippedFinding(s, h, "kind", fmt.Sprintf("is skipped: its kind is written %q, not %q", kind, w.Kind))
	if kind == w.Kind || version != "" && groupOf(version) != w.Group {
		f.Field, f.Message = "apiVersion", fmt.Sprintf(
			"is skipped: its apiVersion is %s; %s is a kind of %s", version, w.Kind, apiVersion(w.Group, w.Version),
		)
	}
	f.Fix = fmt.Sprintf("write apiVersion: %s and kind: %s", apiVersion(w.Group, w.Version), w.Kind)
	return batch{findings: bundle.Findings{f}}
}

// wrongNamespaceFinding returns a finding for an object in a namespace where it has no effect, if no other namespace
// has one of its name by accident.
func (r *reading) wrongNamespaceFinding(s segment, h head) batch {
	name, namespace := h.name, h.namespace
	for _, w := range r.wants {
		if w.Kind != h.kind || w.Group != groupOf(h.apiVersion) || !slices.Contains(w.OnlyHere, name) ||
			w.admitsNamespace(namespace) {
			continue
		}
		where := "is skipped: it is in namespace " + namespace
		if namespace == "" {
			where = "is skipped: it names no namespace"
		}
		f := r.skippedFinding(s, h, "metadata.namespace", where+", and has no effect outside of "+w.Namespace)
		f.Fix = "write namespace: " + w.Namespace + ", or name the operator's namespace with --namespace"
		return batch{findings: bundle.Findings{f}}
	}
	return batch{}
}

// misspeltKindFinding returns a finding for an object of a group whose kind is nearly a wanted one.
func (r *reading) misspeltKindFinding(s segment, h head) batch {
	kind, version := h.kind, h.apiVersion
	var known []string
	for _, w := range r.wants {
		name, namespace := h.name, h.namespace
		if w.Group == groupOf(version) && (name == "" || w.admitsName(name)) && (namespace == "" || w.admitsNamespace(namespace)) {
			known = append(known, w.Kind)
		}
	}
	meant := bundle.NearestWord(kind, known)
	if meant == "" || slices.Contains(neighbourKinds(), [2]string{kind, meant}) {
		return batch{}
	}
	f := r.skippedFinding(s, h, "kind", fmt.Sprintf("is skipped: %s has no kind %s; did you mean %s?", version, kind, meant))
	f.Fix = "write kind: " + meant
	return batch{findings: bundle.Findings{f}}
}

// neighbourKinds are kinds that exist beside one of nearly the same name in its group.
func neighbourKinds() [][2]string {
	return [][2]string{
		{"ImageDigestMirrorSet", "ImageTagMirrorSet"}, {"MachineSet", "Machine"},
		{"MachineConfigNode", "MachineConfigPool"},
	}
}

// mayBeMeant reports whether the want may be meant by an object whose kind or group is another.
func (r *reading) mayBeMeant(w Want, h head) bool {
	version, name := h.apiVersion, h.name
	if !strings.EqualFold(h.kind, w.Kind) || !w.admitsWritten(h) {
		return false
	}
	if version == "" || strings.EqualFold(groupOf(version), w.Group) {
		return true
	}
	// Many kinds are in several groups, each of them right. The name and the group together are no accident.
	return w.Unique || w.isNamed() && name != "" && r.isWantedGroup(groupOf(version))
}

// admitsWritten reports whether the want admits the namespace and the name of a head, as far as it has them.
func (w Want) admitsWritten(h head) bool {
	namespace, name := h.namespace, h.name
	return (namespace == "" || w.admitsNamespace(namespace)) && (name == "" || w.admitsName(name))
}

// isNamed reports whether the want selects by name.
func (w Want) isNamed() bool { return len(w.Names) > 0 || w.NamePrefix != "" }

func (r *reading) isWantedGroup(group string) bool {
	return slices.ContainsFunc(r.wants, func(w Want) bool { return w.Group == group })
}

// withoutKind returns a finding for an object without a kind. In a folder, many documents are no Kubernetes objects:
// there it must have a name and no apiVersion, the group of a wanted object, or the name of one.
func (r *reading) withoutKind(s segment, h head) batch {
	if h.apiVersion == "" && !h.hasMetadata {
		return batch{}
	}
	version, name := h.apiVersion, h.name
	isMeant := r.byHand || version == "" && name != "" || slices.ContainsFunc(r.wants, func(w Want) bool {
		isGroup := groupOf(version) == w.Group
		isName := len(w.Names) > 0 && slices.Contains(w.Names, name) && w.admitsNamespace(h.namespace)
		return isGroup && w.Group != "" || isName && (version == "" || isGroup)
	})
	if !isMeant {
		return batch{}
	}
	f := r.skippedFinding(s, h, "kind", "is skipped: it has no kind")
	f.Fix = "add the kind of the object, such as kind: ImageDigestMirrorSet"
	return batch{findings: bundle.Findings{f}}
}

func (r *reading) skippedFinding(s segment, h head, field, message string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityWarning, Reason: reason.DocumentSkipped, Object: r.objectRef(s, h), Field: field,
		Message: message,
	}
}

// arrayFinding returns a finding for a document that is a list and not an object, if it may hold a wanted object.
func (r *reading) arrayFinding(value any, s segment) batch {
	listed, ok := value.([]any)
	holds := func(item any) bool { return len(r.objectsOfValue(item, s, typeMeta{}, 1).objects) > 0 }
	if !ok || len(listed) == 0 || !r.byHand && !slices.ContainsFunc(listed, holds) {
		return batch{}
	}
	f := r.skippedFinding(s, head{}, "", "is skipped: it is a list and not an object")
	f.Fix = "write each item as a document, or all of them as the items of a kind: List"
	return batch{findings: bundle.Findings{f}}
}

// notObjectFinding returns a finding for an item that is not an object, if its list may hold wanted ones.
func (r *reading) notObjectFinding(s segment, typeName string, inherited typeMeta) batch {
	if typeName == typeNameOfNothing || !r.byHand && !r.kinds.hasKind(inherited.kind) {
		return batch{}
	}
	f := r.skippedFinding(s, head{}, "", fmt.Sprintf("is skipped: the item is %s and not an object", typeName))
	f.Fix = "write the object itself as the item"
	return batch{findings: bundle.Findings{f}}
}
