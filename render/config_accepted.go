package render

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// AcceptedFinding is a warning or an info that a team has looked at and leaves as it is. It is shown as accepted and
// fails no check. What it is about is still held or refused where it would be without.
type AcceptedFinding struct {
	// Finding is the reason of the finding, such as MirrorScopeWidened.
	Finding string `json:"finding"`
	// Object is what the finding is about, as Kind/NAME or Kind/NAMESPACE/NAME; "*" is every object. It is empty for a
	// finding without one.
	Object string `json:"object,omitempty"`
	// Field narrows it to one field of the object.
	Field string `json:"field,omitempty"`
	// Reason is why it is accepted, Owner who answers for that.
	Reason string `json:"reason"`
	Owner  string `json:"owner"`
}

// anyObject is the object of an entry that is about all.
const anyObject = "*"

// Covers reports whether the entry is about a finding. An error cannot be accepted.
func (a AcceptedFinding) Covers(f bundle.Finding) bool {
	return f.Severity != bundle.SeverityError && a.Finding == f.Reason &&
		(a.Object == anyObject || a.Object == f.Object.String()) && (a.Field == "" || a.Field == f.Field)
}

// CheckAccepted returns which fields of a list have no value that they need, each with its path. It does not judge
// names of findings, which differ between releases.
func CheckAccepted(list []AcceptedFinding) bundle.Findings {
	var findings bundle.Findings
	for i, a := range list {
		for _, x := range []struct{ field, text string }{{"finding", a.Finding}, {"reason", a.Reason}, {"owner", a.Owner}} {
			if strings.TrimSpace(x.text) == "" {
				findings = append(
					findings,
					invalidSetting(
						fmt.Sprintf("acceptedFindings[%d].%s", i, x.field),
						"is empty: an entry has finding, reason and owner",
					),
				)
			}
		}
	}
	return findings
}

// AcceptanceProblem returns why an entry can have no effect, whatever the inputs are: there is no such finding in this
// release, or it is always an error. It is empty otherwise.
func (a AcceptedFinding) AcceptanceProblem() string {
	var names []string
	for _, e := range reason.OfInputs() {
		if e.Reason == a.Finding && !e.IsAcceptable() {
			return a.Finding + " is an error, which cannot be accepted"
		}
		names = append(names, e.Reason)
	}
	if !slices.Contains(names, a.Finding) {
		return fmt.Sprintf("there is no finding %q about inputs%s", a.Finding, bundle.DidYouMean(a.Finding, names))
	}
	return ""
}
