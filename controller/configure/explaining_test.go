package configure

import (
	"strings"
	"testing"
	"time"

	"wmco/bundle"
)

func TestAHostThatDoesNotJoinSaysWhatItLacks(t *testing.T) {
	finding := func(severity bundle.Severity, name string) bundle.Finding {
		return bundle.Finding{Severity: severity, Reason: name, Message: "says " + name, Fix: "fix " + name}
	}
	waits := Progress{State: StateJoining, Reason: ReasonRegistering, Message: "waiting", Fix: "nothing"}
	for _, tt := range []struct {
		name         string
		findings     bundle.Findings
		message, fix string
	}{
		{"nothing is missing", nil, "waiting", "nothing"},
		{"only worth knowing", bundle.Findings{finding(bundle.SeverityInfo, "A")}, "waiting", "nothing"},
		{"a warning", bundle.Findings{finding(bundle.SeverityWarning, "A")}, "waiting; the host lacks: A: says A", "nothing"},
		{"an error and a warning", bundle.Findings{finding(bundle.SeverityError, "A"), finding(bundle.SeverityWarning, "B")}, "waiting; the host lacks: A: says A", "fix A"},
		{"many errors", bundle.Findings{finding(bundle.SeverityError, "A"), finding(bundle.SeverityError, "B"), finding(bundle.SeverityError, "C"), finding(bundle.SeverityError, "D"), finding(bundle.SeverityError, "E")},
			"waiting; the host lacks: A: says A; B: says B; C: says C; 2 more, which wmco preflight prints", "fix A"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := withFindings(waits, tt.findings)
			if p.Message != tt.message || p.Fix != tt.fix || p.State != StateJoining || strings.Contains(p.Message, "\n") {
				t.Errorf("got %+v", p)
			}
		})
	}
}

// TestAHostIsAskedSeldomWhatItLacks, however often it is retried, and each host on its own.
func TestAHostIsAskedSeldomWhatItLacks(t *testing.T) {
	var e explanations
	lacks := bundle.Findings{{Reason: "A"}}
	e.keepExplanation("a", explanation{time.Minute, lacks})
	if got, ok := e.recentOf("a", explainEvery); !ok || len(got) != 1 {
		t.Errorf("after %s: %v, %v", explainEvery-time.Minute, got, ok)
	}
	if _, ok := e.recentOf("b", explainEvery); ok {
		t.Error("another host was not asked")
	}
	if _, ok := e.recentOf("a", explainEvery+time.Minute); ok || len(e.all) != 0 {
		t.Errorf("%v is kept for ever", e.all)
	}
}

// A host may say anything about itself.
func TestTheTextsOfAHostAreBounded(t *testing.T) {
	p := withFindings(Progress{Message: "failed"}, bundle.Findings{{Severity: bundle.SeverityError, Reason: "A", Message: strings.Repeat("x", 1<<20), Fix: "f"}})
	if len(p.Message) > 2*maxExplained || p.Fix != "f" {
		t.Errorf("%d bytes", len(p.Message))
	}
}
