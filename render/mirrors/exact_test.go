package mirrors

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway/places"
)

const gatewayAddress = "127.0.0.1:22629"

func buildExact(in Inputs) Result {
	return Build(in, Options{Mode: Exact, Gateway: gatewayAddress, PartialNever: Closed, PullSecretOnNodes: true})
}

// TestFewRegistriesGoThroughTheGateway: those that a hosts file does not express, and no other.
func TestFewRegistriesGoThroughTheGateway(t *testing.T) {
	for name, c := range map[string]struct {
		in     Inputs
		routed []string
		// direct are the registries with a hosts file of their own.
		direct []string
	}{
		"whole registries":            {Inputs{Sets: idms("q.io m.io", "r.io n.io/r")}, nil, []string{"q.io", "r.io"}},
		"a part":                      {Inputs{Sets: idms("q.io/a m.io/a", "r.io m.io/r")}, []string{"q.io"}, []string{"r.io"}},
		"another path":                {Inputs{Sets: idms("q.io/a m.io/b")}, []string{"q.io"}, nil},
		"never for a part":            {Inputs{Sets: idms("!q.io/a m.io/a", "!r.io m.io")}, []string{"q.io"}, []string{"r.io"}},
		"tags and digests apart":      {Inputs{Sets: slices.Concat(idms("q.io m.io"), sets(TagSet, []string{"q.io n.io"}))}, []string{"q.io"}, nil},
		"a wildcard":                  {Inputs{Sets: idms("*.io m.io", "q.io m.io")}, []string{"*"}, []string{"q.io"}},
		"a blocked part":              {Inputs{Scopes: Scopes{Blocked: []string{"q.io/a", "r.io"}}}, []string{"q.io"}, []string{"r.io"}},
		"a blocked wildcard":          {Inputs{Scopes: Scopes{Blocked: []string{"*.q.io"}}}, []string{"*"}, nil},
		"a blocked one with mirrors":  {Inputs{Sets: idms("q.io m.io"), Scopes: Scopes{Blocked: []string{"q.io"}}}, nil, []string{"q.io"}},
		"an insecure part":            {Inputs{Scopes: Scopes{Insecure: []string{"q.io/a", "r.io"}}}, []string{"q.io"}, []string{"r.io"}},
		"a blocked image":             {Inputs{Scopes: Scopes{Blocked: []string{"q.io/a:v1", "r.io"}}}, []string{"q.io"}, []string{"r.io"}},
		"an allowed part":             {Inputs{Scopes: Scopes{Allowed: []string{"q.io/a", "r.io"}}}, []string{"q.io"}, []string{"_default", "r.io"}},
		"an allowed wildcard":         {Inputs{Scopes: Scopes{Allowed: []string{"*.q.io", "r.io"}}}, []string{"*"}, []string{"r.io"}},
		"a part with Linux images":    {Inputs{Sets: idms("registry.redhat.io/a m.io/b")}, nil, nil},
		"a name that is no folder":    {Inputs{Sets: idms("nul.local m.io")}, []string{"*"}, nil},
		"a policy":                    {Inputs{Sets: idms("q.io m.io", "r.io m.io"), Policies: policies("q.io/a")}, []string{"q.io"}, []string{"r.io"}},
		"a policy for an image":       {Inputs{Policies: policies("q.io/a:v1", "r.io/b@"+digestOfNothing)}, []string{"q.io", "r.io"}, nil},
		"a policy for a wildcard":     {Inputs{Sets: idms("r.q.io m.io", "q.io m.io"), Policies: policies("*.q.io")}, []string{"*", "r.q.io"}, []string{"q.io"}},
		"a policy for no image":       {Inputs{Policies: policies("not a scope")}, nil, nil},
		"credentials of the registry": {Inputs{Sets: idms("q.io m.io"), PullSecret: pullSecret("q.io")}, []string{"q.io"}, nil},
		"credentials of the mirror":   {Inputs{Sets: idms("q.io m.io"), PullSecret: pullSecret("m.io")}, nil, []string{"q.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := buildExact(c.in)
			var direct []string
			for _, f := range r.Files {
				if !f.Routed {
					direct = append(direct, f.Host)
				}
				if f.Routed && len(f.Causes) == 0 {
					t.Errorf("%s goes through the gateway without a cause", f.Host)
				}
			}
			if diff := cmp.Diff([][]string{c.routed, c.direct}, [][]string{r.Table.Routed, direct}); diff != "" {
				t.Errorf("routed and direct (-want +got):\n%s", diff)
			}
			for _, f := range r.Findings {
				if f.Severity == bundle.SeverityWarning || f.Reason == reason.PullSecretEntryWithheld {
					t.Errorf("a finding: %+v", f)
				}
			}
		})
	}
}

