package bundle

import (
	"cmp"
	"slices"
	"strings"
)

// Severity is what a finding does to the run that met it.
type Severity string

const (
	// SeverityError refuses the inputs: nothing is written, and published bundles stay.
	SeverityError Severity = "error"
	// SeverityWarning means that the run finishes, but something is not as it was asked for.
	SeverityWarning Severity = "warning"
	// SeverityInfo is a fact that a reader would otherwise have to guess.
	SeverityInfo Severity = "info"
)

// rank orders severities, the most severe first.
func (s Severity) rank() int {
	switch s {
	case SeverityError:
		return 0
	case SeverityWarning:
		return 1
	case SeverityInfo:
		return 2
	}
	return 3
}

// Ref names the input that a finding or an entry comes from: an object of the cluster, a file, or both. Source and Line
// never enter a digest.
type Ref struct {
	// Group is the API group, empty for the core group. Two kinds have one name in two groups: Network.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Source is the path of the file as the user gave it, "-" for standard input, empty for a live cluster.
	Source string `json:"source,omitempty"`
	// Line is the first line of the object in Source, counted from 1; 0 where there are no lines.
	Line int `json:"line,omitempty"`
	// Digest is that of the object's contents, where they are known. It shows which of an entry's causes changed, and
	// never leaves the program: the object may be a Secret.
	Digest Digest `json:"-"`
}

// String returns the object as people write it, Kind/namespace/name.
func (r Ref) String() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{r.Kind, r.Namespace, r.Name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

// IsZero reports whether the reference names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// Finding is one thing that is wrong with an input or worth knowing about it. Message is what it is, Fix is what to do.
// Neither holds the contents of a secret.
type Finding struct {
	Severity Severity `json:"severity"`
	// Reason is a constant in CamelCase that programs may branch on, such as "MirrorScopeWidened".
	Reason string `json:"reason"`
	Object Ref    `json:"object,omitzero"`
	// Field is a path inside the object, such as spec.serviceNetwork[0] or data["10.0.0.5"].
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Node is the node or address that the finding is about; empty for the whole cluster.
	Node string `json:"node,omitempty"`
	// Accepted is zero unless a team has looked at the finding and leaves it as it is. An error never is.
	Accepted Acceptance `json:"accepted,omitzero"`
}

// Acceptance is why a finding stays as it is, and who answers for that.
type Acceptance struct {
	Reason string `json:"reason"`
	Owner  string `json:"owner"`
}

// IsAccepted reports whether a team has accepted the finding.
func (f Finding) IsAccepted() bool { return f.Accepted != Acceptance{} }

// Findings is a list of them. Every check appends to it, and none stops at the first.
type Findings []Finding

// Refused reports whether any finding is an error.
func (f Findings) Refused() bool {
	return slices.ContainsFunc(f, func(x Finding) bool { return x.Severity == SeverityError })
}

// Open returns the findings that are not accepted.
func (f Findings) Open() Findings { return slices.DeleteFunc(slices.Clone(f), Finding.IsAccepted) }

// Accepted returns those that are.
func (f Findings) Accepted() Findings {
	return slices.DeleteFunc(slices.Clone(f), func(x Finding) bool { return !x.IsAccepted() })
}

// Of returns the findings of one severity.
func (f Findings) Of(s Severity) Findings {
	return slices.DeleteFunc(slices.Clone(f), func(x Finding) bool { return x.Severity != s })
}

// AtLeast returns the findings of a severity or a higher one.
func (f Findings) AtLeast(s Severity) Findings {
	return slices.DeleteFunc(slices.Clone(f), func(x Finding) bool { return x.Severity.rank() > s.rank() })
}

// Sorted returns the findings without exact repeats, the most severe first, then by node, object, field and reason.
// Texts that quote too much of an input are clipped.
func (f Findings) Sorted() Findings {
	out := slices.Clone(f)
	for i := range out {
		out[i] = out[i].clipTexts()
	}
	slices.SortStableFunc(out, compareFindings)
	return slices.Compact(out)
}

func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.Severity.rank(), b.Severity.rank()),
		cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Object.String(), b.Object.String()),
		cmp.Compare(a.Object.Source, b.Object.Source),
		cmp.Compare(a.Object.Line, b.Object.Line),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Fix, b.Fix),
		cmp.Compare(a.Accepted.Owner, b.Accepted.Owner),
		cmp.Compare(a.Accepted.Reason, b.Accepted.Reason),
	)
}
