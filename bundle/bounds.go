package bundle

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest texts of a finding, in characters. An input may be as large as the API server stores (1 MiB), and
// messages quote it.
const (
	maxFindingMessage = 1000
	maxFindingFix     = 500
	maxFindingField   = 250
)

// clipTexts returns the finding with texts that fit into a condition, an Event and a terminal. Any field of an input may hold a user and
// password in an address, and a finding quotes what is wrong.
func (f Finding) clipTexts() Finding {
	clip := func(text string, most int) string {
		if strings.Contains(text, "@") {
			text = MaskText(text) // before a part of a password is left
		}
		return clipText(text, most)
	}
	f.Field, f.Message, f.Fix = clip(f.Field, maxFindingField), clip(f.Message, maxFindingMessage), clip(f.Fix, maxFindingFix)
	f.Accepted = Acceptance{clip(f.Accepted.Reason, maxFindingFix), clip(f.Accepted.Owner, maxFindingField)}
	return f
}

// clipText returns the beginning of a text, and how much more there is.
func clipText(text string, most int) string {
	if len(text) <= most { // in bytes, which are at least as many
		return text
	}
	count := 0
	for i := range text {
		if count == most {
			return fmt.Sprintf("%s... (%d more characters)", text[:i], utf8.RuneCountInString(text[i:]))
		}
		count++
	}
	return text
}

// Answers show so many findings about one object: people read the first ones, and programs get more.
const (
	MostShown   = 20
	MostAnswers = 200
)

// AtMost returns the first findings about each object. In place of the others there is one with the given reason, which
// counts them; its severity is the highest of theirs, so that refused inputs stay refused.
func (f Findings) AtMost(most int, reason string) Findings {
	total, kept, rest := map[Ref]int{}, map[Ref]int{}, map[Ref]int{}
	for _, x := range f {
		total[x.objectRef()]++
	}
	out := slices.Clone(f[:0])
	for _, x := range f {
		object := x.objectRef()
		// A single finding takes as much space as the one that would count it.
		if kept[object] < most || total[object] == most+1 {
			kept[object]++
			out = append(out, x)
			continue
		}
		i, ok := rest[object]
		if !ok {
			rest[object], i = len(out), len(out)
			n := total[object] - most
			out = append(out, Finding{
				Severity: openSeverity(x), Reason: reason, Object: object,
				Message: "and " + Count(n, "more finding") + " about this object",
				Fix:     "fix those that are shown, and look again",
			})
		}
		if severity := openSeverity(x); severity.rank() < out[i].Severity.rank() {
			out[i].Severity = severity
		}
	}
	return out
}

// openSeverity is that of a finding, unless it is accepted.
func openSeverity(f Finding) Severity {
	if f.IsAccepted() {
		return SeverityInfo
	}
	return f.Severity
}

// objectRef is the object of a finding, without the line in its file.
func (f Finding) objectRef() Ref {
	r := f.Object
	r.Line, r.Digest = 0, ""
	return r
}
