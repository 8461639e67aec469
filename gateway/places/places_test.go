package places

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func example() Table {
	return Table{
		Routed: []string{"quay.io"}, Settings: "Image/cluster", Allowed: []string{"quay.io"}, Denied: []string{"quay.io/blocked"},
		Registries: []Registry{
			{Scope: "*.io", Mirrors: []Mirror{{Location: "all.example", Use: Digests}}},
			{Scope: "quay.io/team", Blocked: true, Objects: []string{"ImageTagMirrorSet/a"}, Mirrors: []Mirror{
				{Location: "m.example:5000/x", Use: Tags, Insecure: true}, {Location: "quay.io/team/sub", Use: Tags}, {Location: "top.example", Use: Digests},
			}},
		},
		Credentials: []Credential{{Key: "m.example:5000", Auth: bundle.NewSecret("dTpw")}},
	}
}

// TestATableIsReadAsItWasWritten: all fields are in the file; the comparison with containers/image is in internal/verify/registriesconf.
func TestATableIsReadAsItWasWritten(t *testing.T) {
	data, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(data)
	if diff := cmp.Diff(example(), got, cmp.AllowUnexported(bundle.Secret{})); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	masked, err := example().Masked().Encode()
	if err != nil || strings.Contains(string(masked), "dTpw") {
		t.Errorf("%v\n%s", err, masked)
	}
}

func TestOtherTablesAreRefused(t *testing.T) {
	good, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string][2]string{
		"another field":              {`"schema": 1`, `"schema": 1, "more": true`},
		"no schema":                  {`"schema": 1`, `"schema": 0`},
		"a scope with a scheme":      {`"quay.io/team"`, `"https://quay.io/team"`},
		"a scope that leads up":      {`"quay.io/team"`, `"quay.io/../team"`},
		"a mirror with a user":       {`"top.example"`, `"user@top.example"`},
		"a mirror with a query":      {`"top.example"`, `"top.example/x?y"`},
		"a wildcard as a mirror":     {`"top.example"`, `"*.example"`},
		"a mirror for something":     {`"digests"`, `"everything"`},
		"the end of a value missing": {"}\n", "\n"},
		"something after the value":  {"}\n", "}{}\n"},
	} {
		text := string(good)
		i := strings.LastIndex(text, change[0])
		if _, err := Decode([]byte(text[:i] + change[1] + text[i+len(change[0]):])); err == nil || strings.Contains(err.Error(), "dTpw") {
			t.Errorf("%s: %v", what, err)
		}
	}
	newer := (*bundle.SchemaError)(nil)
	if _, err := Decode([]byte(`{"schema": 2}`)); !errors.As(err, &newer) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestDecisions(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[Image][]string{
		{"quay.io", "team/app", "v1"}:     {"m.example:5000/x/app", "- quay.io/team/sub/app: quay.io/team must not be contacted (ImageTagMirrorSet/a)", "- quay.io/team/app: quay.io/team must not be contacted (ImageTagMirrorSet/a)"},
		{"quay.io", "team/app", digest}:   {"top.example/app", "- quay.io/team/app: quay.io/team must not be contacted (ImageTagMirrorSet/a)"},
		{"quay.io", "team", digest}:       {"- top.example: the mirror has no name for it", "- quay.io/team: quay.io/team must not be contacted (ImageTagMirrorSet/a)"},
		{"quay.io", "other/app", digest}:  {"all.example/other/app", "quay.io/other/app"},
		{"quay.io", "blocked/app", "v1"}:  {"- quay.io/blocked/app: quay.io/blocked is blocked (Image/cluster)"},
		{"else.io", "app", "v1"}:          {"- else.io/app: it is not in the allowed registries (Image/cluster)"},
		{"quay.io.example", "team", "v1"}: {"- quay.io.example/team: it is not in the allowed registries (Image/cluster)"},
	} {
		d := example().Decide(image)
		var got []string
		for _, p := range d.Places {
			got = append(got, p.Name())
			if (p.Registry == "m.example:5000") != (p.Insecure && !p.Auth.IsZero()) {
				t.Errorf("%s: %+v", image, p)
			}
		}
		for _, s := range d.Skipped {
			got = append(got, "- "+s.Name+": "+s.Why)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}
