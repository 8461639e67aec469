package desired

import (
	"slices"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// PreviewOnly returns the findings for which a bundle may be shown, but must not reach a host: a stand-in would replace
// a secret that works, and a cluster of another version may not work with this kubelet. Allowed are the reasons that
// the user accepts; a stand-in cannot be accepted.
func PreviewOnly(findings bundle.Findings, allowed ...string) bundle.Findings {
	return slices.DeleteFunc(slices.Clone(findings), func(f bundle.Finding) bool {
		switch f.Reason {
		case reason.SecretStandIn:
			return false
		case reason.ClusterVersionUnsupported:
			return slices.Contains(allowed, f.Reason)
		}
		return true
	})
}

// BlockingFindings returns the findings for which the operator leaves everything as it is: errors, and inputs whose
// bundles may only be shown. A host whose name cannot be used is left out, and concerns no other. In a cluster of
// another version nodes follow the inputs with the kubelet that there is, unless it is newer than an API server
// (controller/rollout).
func BlockingFindings(findings bundle.Findings) bundle.Findings {
	errs := slices.DeleteFunc(slices.Clone(findings), func(f bundle.Finding) bool {
		return f.Severity != bundle.SeverityError || f.Node != ""
	})
	return append(errs, PreviewOnly(findings, reason.ClusterVersionUnsupported)...)
}
