package gather

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/mirrors"
)

// TestImagePoliciesAreReadAsTheirRequirements of policy.json, where Windows nodes apply them.
func TestImagePoliciesAreReadAsTheirRequirements(t *testing.T) {
	for name, c := range map[string]struct{ policy, want, problem string }{
		"key": {
			`{"rootOfTrust":{"policyType":"PublicKey","publicKey":{"keyData":"a2V5"}}}`,
			`{"type":"sigstoreSigned","keyData":"a2V5","signedIdentity":{"type":"matchRepoDigestOrExact"}}`, "",
		},
		"key in a log, for its repository": {
			`{"rootOfTrust":{"policyType":"PublicKey","publicKey":{"keyData":"a2V5","rekorKeyData":"bG9n"}},"signedIdentity":{"matchPolicy":"MatchRepository"}}`,
			`{"type":"sigstoreSigned","keyData":"a2V5","rekorPublicKeyData":"bG9n","signedIdentity":{"type":"matchRepository"}}`, "",
		},
		"Fulcio, for another repository": {
			`{"rootOfTrust":{"policyType":"FulcioCAWithRekor","fulcioCAWithRekor":{"fulcioCAData":"Y2E=","rekorKeyData":"bG9n","fulcioSubject":{"oidcIssuer":"https://issuer","signedEmail":"me@example.com"}}},"signedIdentity":{"matchPolicy":"ExactRepository","exactRepository":{"repository":"vendor.example/app"}}}`,
			`{"type":"sigstoreSigned","fulcio":{"caData":"Y2E=","oidcIssuer":"https://issuer","subjectEmail":"me@example.com"},"rekorPublicKeyData":"bG9n","signedIdentity":{"type":"exactRepository","dockerRepository":"vendor.example/app"}}`, "",
		},
		"a CA of one's own, for a mirror": {
			`{"rootOfTrust":{"policyType":"PKI","pki":{"caRootsData":"Y2E=","caIntermediatesData":"Y2Ey","pkiCertificateSubject":{"email":"me@example.com","hostname":"example.com"}}},"signedIdentity":{"matchPolicy":"RemapIdentity","remapIdentity":{"prefix":"m.example","signedPrefix":"vendor.example"}}}`,
			`{"type":"sigstoreSigned","pki":{"caRootsData":"Y2E=","caIntermediatesData":"Y2Ey","subjectEmail":"me@example.com","subjectHostname":"example.com"},"signedIdentity":{"type":"remapIdentity","prefix":"m.example","signedPrefix":"vendor.example"}}`, "",
		},
		"the default, by name": {
			`{"rootOfTrust":{"policyType":"PublicKey","publicKey":{"keyData":"a2V5"}},"signedIdentity":{"matchPolicy":"MatchRepoDigestOrExact"}}`,
			`{"type":"sigstoreSigned","keyData":"a2V5","signedIdentity":{"type":"matchRepoDigestOrExact"}}`, "",
		},
		"a newer root":              {`{"rootOfTrust":{"policyType":"Notary"}}`, "", `its root of trust "Notary" is not known, or is empty`},
		"a root without its key":    {`{"rootOfTrust":{"policyType":"PublicKey"}}`, "", `its root of trust "PublicKey" is not known, or is empty`},
		"a newer identity":          {`{"rootOfTrust":{"policyType":"PublicKey","publicKey":{"keyData":"a2V5"}},"signedIdentity":{"matchPolicy":"MatchAnything"}}`, "", `its matchPolicy "MatchAnything" is not known, or is empty`},
		"an identity without rules": {`{"rootOfTrust":{"policyType":"PublicKey","publicKey":{"keyData":"a2V5"}},"signedIdentity":{"matchPolicy":"RemapIdentity"}}`, "", `its matchPolicy "RemapIdentity" is not known, or is empty`},
	} {
		r := gatherFrom(t, Options{}, settingsOf("mirrors: {mode: Exact}"), imagePolicy("signed", c.policy), imagePolicy("openshift", c.policy))
		list := r.Cluster.Mirrors.Policies
		if len(list) != 1 || list[0].Problem != c.problem || list[0].Ref.Name != "signed" {
			t.Errorf("%s: %+v", name, list)
			continue
		}
		if diff := cmp.Diff([]string{"quay.io/team", "*.example.com"}, list[0].Scopes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got, err := json.Marshal(list[0].Requirement); c.problem == "" && (err != nil || string(got) != c.want) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(c.want, string(got)))
		}
	}
	for _, mode := range []mirrors.Mode{mirrors.HostsFiles, ""} {
		settings := "{}"
		if mode != "" {
			settings = "mirrors: {mode: " + string(mode) + "}"
		}
		r := gatherFrom(t, Options{}, settingsOf(settings), imagePolicy("signed", `{}`))
		if len(r.Cluster.Mirrors.Policies) > 0 {
			t.Errorf("%s: %+v", mode, r.Cluster.Mirrors.Policies)
		}
	}
}

func imagePolicy(name, policy string) objects.Object {
	return object(groupConfig, "ClusterImagePolicy", "", name, `{"metadata":{"name":"`+name+`"},"spec":{"scopes":["quay.io/team","*.example.com"],"policy":`+policy+`}}`)
}

func settingsOf(text string) objects.Object {
	data, _ := json.Marshal(map[string]any{"data": map[string]string{render.SettingsKey: text}}) // strings
	return object("", "ConfigMap", OperatorNamespace, settingsName, string(data))
}
