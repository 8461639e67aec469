package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

func TestWhatCannotBeReadIsNotMissingToo(t *testing.T) {
	missing := func(kind, name string) bundle.Finding {
		return bundle.Finding{Severity: bundle.SeverityError, Reason: reason.InputMissing, Object: bundle.Ref{Kind: kind, Name: name}}
	}
	all := bundle.Findings{missing("Infrastructure", "cluster"), missing("Network", "cluster"), missing("Secret", "token")}
	for what, tt := range map[string]struct {
		unread bundle.Finding
		want   bundle.Findings
	}{
		"an object":            {bundle.Finding{Reason: reason.ObjectMalformed, Object: bundle.Ref{Kind: "Network", Name: "cluster"}}, bundle.Findings{all[0], all[2]}},
		"another of this kind": {bundle.Finding{Reason: reason.ObjectMalformed, Object: bundle.Ref{Kind: "Secret", Name: "other"}}, all},
		"one without a name":   {bundle.Finding{Reason: reason.ObjectMalformed, Object: bundle.Ref{Kind: "Secret"}}, all[:2]},
		"a list":               {bundle.Finding{Reason: reason.ObjectMalformed, Object: bundle.Ref{Kind: "List"}}, nil},
		"a file":               {bundle.Finding{Reason: reason.InputUnreadable, Object: bundle.Ref{Source: "gone.yaml"}}, nil},
		"a version":            {bundle.Finding{Reason: reason.UnknownVersion, Object: bundle.Ref{Kind: "Infrastructure", Name: "cluster"}}, all[1:]},
		"something else":       {bundle.Finding{Reason: reason.SettingsInvalid, Object: bundle.Ref{Kind: "Network", Name: "cluster"}}, all},
	} {
		tt.unread.Severity = bundle.SeverityError
		got := withoutConsequences(append(bundle.Findings{tt.unread}, all...))
		if diff := cmp.Diff(append(bundle.Findings{tt.unread}, tt.want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
