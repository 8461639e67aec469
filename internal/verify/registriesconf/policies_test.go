package registriesconf

import (
	"testing"

	"github.com/openshift/runtime-utils/pkg/registries"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// TestPoliciesAreRefusedAsByOpenShift: a scope of a policy must be inside an allowed registry, and inside no blocked one. What is inside what decides the
// function that the machine-config-operator calls.
func TestPoliciesAreRefusedAsByOpenShift(t *testing.T) {
	names := []string{
		"a.io", "a.io:5000", "a.io/b", "a.io:5000/b", "a.io/b:v1", "a.io/b@" + someDigest, "a.io:5000/b:v1", "x.a.io", "x.a.io:5000", "x.a.io/b", "x.a.io/b:v1",
		"x.a.io:5000/b", "x.a.io:5000/b:v1", "x.a.io/b@" + someDigest, "*.a.io", "*.x.a.io", "*.io", "aa.io", "a.io/bb", "b.io",
	}
	policy := bundle.Ref{Group: "config.openshift.io", Kind: "ClusterImagePolicy", Name: "p"}
	nested := 0
	for _, outer := range names {
		for _, scope := range names {
			inside := registries.ScopeIsNestedInsideScope(scope, outer)
			if inside {
				nested++
			}
			for list, in := range map[string]mirrors.Inputs{
				"allowed": {Scopes: mirrors.Scopes{Allowed: []string{outer}}}, "blocked": {Scopes: mirrors.Scopes{Blocked: []string{outer}}},
			} {
				in.Policies = []mirrors.SignaturePolicy{{Ref: policy, Scopes: []string{scope}}}
				refused := false
				for _, f := range mirrors.Build(in, mirrors.Options{Mode: mirrors.Exact, PartialNever: mirrors.Closed, Gateway: "127.0.0.1:22629"}).Findings {
					refused = refused || f.Object == policy && f.Severity == bundle.SeverityError
				}
				if refused != (inside == (list == "blocked")) {
					t.Errorf("%s, with %s %s: refused %t", scope, outer, list, refused)
				}
			}
		}
	}
	if nested < 2*len(names) {
		t.Errorf("only %d of %d are inside", nested, len(names)*len(names))
	}
}
