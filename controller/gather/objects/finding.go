package objects

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// sizeText prints a size with its unit.
func sizeText(size int64) string {
	switch {
	case size >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(size)/(1<<30))
	case size >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(size)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", size)
}

// unreadPrefix begins the messages of malformed.
const unreadPrefix = "cannot be read: "

// malformedFinding is the finding for a text that cannot be parsed.
func (r *reading) malformedFinding(s segment, h head, bad problem) bundle.Finding {
	text := "it is not valid YAML or JSON"
	if bad.isOurs || h.allowsQuoting() {
		text = bad.text
	}
	if bad.line > 0 {
		text = fmt.Sprintf("line %d: %s", s.line+bad.line-1, text)
	}
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectMalformed, Object: r.objectRef(s, h),
		Message: unreadPrefix + text,
		Fix:     "correct the document, or replace it with the output of oc get -o yaml",
	}
}

// maxProblems is how many problems the finding for a malformed file lists.
const maxProblems = 5

// oneMalformed joins the findings of a file for texts that cannot be parsed: often one mistake is the cause of all. The
// first of them includes the problems of the others.
func oneMalformed(findings bundle.Findings) bundle.Findings {
	var kept bundle.Findings
	first, problems := -1, 0
	for _, f := range findings {
		isSyntax := f.Reason == reason.ObjectMalformed && f.Field == ""
		if isSyntax {
			problems++
		}
		switch {
		case !isSyntax:
			kept = append(kept, f)
		case first < 0:
			first = len(kept)
			kept = append(kept, f)
		case problems <= maxProblems:
			text := strings.TrimPrefix(f.Message, unreadPrefix)
			if !strings.HasPrefix(text, "line ") {
				text = fmt.Sprintf("line %d: %s", f.Object.Line, text)
			}
			kept[first].Message += "; " + text
		}
	}
	if more := problems - maxProblems; more > 0 {
		kept[first].Message += fmt.Sprintf("; and %d more", more)
	}
	return kept
}

// objectRef returns the reference of the object, as far as it is known.
func (r *reading) objectRef(s segment, h head) bundle.Ref {
	ref := h.objectRef()
	ref.Source, ref.Line = r.source, s.place
	return ref
}

func (r *reading) tooLargeFinding(s segment, h head) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectTooLarge, Object: r.objectRef(s, h),
		Message: fmt.Sprintf("is %s as it is written; objects over %s are not read",
			sizeText(int64(len(s.text)-s.start)), sizeText(maxObject)),
		Fix: "remove it from the inputs, or make it small enough for a cluster",
	}
}

// tooDeepFindings is the finding for lists nested too deep, if one may hold a wanted object.
func (r *reading) tooDeepFindings(s segment) bundle.Findings {
	if !r.kinds.areNamedIn(s.text) {
		return nil
	}
	return bundle.Findings{{
		Severity: bundle.SeverityError, Reason: reason.ListTooDeep, Object: r.objectRef(s, head{}),
		Message: fmt.Sprintf("is a list nested in more than %d others; its items are not read", maxListDepth),
		Fix:     "write the items as separate documents",
	}}
}

// flawedFinding is the finding for an object with a field that is missing or has the wrong type.
func flawedFinding(p parsed, bad flaw) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.ObjectMalformed, Object: p.Ref, Field: bad.field,
		Message: bad.message, Fix: bad.fix,
	}
}

// unknownVersion is the finding for an object that is wanted in other versions only.
func unknownVersion(p parsed, wanted []Want) bundle.Finding {
	var known []string
	for _, w := range wanted {
		known = append(known, apiVersion(w.Group, w.Version))
	}
	slices.Sort(known)
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.UnknownVersion, Object: p.Ref, Field: "apiVersion",
		Message: fmt.Sprintf("has apiVersion %s, which this program does not support", apiVersion(p.Group, p.Version)),
		Fix:     "convert it to " + strings.Join(slices.Compact(known), " or "),
	}
}

// placeOf prints the source and the line of an object.
func placeOf(o Object) string {
	if o.Source == "" {
		return "the cluster"
	}
	return fmt.Sprintf("%s:%d", o.Source, o.Line)
}

// duplicateFinding is the finding for two objects of one name with different contents.
func duplicateFinding(kept, other Object) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.DuplicateObject, Object: kept.Ref,
		Message: fmt.Sprintf("exists twice with different contents: in %s and in %s", placeOf(kept), placeOf(other)),
		Fix:     "remove one; to try a change, give it as a separate --from after the others",
	}
}

// replacedFinding is the finding for an object of a later path that replaces an earlier one.
func replacedFinding(now, before Object) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityInfo, Reason: reason.Replaced, Object: now.Ref,
		Message: fmt.Sprintf("replaces the one in %s", placeOf(before)),
	}
}

// unreadableFinding is the finding for a path that cannot be read.
func unreadableFinding(source string, err error) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputUnreadable, Object: bundle.Ref{Source: source},
		Message: fmt.Sprintf("cannot be read: %v", err),
		Fix:     "check the path and its permissions",
	}
}

func fileTooLarge(source string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputTooLarge, Object: bundle.Ref{Source: source},
		Message: "is larger than " + sizeText(maxFile) + " and is not read",
		Fix:     "split it, or remove it from the inputs",
	}
}

func notManifest(source string) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.InputNotManifest, Object: bundle.Ref{Source: source},
		Message: "has no YAML or JSON document",
		Fix:     "give a file of Kubernetes objects, a folder of them, or an unpacked must-gather",
	}
}