func pullSecret(keys ...string) bundle.Secret {
	var auths []string
	for _, k := range keys {
		auths = append(auths, `"`+k+`":{"auth":"dTpw"}`)
	}
	return bundle.NewSecret(`{"auths":{` + strings.Join(auths, ",") + `}}`)
}

// TestNamesOfNoRegistriesAreHarmless: OpenShift accepts any text without an asterisk in the lists of Image/cluster.
func TestNamesOfNoRegistriesAreHarmless(t *testing.T) {
	odd := []string{"q.io/a:v1", "https://q.io", "user:hunter2@r.io", "q.io/Upper", "q.io/a?token=hunter2", "", " ", "q.io/../b", "q.io/\x1b[0m", "q.io/c@" + digestOfNothing}
	for name, c := range map[string]struct {
		scopes          Scopes
		denied, allowed []string
	}{
		"blocked":        {Scopes{Blocked: append(odd[:len(odd):len(odd)], "q.io/b"), Insecure: odd}, []string{"q.io/a:v1", "q.io/b:v1", "q.io/c@" + digestOfNothing}, []string{"q.io/a:v2", "r.io/a:v1", "q.io/c:v1"}},
		"allowed":        {Scopes{Allowed: odd}, []string{"q.io/a:v2", "r.io/a:v1", "q.io/b:v1"}, []string{"q.io/a:v1", "q.io/c@" + digestOfNothing}},
		"nothing usable": {Scopes{Allowed: odd[1:4]}, []string{"q.io/a:v1", "r.io/a:v1"}, nil},
	} {
		in := Inputs{Sets: idms("q.io/m m.io"), Scopes: c.scopes}
		in.Scopes.Ref = bundle.Ref{Kind: "Image", Name: "cluster"}
		table := buildExact(in).Table
		data, err := table.Encode()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := string(data); strings.Contains(text, "hunter2") || strings.ContainsRune(text, 0x1b) {
			t.Errorf("%s: %s", name, text)
		}
		if table, err = places.Decode(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, image := range append(c.denied, c.allowed...) {
			d := table.Decide(imageNamed(image))
			if isAllowed := slices.Contains(c.allowed, image); isAllowed != (len(d.Places) > 0) {
				t.Errorf("%s: %s: %+v", name, image, d)
			}
		}
	}
}

const digestOfNothing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func imageNamed(text string) places.Image {
	name, reference, isDigest := strings.Cut(text, "@")
	if !isDigest {
		name, reference, _ = strings.Cut(text, ":")
	}
	registry, repository, _ := strings.Cut(name, "/")
	return places.Image{Registry: registry, Repository: repository, Reference: reference}
}

func TestTheTableHasCredentialsOfMirrorsAlone(t *testing.T) {
	r := buildExact(Inputs{Sets: idms("q.io/a m.io/x/b"), PullSecret: pullSecret("m.io", "m.io/x/b/c", "m.io/y", "q.io", "other.io")})
	var keys []string
	for _, c := range r.Table.Credentials {
		keys = append(keys, c.Key)
	}
	if diff := cmp.Diff([]string{"m.io", "m.io/x/b/c"}, keys); diff != "" {
		t.Error(diff)
	}
	keys = nil
	for _, c := range r.KubeletCredentials {
		keys = append(keys, c.Key)
	}
	if diff := cmp.Diff([]string{"m.io", "m.io/x/b/c", "m.io/y", "other.io", "q.io"}, keys); diff != "" {
		t.Error("kubelets: " + diff)
	}
}

// TestMirrorsGetNothingOfTheKubelets: what is listed for an image is what the gateway does.
func TestMirrorsGetNothingOfTheKubelets(t *testing.T) {
	in := Inputs{Sets: idms("q.io/a m.io/b n.io/c"), PullSecret: pullSecret("m.io", "q.io")}
	var got []string
	for _, p := range buildExact(in).Pulls(in, "q.io/a/x@sha256:0") {
		got = append(got, strings.Join(append([]string{p.URL}, p.Keys...), " "))
		if p.FromKubelet != strings.HasPrefix(p.URL, "https://q.io/") {
			t.Errorf("%+v", p)
		}
	}
	if diff := cmp.Diff([]string{"https://m.io/v2/b/x m.io", "https://n.io/v2/c/x", "https://q.io/v2/a/x q.io"}, got); diff != "" {
		t.Error(diff)
	}
}

// policies is one ClusterImagePolicy for some scopes.
func policies(scopes ...string) []SignaturePolicy {
	return []SignaturePolicy{{
		Ref: bundle.Ref{Kind: "ClusterImagePolicy", Name: "signed"}, Scopes: scopes,
		Requirement: places.Requirement{Type: places.SigstoreSigned, KeyData: []byte("key"), SignedIdentity: places.Identity{Type: "matchRepository"}},
	}}
}

// TestPoliciesAreForTheirScopes: those that name one scope are to be satisfied together.
func TestPoliciesAreForTheirScopes(t *testing.T) {
	list := append(policies("q.io/a", "q.io/a:v1", "q.io/b:v1@"+digestOfNothing, "Q.io"), policies("q.io/a")...)
	list[1].Ref.Name = "again"
	table := buildExact(Inputs{Policies: list}).Table
	if data, err := table.Encode(); err != nil {
		t.Errorf("%v: %s", err, data)
	}
	var got []string
	for _, p := range table.Policies {
		got = append(got, strings.Join(append([]string{p.Scope}, p.Objects...), " "))
		if len(p.Requirements) != len(p.Objects) {
			t.Errorf("%+v", p)
		}
	}
	if diff := cmp.Diff([]string{"Q.io ClusterImagePolicy/signed", "q.io/a ClusterImagePolicy/signed ClusterImagePolicy/again", "q.io/a:v1 ClusterImagePolicy/signed"}, got); diff != "" {
		t.Error(diff)
	}
	if table := Build(Inputs{Policies: list}, Options{Mode: HostsFiles, PartialNever: Closed}).Table; len(table.Routed) > 0 {
		t.Errorf("without a gateway: %+v", table)
	}
}

// TestPoliciesThatOpenShiftRefusesAreRefused, in the mode that applies them.
func TestPoliciesThatOpenShiftRefusesAreRefused(t *testing.T) {
	unusable := policies("q.io")
	unusable[0].Problem = "its root of trust is not known"
	for name, c := range map[string]struct {
		in    Inputs
		field string
	}{
		"unusable":               {Inputs{Policies: unusable}, "spec.policy"},
		"not allowed":            {Inputs{Policies: policies("q.io/a", "r.io"), Scopes: Scopes{Allowed: []string{"q.io"}}}, "spec.scopes[1]"},
		"wider than what is":     {Inputs{Policies: policies("q.io"), Scopes: Scopes{Allowed: []string{"q.io/a"}}}, "spec.scopes[0]"},
		"blocked":                {Inputs{Policies: policies("q.io/a"), Scopes: Scopes{Blocked: []string{"q.io"}}}, "spec.scopes[0]"},
		"blocked by a wildcard":  {Inputs{Policies: policies("*.a.io"), Scopes: Scopes{Blocked: []string{"*.io"}}}, "spec.scopes[0]"},
		"wider than what is not": {Inputs{Policies: policies("q.io"), Scopes: Scopes{Blocked: []string{"q.io/a"}}}, ""},
	} {
		r := buildExact(c.in)
		refused := ""
		for _, f := range r.Findings {
			if f.Severity == bundle.SeverityError && f.Reason == reason.MirrorsRefused && f.Object.Name == "signed" && f.Fix != "" {
				refused += f.Field
			}
		}
		if refused != c.field || r.Findings.Refused() != (c.field != "") {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		if f := Build(c.in, Options{Mode: HostsFiles, PartialNever: Closed}).Findings; f.Refused() {
			t.Errorf("%s, without a gateway: %+v", name, f)
		}
	}
}
