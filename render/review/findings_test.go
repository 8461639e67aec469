package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

func widened(message, field string, line int) bundle.Finding {
	return bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.MirrorScopeWidened, Message: message, Field: field, Object: bundle.Ref{Kind: "ImageDigestMirrorSet", Name: "quay", Source: "a.yaml", Line: line}}
}

func side(findings ...bundle.Finding) []Node { return []Node{{Name: "win-a", Findings: findings}} }

// The location of an object in its file, and that of an entry in a list, are not compared.
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
		"one that has it twice":   {side(first), side(first, moved), bundle.Findings{moved}, nil},
		"of two nodes":            {append(side(first), side(first)...), side(first), nil, nil},
		"where objects came from": {side(), side(bundle.Finding{Severity: bundle.SeverityInfo, Reason: reason.Replaced, Message: "replaces"}), nil, nil},
		"a higher severity":       {side(bundle.Finding{Severity: bundle.SeverityInfo, Reason: "X"}), side(bundle.Finding{Severity: bundle.SeverityWarning, Reason: "X"}), bundle.Findings{{Severity: bundle.SeverityWarning, Reason: "X"}}, bundle.Findings{{Severity: bundle.SeverityInfo, Reason: "X"}}},
	} {
		want := Findings{Added: append(bundle.Findings{}, c.added...), Removed: append(bundle.Findings{}, c.removed...), Accepted: bundle.Findings{}, Refused: bundle.Findings{}}
		if diff := cmp.Diff(want, Compare(c.before, c.after).Findings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// acceptedBy returns the finding with the acceptance of the entry that covers it.
func acceptedBy(owner string, f bundle.Finding) bundle.Finding {
	f.Accepted = bundle.Acceptance{Reason: "the rest has copies", Owner: owner}
	return f
}

// TestAcceptedFindingsFailNoChange: what a change accepts is shown with who accepts it and why. What it does not accept any longer is added.
func TestAcceptedFindingsFailNoChange(t *testing.T) {
	open := widened("quay.io is widened", "spec[0]", 1)
	accepted, other := acceptedBy("team-a", open), acceptedBy("team-b", open)
	for name, c := range map[string]struct {
		before, after            []Node
		added, accepted, removed bundle.Findings
	}{
		"with its finding":           {side(), side(accepted), nil, bundle.Findings{accepted}, nil},
		"of a finding that is there": {side(open), side(accepted), nil, bundle.Findings{accepted}, nil},
		"already":                    {side(accepted), side(accepted), nil, nil, nil},
		"by another owner":           {side(accepted), side(other), nil, nil, nil},
		"not any longer":             {side(accepted), side(open), bundle.Findings{open}, nil, nil},
		"and resolved":               {side(accepted), side(), nil, nil, bundle.Findings{accepted}},
	} {
		r := Compare(c.before, c.after).Refuse(bundle.SeverityWarning)
		want := Findings{Added: append(bundle.Findings{}, c.added...), Removed: append(bundle.Findings{}, c.removed...), Accepted: append(bundle.Findings{}, c.accepted...), Refused: append(bundle.Findings{}, c.added...)}
		if diff := cmp.Diff(want, r.Findings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for format, text := range map[string]string{"text": r.Text(), "markdown": r.Markdown()} {
			if got := strings.Contains(text, "team-a") && strings.Contains(text, "the rest has copies"); got != (len(c.accepted) > 0) {
				t.Errorf("%s, %s:\n%s", name, format, text)
			}
		}
		if refused := strings.HasPrefix(r.Markdown(), "### Windows nodes\n\n**Refused:** the change adds 1 warning: MirrorScopeWidened. To go on, fix what"); refused != (len(c.added) > 0) {
			t.Errorf("%s: refused is %t:\n%s", name, refused, r.Markdown())
		}
	}
}

// TestWhatStopsAllPodsIsAnError of the change that adds it, which cannot be accepted.
func TestWhatStopsAllPodsIsAnError(t *testing.T) {
	stop := bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.NodeImageUnreachable, Message: "no pod can start"}
	r := Compare(side(), side(stop)).Refuse(bundle.SeverityError)
	if why, goOn := r.Findings.Refusal(); why != "the change adds 1 error: NodeImageUnreachable" || !strings.Contains(goOn, "an error cannot be accepted") {
		t.Errorf("%q, %q", why, goOn)
	}
	if why, _ := Compare(side(stop), side(stop)).Refuse(bundle.SeverityError).Findings.Refusal(); why != "" {
		t.Errorf("what is there already: %q", why)
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
	if lines := strings.Count(r.Text(), "\n"); lines > 60 || !strings.Contains(r.Text(), "+ and 980 more findings: ") {
		t.Errorf("%d lines of text", lines)
	}
	if lines := strings.Count(r.Markdown(), "\n"); lines > 60 || !strings.Contains(r.Markdown(), "* and 980 more: ") {
		t.Errorf("%d lines of markdown", lines)
	}
}

// Whoever accepts many findings cannot hide what else they accept: a person who reads the comment sees at least its reason.
func TestWhatIsAcceptedIsNotHiddenByOthers(t *testing.T) {
	var before, after []bundle.Finding
	for i := range 40 {
		f := bundle.Finding{Severity: bundle.SeverityWarning, Reason: "Noise", Message: fmt.Sprint("noise ", i)}
		if i == 30 {
			f.Reason, f.Message = "WindowsIgnoresTheMirror", "zzz"
		}
		before = append(before, f)
		f.Accepted = bundle.Acceptance{Owner: "team", Reason: "fine"}
		after = append(after, f)
	}
	r := Compare(side(before...), side(after...))
	for _, text := range []string{r.Text(), r.Markdown()} {
		if !strings.Contains(text, "WindowsIgnoresTheMirror") {
			t.Errorf("nothing names it:\n%s", text)
		}
	}
	if !strings.Contains(r.Markdown(), "* and 20 more: 19 warning `Noise`, 1 warning `WindowsIgnoresTheMirror`\n") {
		t.Error(r.Markdown())
	}
}

// Text of an input cannot look like a line of the review, nor like its markup.
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
		"1 Windows node changes without a restart":                                {Groups: []Group{group(bundle.ImpactNone, "a")}},
		"3 Windows nodes change without a restart":                                {Groups: []Group{group(bundle.ImpactNone, "a", "b"), group(bundle.ImpactNone, "c")}},
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
