package desired

import (
	"fmt"
	"slices"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// accepted is an entry of acceptedFindings, and where it is written.
type accepted struct {
	render.AcceptedFinding
	ref   bundle.Ref
	field string
	// problem is why it can accept nothing.
	problem string
	// always reports that the rendered hosts are all that the entry is about.
	always bool
}

// acceptedOf returns the entries of the settings and then those of the source.
func acceptedOf(s Source, c render.Cluster) []accepted {
	var all []accepted
	for i, a := range c.Settings.AcceptedFindings {
		all = append(all, accepted{a, c.Origins[render.FromSettings],
			fmt.Sprintf(`data["%s"].acceptedFindings[%d]`, render.SettingsKey, i), a.AcceptanceProblem(), false})
	}
	for i, a := range s.Accepted {
		all = append(all, accepted{a, bundle.Ref{Source: s.AcceptedIn}, fmt.Sprintf("acceptedFindings[%d]", i),
			a.AcceptanceProblem(), true})
	}
	return all
}

// MarkAccepted returns the findings, those marked that a team has accepted. Nothing else is changed: what blocks still
// does.
func (h *Hosts) MarkAccepted(findings bundle.Findings) bundle.Findings {
	out := slices.Clone(findings)
	for i, f := range out {
		if at := slices.IndexFunc(h.accepted, func(a accepted) bool {
			return a.problem == "" && a.Covers(f)
		}); at >= 0 {
			out[i].Accepted = bundle.Acceptance{Reason: h.accepted[at].Reason, Owner: h.accepted[at].Owner}
		}
	}
	return out
}

// unusedAccepted returns the entries that accept nothing. Whether one of the settings does is known when all hosts were
// rendered, and of a finding that only some programs report, never.
func (h *Hosts) unusedAccepted(findings bundle.Findings, complete bool) bundle.Findings {
	var unused bundle.Findings
	for _, a := range h.accepted {
		f := bundle.Finding{Severity: bundle.SeverityInfo, Reason: reason.AcceptedFindingUnused, Object: a.ref,
			Field: a.field, Fix: "remove the entry"}
		switch {
		case a.problem != "":
			f.Severity, f.Message, f.Fix = bundle.SeverityWarning, "has no effect: "+a.problem,
				"correct or remove the entry"
		case slices.ContainsFunc(findings, a.Covers), !a.always && !complete, !reason.IsReportedByAll(a.Finding):
			continue
		default:
			f.Message = fmt.Sprintf("no longer applies: there is no %s that it accepts", a.about())
		}
		unused = append(unused, f)
	}
	return unused
}

// about is what an entry accepts, in words.
func (a accepted) about() string {
	text := "finding " + a.Finding
	if a.Object != "" {
		text += " about " + a.Object
	}
	if a.Field != "" {
		text += " " + a.Field
	}
	return text
}
