package objects

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/reason"
)

// tone says how much of a document a finding may repeat.
type tone string

const (
	// discreet: nothing, it may be a Secret.
	discreet tone = "discreet"
	// frank: what the parser says, which may quote the document.
	frank tone = "frank"
)

// sizeText is a size in words.
func sizeText(size int64) string {
	switch {
	case size >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(size)/(1<<30))
	case size >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(size)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", size)
}

// malformed tells of an object that no parser understands.
func (r *reading) malformed(s segment, h head, bad problem) bundle.Finding {
	text := "it is not valid YAML or JSON"
	if bad.isOurs || h.tone() == frank {
		text = bad.text
	}
	if bad.line > 0 {
		text = fmt.Sprintf("line %d: %s", s.line+bad.line-1, text)
	}
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectMalformed, Object: r.about(s, h),
		Message: "cannot be read: " + text,
		Fix:     "correct the document, or take it out of the inputs and write it anew with oc get -o yaml",
	}
}

// about names the object as far as it is known.
func (r *reading) about(s segment, h head) bundle.Ref {
	ref := h.ref()
	ref.Source, ref.Line = r.source, s.place
	return ref
}

func (r *reading) tooLarge(s segment, h head) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectTooLarge, Object: r.about(s, h),
		Message: fmt.Sprintf("is %s as it is written; objects over %s are not read",
			sizeText(int64(len(s.text)-s.start)), sizeText(maxObject)),
		Fix: "take it out of the inputs, or cut it down to what a cluster can hold",
	}
}

// tooDeep tells of lists in lists, if one may hold a wanted object.
func (r *reading) tooDeep(s segment) bundle.Findings {
	if !r.words.mayName(s.text) {
		return nil
	}
	return bundle.Findings{{
		Severity: bundle.SeverityError, Reason: reason.ListTooDeep, Object: r.about(s, head{}),
		Message: fmt.Sprintf("is a list inside more than %d others; its items are not read", maxListDepth),
		Fix:     "write the items as documents of their own",
	}}
}

// flawed tells of an object that lacks what every object has.
func flawed(p parsed, bad flaw) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectMalformed, Object: p.Ref, Field: bad.field,
		Message: bad.message, Fix: bad.fix,
	}
}

// unknownVersion tells of an object that is wanted in other versions only.
func unknownVersion(p parsed, wanted []Want) bundle.Finding {
	var known []string
	for _, w := range wanted {
		known = append(known, apiVersion(w.Group, w.Version))
	}
	slices.Sort(known)
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.UnknownVersion, Object: p.Ref, Field: "apiVersion",
		Message: fmt.Sprintf("is of apiVersion %s, which this program does not know", apiVersion(p.Group, p.Version)),
		Fix:     "give it as " + strings.Join(slices.Compact(known), " or "),
	}
}

// place prints where an object stands.
func place(o Object) string {
	if o.Source == "" {
		return "the cluster"
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// duplicate tells of two different objects of one name.
func duplicate(kept, other Object) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.DuplicateObject, Object: kept.Ref,
		Message: fmt.Sprintf("is given twice with different contents: %s and %s", place(kept), place(other)),
		Fix:     "remove one; to try out a change, give it as a --from of its own, after the others",
	}
}

// replaced tells that a later path gives an object anew.
func replaced(now, before Object) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityInfo, Reason: reason.Replaced, Object: now.Ref,
		Message: fmt.Sprintf("replaces the one in %s", place(before)),
	}
}

// unreadable tells of a path that could not be read.
func unreadable(source string, err error) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputUnreadable, Object: bundle.Ref{Source: source},
		Message: fmt.Sprintf("cannot be read: %v", err),
		Fix:     "check the path and its permissions",
	}
}

func fileTooLarge(source string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputTooLarge, Object: bundle.Ref{Source: source},
		Message: "is larger than " + sizeText(maxFile) + ", and is not read",
		Fix:     "split it, or take it out of the inputs",
	}
}

func notManifest(source string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputNotManifest, Object: bundle.Ref{Source: source},
		Message: "holds no YAML or JSON document",
		Fix:     "give a file of Kubernetes objects, a folder of them, or an unpacked must-gather",
	}
}
