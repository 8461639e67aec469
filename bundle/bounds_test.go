package bundle

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestTextsOfFindingsAreBounded: whatever an input holds, one finding fits into a condition and a terminal.
func TestTextsOfFindingsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 1<<20)
	f := Findings{{Severity: SeverityError, Reason: "R", Field: long, Message: long, Fix: long}}.Sorted()[0]
	for name, text := range map[string]string{"field": f.Field, "message": f.Message, "fix": f.Fix} {
		if n := utf8.RuneCountInString(text); n > maxFindingMessage+30 || !utf8.ValidString(text) || !strings.HasSuffix(text, "more characters)") {
			t.Errorf("%s has %d characters: %.40q", name, n, text)
		}
	}
	if f.Field == f.Message {
		t.Error("the field is not shorter than the message")
	}
	for _, text := range []string{"", "short", strings.Repeat("ü", maxFindingMessage)} {
		if got := (Findings{{Message: text}}).Sorted()[0].Message; got != text {
			t.Errorf("%.20q became %.20q", text, got)
		}
	}
}

// TestFindingsShowNoPassword: any field of an input may be an address with one, also where it is cut.
func TestFindingsShowNoPassword(t *testing.T) {
	long := strings.Repeat("x", maxFindingMessage-20)
	for _, text := range []string{"%q is no version: https://u:hunter2@h.example/", "u:hunter2@5.0.3", long + "https://user:hunter2hunter2hunter2@h.example"} {
		f := Findings{{Field: text, Message: text, Fix: text, Accepted: Acceptance{text, text}}}.Sorted()[0]
		if all := fmt.Sprintf("%+v", f); strings.Contains(all, "hunter2") {
			t.Error(all)
		}
	}
	const image = "quay.io/org/app:1@sha256:0123"
	if got := (Findings{{Message: image}}).Sorted()[0].Message; got != image {
		t.Errorf("an image is shown as %s", got)
	}
}

// TestFindingsAboutOneObjectAreBounded: other objects keep theirs, and an error that is left out is still one.
func TestFindingsAboutOneObjectAreBounded(t *testing.T) {
	about := func(name string, n int, s Severity) Findings {
		var list Findings
		for i := range n {
			list = append(list, Finding{Severity: s, Reason: "R", Object: Ref{Kind: "ConfigMap", Name: name, Line: i}, Field: fmt.Sprintf("f%04d", i)})
		}
		return list
	}
	texts := func(list Findings) []string {
		var out []string
		for _, f := range list {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Severity, f.Object.Name, f.Field, f.Message)))
		}
		return out
	}
	many := append(append(about("a", 3, SeverityWarning), about("b", 2, SeverityError)...), about("a", 2, SeverityError)...)
	got := texts(many.AtMost(2, "More"))
	want := []string{"warning a f0000", "warning a f0001", "error a  and 3 more findings about this object", "error b f0000", "error b f0001"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one := about("a", 3, SeverityError); len(one.AtMost(2, "More")) != 3 || one.AtMost(2, "More")[2].Reason != "R" {
		t.Errorf("one more than shown: %v", texts(one.AtMost(2, "More")))
	}
	if got := many.AtMost(100, "More"); cmp.Diff(many, got) != "" {
		t.Errorf("few findings changed: %v", texts(got))
	}
	if Findings(nil).AtMost(1, "More") != nil {
		t.Error("none became some")
	}
	if n := len(about("a", 10000, SeverityError).AtMost(MostShown, "More")); n != MostShown+1 {
		t.Errorf("%d findings", n)
	}
}
