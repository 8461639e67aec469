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
		Policies: []Policy{
			{Scope: "quay.io/team", Objects: []string{"ClusterImagePolicy/team"}, Requirements: []Requirement{
				{Type: SigstoreSigned, KeyData: []byte("key"), RekorPublicKeyData: []byte("log"), SignedIdentity: Identity{Type: "matchRepository"}},
				{Type: SigstoreSigned, Fulcio: &Fulcio{CAData: []byte("ca"), OIDCIssuer: "https://issuer", SubjectEmail: "me@example"}, SignedIdentity: Identity{Type: "exactRepository", DockerRepository: "vendor.example/app"}},
				{Type: SigstoreSigned, PKI: &PKI{CARootsData: []byte("ca"), CAIntermediatesData: []byte("ca"), SubjectEmail: "me@example", SubjectHostname: "example"}, SignedIdentity: Identity{Type: "remapIdentity", Prefix: "quay.io", SignedPrefix: "vendor.example"}},
			}},
			{Scope: "quay.io/team/app:v1", Objects: []string{"ClusterImagePolicy/tag"}, Requirements: []Requirement{{Type: SigstoreSigned, SignedIdentity: Identity{Type: "matchRepository"}}}},
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
		"another field":            {`"schema": 1`, `"schema": 1, "more": true`},
		"no schema":                {`"schema": 1`, `"schema": 0`},
		"a scope with a scheme":    {`"quay.io/team"`, `"https://quay.io/team"`},
		"a scope that leads up":    {`"quay.io/team"`, `"quay.io/../team"`},
		"a mirror with a user":     {`"top.example"`, `"user@top.example"`},
		"a mirror with a query":    {`"top.example"`, `"top.example/x?y"`},
		"a wildcard as a mirror":   {`"top.example"`, `"*.example"`},
		"a mirror for something":   {`"digests"`, `"everything"`},
		"a policy without a scope": {`"scope": "quay.io/team/app:v1"`, `"scope": ""`},
		"a policy for a wildcard":  {`"quay.io/team/app:v1"`, `"quay.*/team"`},
		"an unknown requirement":   {`"sigstoreSigned"`, `"insecureAcceptAnything"`},
		"a requirement for no name": {`"signedIdentity": {
            "type": "matchRepository"`, `"signedIdentity": {
            "type": ""`},
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

// TestAPolicyWithoutRequirementsIsRefused: it would let every image pass, or none.
func TestAPolicyWithoutRequirementsIsRefused(t *testing.T) {
	table := example()
	table.Policies[1].Requirements = nil
	if _, err := table.Encode(); err == nil {
		t.Error("it was encoded")
	}
}

// TestTheLongestScopeHasThePolicy; payload/image-verifier compares it with containers/image.
func TestTheLongestScopeHasThePolicy(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	table := Table{Allowed: []string{"quay.io", "quay.io/team/open", "quay.io/same", "*.example", "b.example"}}
	for _, s := range []string{"quay.io", "quay.io/team", "quay.io/team/app:v1", "quay.io/team/app@" + digest, "quay.io/same", "*.io", "*.example", "*.a.example", "a.x", "*.x"} {
		table.Policies = append(table.Policies, Policy{Scope: s})
	}
	for image, want := range map[Image]string{
		{"quay.io", "team/app", "v1"}:     "quay.io/team/app:v1",
		{"quay.io", "team/app", "v2"}:     "quay.io/team",
		{"quay.io", "team/app", digest}:   "quay.io/team/app@" + digest,
		{"quay.io", "team/open/x", "v1"}:  "",
		{"quay.io", "team/opener", "v1"}:  "quay.io/team",
		{"quay.io", "same/x", "v1"}:       "quay.io/same",
		{"quay.io", "other", "v1"}:        "quay.io",
		{"docker.io", "library/a", "v1"}:  "*.io",
		{"r.a.example:5000", "x", "v1"}:   "*.a.example",
		{"b.example", "x", "v1"}:          "",
		{"c.example", "x", "v1"}:          "*.example",
		{"a.x", "x", "v1"}:                "a.x",
		{"b.x", "x", "v1"}:                "*.x",
		{"else.com", "x", "v1"}:           "",
		{"quay.io:443", "team/app", "v1"}: "*.io",
	} {
		if p, ok := table.PolicyFor(image); p.Scope != want || ok != (want != "") {
			t.Errorf("%s: %q, want %q", image, p.Scope, want)
		}
	}
}
