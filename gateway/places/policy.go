package places

import (
	"fmt"
	"regexp"
	"strings"
)

// Policy is which signatures the images of a scope need.
type Policy struct {
	// Scope is host[:port][/path], *.host, or an image with its tag or digest.
	Scope string `json:"scope"`
	// Objects are those that demand it, such as ClusterImagePolicy/signed.
	Objects []string `json:"objects"`
	// Requirements are all to be met.
	Requirements []Requirement `json:"requirements"`
}

// Requirement is an entry of policy.json (containers-policy.json(5), sigstoreSigned).
type Requirement struct {
	Type               string   `json:"type"`
	KeyData            []byte   `json:"keyData,omitempty"`
	Fulcio             *Fulcio  `json:"fulcio,omitempty"`
	RekorPublicKeyData []byte   `json:"rekorPublicKeyData,omitempty"`
	PKI                *PKI     `json:"pki,omitempty"`
	SignedIdentity     Identity `json:"signedIdentity"`
}

// SigstoreSigned is the only type of requirement: a ClusterImagePolicy has no other.
const SigstoreSigned = "sigstoreSigned"

// Fulcio is a CA for certificates of signers whom an OpenID Connect issuer knows.
type Fulcio struct {
	CAData       []byte `json:"caData"`
	OIDCIssuer   string `json:"oidcIssuer"`
	SubjectEmail string `json:"subjectEmail"`
}

// PKI is a CA of one's own.
type PKI struct {
	CARootsData         []byte `json:"caRootsData"`
	CAIntermediatesData []byte `json:"caIntermediatesData,omitempty"`
	SubjectEmail        string `json:"subjectEmail,omitempty"`
	SubjectHostname     string `json:"subjectHostname,omitempty"`
}

// Identity is the name for which an image must be signed.
type Identity struct {
	Type             string `json:"type"`
	DockerRepository string `json:"dockerRepository,omitempty"`
	Prefix           string `json:"prefix,omitempty"`
	SignedPrefix     string `json:"signedPrefix,omitempty"`
}

// PolicyFor returns the policy for an image by its own name, as policy.json of Linux nodes has it: the longest scope counts, and an allowed registry
// inside the scope of a policy needs no signature (containers/image, PolicyContext.requirementsForImageRef; openshift/machine-config-operator,
// updatePolicyJSON).
func (t Table) PolicyFor(i Image) (Policy, bool) {
	best, found := Policy{}, false
	for _, p := range t.Policies {
		if namesImage(p.Scope, i) && isNarrower(p.Scope, best.Scope) {
			best, found = p, true
		}
	}
	for _, a := range t.Allowed {
		if found && a != best.Scope && namesImage(a, i) && isNarrower(a, best.Scope) {
			return Policy{}, false
		}
	}
	return best, found
}

// isNarrower compares scopes that both name an image.
func isNarrower(a, b string) bool {
	return len(a) > len(b) || len(a) == len(b) && strings.HasPrefix(b, "*")
}

// namesImage reports whether a scope, or an image with its tag or digest, is that of an image.
func namesImage(scope string, i Image) bool { return scope == i.String() || Covers(scope, i.Name()) }

// imageScope is an image with a tag or a digest (github.com/openshift/api, config/v1, ImageScope).
var imageScope = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)+(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}|@[a-zA-Z0-9_+.-]+:[0-9a-fA-F]{32,})$`)

// checkPolicies refuses scopes that no image could be compared with, and policies without a requirement, which would let everything pass.
func (t Table) checkPolicies() error {
	for i, p := range t.Policies {
		if !location.MatchString(strings.TrimPrefix(p.Scope, "*.")) && !imageScope.MatchString(p.Scope) {
			return fmt.Errorf("%s: policies[%d].scope is no registry, part of one or image", what, i)
		}
		if len(p.Requirements) == 0 {
			return fmt.Errorf("%s: policies[%d] has no requirements", what, i)
		}
		for j, r := range p.Requirements {
			if r.Type != SigstoreSigned || r.SignedIdentity.Type == "" {
				return fmt.Errorf("%s: policies[%d].requirements[%d] is of no known type", what, i, j)
			}
		}
	}
	return nil
}
