package gather

import (
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"wmco/controller/gather/ignored"
	"wmco/gateway/places"
	"wmco/render/mirrors"
)

// readImagePolicies reads the policies of the cluster about signatures of images, where Windows nodes apply them.
func (g *gatherer) readImagePolicies() {
	if g.cluster.Settings.Mirrors.Mode != mirrors.Exact {
		return
	}
	for _, o := range g.listObjects(groupConfig, ignored.ImagePolicyKind) {
		var policy configv1.ClusterImagePolicy
		if o.Ref.Name == ignored.ReleasePolicy || !g.decodeObject(o, &policy) {
			continue
		}
		p := mirrors.SignaturePolicy{Ref: o.Ref}
		for _, s := range policy.Spec.Scopes {
			p.Scopes = append(p.Scopes, string(s))
		}
		var err error
		if p.Requirement, err = requirementOf(policy.Spec.Policy); err != nil {
			p.Problem = err.Error()
		}
		g.cluster.Mirrors.Policies = append(g.cluster.Mirrors.Policies, p)
	}
}

// requirementOf returns a policy as policy.json of Linux nodes has it (openshift/machine-config-operator,
// pkg/controller/container-runtime-config/helpers.go, policyItemFromSpec).
func requirementOf(p configv1.Policy) (places.Requirement, error) {
	r := places.Requirement{Type: places.SigstoreSigned}
	switch root := p.RootOfTrust; {
	case root.PolicyType == configv1.PublicKeyRootOfTrust && root.PublicKey != nil:
		r.KeyData, r.RekorPublicKeyData = root.PublicKey.KeyData, root.PublicKey.RekorKeyData
	case root.PolicyType == configv1.FulcioCAWithRekorRootOfTrust && root.FulcioCAWithRekor != nil:
		f := root.FulcioCAWithRekor
		r.Fulcio = &places.Fulcio{CAData: f.FulcioCAData, OIDCIssuer: f.FulcioSubject.OIDCIssuer, SubjectEmail: f.FulcioSubject.SignedEmail}
		r.RekorPublicKeyData = f.RekorKeyData
	case root.PolicyType == configv1.PKIRootOfTrust && root.PKI != nil:
		k := root.PKI
		r.PKI = &places.PKI{
			CARootsData: k.CertificateAuthorityRootsData, CAIntermediatesData: k.CertificateAuthorityIntermediatesData,
			SubjectEmail: k.PKICertificateSubject.Email, SubjectHostname: k.PKICertificateSubject.Hostname,
		}
	default:
		return r, fmt.Errorf("its root of trust %q is not known, or is empty", root.PolicyType)
	}
	var err error
	r.SignedIdentity, err = identityOf(p.SignedIdentity)
	return r, err
}

// identityOf returns the name for which images must be signed.
func identityOf(p *configv1.PolicyIdentity) (places.Identity, error) {
	if p == nil {
		return places.Identity{Type: "matchRepoDigestOrExact"}, nil
	}
	switch {
	case p.MatchPolicy == configv1.IdentityMatchPolicyMatchRepoDigestOrExact:
		return places.Identity{Type: "matchRepoDigestOrExact"}, nil
	case p.MatchPolicy == configv1.IdentityMatchPolicyMatchRepository:
		return places.Identity{Type: "matchRepository"}, nil
	case p.MatchPolicy == configv1.IdentityMatchPolicyExactRepository && p.PolicyMatchExactRepository != nil:
		return places.Identity{Type: "exactRepository", DockerRepository: string(p.PolicyMatchExactRepository.Repository)}, nil
	case p.MatchPolicy == configv1.IdentityMatchPolicyRemapIdentity && p.PolicyMatchRemapIdentity != nil:
		m := p.PolicyMatchRemapIdentity
		return places.Identity{Type: "remapIdentity", Prefix: string(m.Prefix), SignedPrefix: string(m.SignedPrefix)}, nil
	}
	return places.Identity{}, fmt.Errorf("its matchPolicy %q is not known, or is empty", p.MatchPolicy)
}
