package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway/places"
)

// SignaturePolicy is a ClusterImagePolicy: which signatures the images of its scopes need.
type SignaturePolicy struct {
	Ref bundle.Ref
	// Scopes are host[:port][/path], *.host, or images with a tag or digest.
	Scopes      []string
	Requirement places.Requirement
	// Problem is why it cannot be applied; empty if it can.
	Problem string
}

// validatePolicies refuses what the machine-config-operator refuses too (pkg/controller/container-runtime-config/helpers.go, policyItemFromSpec and
// validateImagePolicyWithAllowedBlockedRegistries).
func (in Inputs) validatePolicies() bundle.Findings {
	var findings bundle.Findings
	refuse := func(p SignaturePolicy, field, message, fix string) {
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.MirrorsRefused, Object: p.Ref, Field: field, Message: message, Fix: fix,
		})
	}
	for _, p := range in.Policies {
		if p.Problem != "" {
			refuse(p, "spec.policy", p.Problem, "correct the policy")
		}
		for i, s := range p.Scopes {
			field := fmt.Sprintf("spec.scopes[%d]", i)
			contains := func(outer string) bool { return isNested(s, outer) }
			switch {
			case len(in.Scopes.Allowed) > 0 && !slices.ContainsFunc(in.Scopes.Allowed, contains):
				refuse(p, field, fmt.Sprintf("%s is not in the allowedRegistries of %s", s, in.Scopes.Ref), "allow it there, or remove the scope")
			case slices.ContainsFunc(in.Scopes.Blocked, contains):
				refuse(p, field, fmt.Sprintf("%s is in the blockedRegistries of %s", s, in.Scopes.Ref), "unblock it there, or remove the scope")
			}
		}
	}
	return findings
}

// signedScope returns the registry or part of one that a scope of a policy is about.
func signedScope(text string) (scope, bool) { return parseScope(repositoriesOf([]string{text})[0]) }

// routeSigned sends the registries through the gateway whose images need signatures: containerd verifies none.
func (b *builder) routeSigned() {
	if !b.exact {
		return
	}
	for _, p := range b.in.Policies {
		for _, text := range p.Scopes {
			s, ok := signedScope(text)
			if !ok {
				continue // no image can have such a name
			}
			b.lookAt(s)
			b.routed[b.at] = true
			if b.at != DefaultHost {
				b.hostNamed(b.at)
			}
		}
	}
}

// policiesOf returns the policies about images of a registry, or of those without a file.
func (b *builder) policiesOf(name string) (refs []bundle.Ref) {
	for _, p := range b.in.Policies {
		if slices.ContainsFunc(p.Scopes, func(text string) bool {
			s, ok := signedScope(text)
			return ok && (s.host == name || s.covers(scope{host: name}) || name == DefaultHost && whyUnrepresentable(s) != "")
		}) {
			refs = appendNew(refs, p.Ref)
		}
	}
	return refs
}

// signaturePolicies returns the policies by scope, as in policy.json: all that name a scope are to be satisfied.
func (in Inputs) signaturePolicies() []places.Policy {
	var list []places.Policy
	for _, p := range in.Policies {
		for _, s := range p.Scopes {
			if _, ok := signedScope(s); !ok || strings.Contains(s, "@") && strings.Contains(s[strings.LastIndex(s, "/")+1:strings.Index(s, "@")], ":") {
				continue // also a name with a tag and a digest, by which Linux nodes find no policy either
			}
			i := slices.IndexFunc(list, func(x places.Policy) bool { return x.Scope == s })
			if i < 0 {
				i = len(list)
				list = append(list, places.Policy{Scope: s})
			}
			list[i].Objects = appendNew(list[i].Objects, p.Ref.String())
			list[i].Requirements = append(list[i].Requirements, p.Requirement)
		}
	}
	slices.SortFunc(list, func(x, y places.Policy) int { return strings.Compare(x.Scope, y.Scope) })
	return list
}
