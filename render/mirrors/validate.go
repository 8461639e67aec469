package mirrors

import (
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// validateSets refuses what the machine-config-operator refuses, with its messages. Linux nodes then keep their last
// configuration, and so do Windows nodes.
func (in Inputs) validateSets() bundle.Findings {
	var findings bundle.Findings
	refuse := func(ref bundle.Ref, field, message, fix string) {
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.MirrorsRefused, Object: ref, Field: field,
			Message: message, Fix: fix,
		})
	}
	for _, s := range in.Sets {
		if _, ok := parseScope(s.Source); !ok {
			refuse(s.Ref, s.Field+".source", fmt.Sprintf("invalid format for source %q", ShownName(s.Source)), fixScope)
		}
		for i, m := range s.Mirrors {
			if p, ok := parseScope(m); !ok || p.wildcard {
				refuse(
					s.Ref, fmt.Sprintf("%s.mirrors[%d]", s.Field, i),
					fmt.Sprintf("invalid format for mirror %q", ShownName(m)), fixScope,
				)
			}
			if m == s.Source && s.Policy == NeverContactSource {
				refuse(s.Ref, fmt.Sprintf("%s.mirrors[%d]", s.Field, i),
					fmt.Sprintf(
						"cannot set mirrorSourcePolicy: NeverContactSource if the source %q is one of the mirrors",
						ShownName(s.Source),
					), "remove the source from the mirrors, or allow contacting it")
			}
		}
		if s.Policy != "" && s.Policy != AllowContactingSource && s.Policy != NeverContactSource {
			refuse(
				s.Ref, s.Field+".mirrorSourcePolicy", fmt.Sprintf("%q is not a policy", s.Policy),
				"use NeverContactSource or AllowContactingSource",
			)
		}
	}
	findings = append(findings, in.policyConflicts()...)
	return append(findings, in.Scopes.validateScopes()...)
}

const fixScope = "write host[:port][/namespace[/repository]], without scheme, tag and digest; a source may be *.host"

// policyConflicts reports sources with two policies, over all kinds of sets, for every object with such a source. No
// policy counts as AllowContactingSource.
func (in Inputs) policyConflicts() bundle.Findings {
	policies := map[string]map[Policy]bool{}
	for _, s := range in.Sets {
		if policies[s.Source] == nil {
			policies[s.Source] = map[Policy]bool{}
		}
		policies[s.Source][s.effectivePolicy()] = true
	}
	var findings bundle.Findings
	for _, s := range in.Sets {
		if len(policies[s.Source]) < 2 {
			continue
		}
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.MirrorsRefused, Object: s.Ref, Field: s.Field + ".mirrorSourcePolicy",
			Message: fmt.Sprintf(
				"conflicting mirrorSourcePolicy is set for the same source %q in imagedigestmirrorsets, "+
					"imagetagmirrorsets, or imagecontentsourcepolicies",
				ShownName(s.Source),
			),
			Fix: "give the source the same policy everywhere; no policy is AllowContactingSource",
		})
	}
	return findings
}

func (s Set) effectivePolicy() Policy {
	if s.Policy == "" {
		return AllowContactingSource
	}
	return s.Policy
}

func (s Scopes) validateScopes() bundle.Findings {
	var findings bundle.Findings
	for _, list := range []struct {
		name   string
		scopes []string
	}{{"insecureRegistries", s.Insecure}, {"blockedRegistries", s.Blocked}, {"allowedRegistries", s.Allowed}} {
		for i, text := range list.scopes {
			if _, ok := parseScope(text); !ok && strings.Contains(text, "*") {
				findings = append(findings, bundle.Finding{
					Severity: bundle.SeverityError, Reason: reason.MirrorsRefused, Object: s.Ref, Field: fmt.Sprintf("spec.registrySources.%s[%d]", list.name, i),
					Message: fmt.Sprintf(
						"invalid entry for %s %q", strings.TrimSuffix(list.name, "Registries")+" registries",
						ShownName(text),
					), Fix: fixScope,
				})
			}
		}
	}
	if len(s.Allowed) > 0 && len(s.Blocked) > 0 {
		findings = append(findings, bundle.Finding{
			Severity: bundle.SeverityError, Reason: reason.MirrorsRefused, Object: s.Ref, Field: "spec.registrySources",
			Message: "invalid images config: only one of AllowedRegistries or BlockedRegistries may be specified", Fix: "remove one of the two lists",
		})
	}
	return findings
}
