package review

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/reason"
)

func widened(message, field string, line int) bundle.Finding {
	return bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.MirrorScopeWidened, Message: message, Field: field, Object: bundle.Ref{Kind: "ImageDigestMirrorSet", Name: "quay", Source: "a.yaml", Line: line}}
}

func side(findings ...bundle.Finding) []Node { return []Node{{Name: "win-a", Findings: findings}} }

// The place of an object in its file, and that of an entry in a list, are not what a finding says.
func TestFindingsAreComparedByWhatTheySay(t *testing.T) {
	first, second := widened("quay.io is widened", "spec[0]", 1), widened("docker.io is widened", "spec[1]", 1)
	moved := widened("quay.io is widened", "spec[4]", 20)
	for name, c := range map[string]struct {
		before, after  []Node
		added, removed bundle.Findings
	}{
		"the same":                {side(first, second), side(second, moved), nil, nil},
		"one more":                {side(first), side(first, second), bundle.Findings{second}, nil},
		"one less":                {side(first, second), side(second), nil, bundle.Findings{first}},
		"one that says it twice":  {side(first), side(first, moved), bundle.Findings{moved}, nil},
		"of two nodes":            {append(side(first), side(first)...), side(first), nil, nil},
		"where objects came from": {side(), side(bundle.Finding{Severity: bundle.SeverityInfo, Reason: reason.Replaced, Message: "replaces"}), nil, nil},
		"a higher severity":       {side(bundle.Finding{Severity: bundle.SeverityInfo, Reason: "X"}), side(bundle.Finding{Severity: bundle.SeverityWarning, Reason: "X"}), bundle.Findings{{Severity: bundle.SeverityWarning, Reason: "X"}}, bundle.Findings{{Severity: bundle.SeverityInfo, Reason: "X"}}},
	} {
		want := Findings{Added: append(bundle.Findings{}, c.added...), Removed: append(bundle.Findings{}, c.removed...)}
		if diff := cmp.Diff(want, Compare(c.before, c.after).Findings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheTextOfFindingsIsBounded(t *testing.T) {
	var many []bundle.Finding
	for i := range 1000 {
		many = append(many, widened(strings.Repeat("x", i%50), "", i))
	}
	r := Compare(side(), side(many...))
	if n := len(r.Findings.Added); n != 1000 {
		t.Errorf("%d findings in JSON", n)
	}
	if lines := strings.Count(r.Text(), "\n"); lines > 60 || !strings.Contains(r.Text(), "+ and 980 more findings\n") {
		t.Errorf("%d lines of text", lines)
	}
	if lines := strings.Count(r.Markdown(), "\n"); lines > 60 || !strings.Contains(r.Markdown(), "* and 980 more\n") {
		t.Errorf("%d lines of markdown", lines)
	}
}

// What an input says cannot look like a line of the review, nor like its markup.
func TestFindingsAreOneLineEach(t *testing.T) {
	r := Compare(side(), side(widened("a\n+ info  Fine\n<b>", "", 1)))
	if strings.Contains(r.Text(), "\n+ info") || strings.Contains(outsideCode(r.Markdown()), "<b>") || strings.Contains(r.Markdown(), "\n+ info") {
		t.Errorf("text:\n%s\nmarkdown:\n%s", r.Text(), r.Markdown())
	}
}

func TestSummary(t *testing.T) {
	group := func(impact bundle.Impact, nodes ...string) Group { return Group{Nodes: nodes, Impact: impact} }
	for want, r := range map[string]Review{
		"no Windows node changes":                                                 {},
		"1 Windows node changes: no restart":                                      {Groups: []Group{group(bundle.ImpactNone, "a")}},
		"3 Windows nodes change: no restart":                                      {Groups: []Group{group(bundle.ImpactNone, "a", "b"), group(bundle.ImpactNone, "c")}},
		"no Windows node changes; 1 new; 2 gone":                                  {Added: []string{"a"}, Removed: []string{"b", "c"}},
		"no Windows node changes; 1 new finding":                                  {Findings: Findings{Added: bundle.Findings{{Severity: bundle.SeverityInfo, Message: "x"}}}},
		"no Windows node changes; 1 finding resolved":                             {Findings: Findings{Removed: bundle.Findings{{}}}},
		"3 Windows nodes change: drains and reboots the node (1), no restart (2)": {Groups: []Group{group(bundle.ImpactReboot, "a"), group(bundle.ImpactNone, "b", "c")}},
		"no Windows node changes; 2 new findings: no pod can start": {Findings: Findings{Added: bundle.Findings{
			{Severity: bundle.SeverityInfo, Message: "x"}, {Severity: bundle.SeverityWarning, Message: "no pod can start"},
		}}},
	} {
		if got := r.Summary(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
