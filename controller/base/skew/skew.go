// Package skew checks whether the API servers support the kubelet of the nodes.
//
//	version of the kubelet, version of each API server --CheckKubelet--> a finding, or none
//
// It is pure.
package skew

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// CheckKubelet compares the kubelet that nodes get with the oldest API server: it may not be of a newer minor version
// (kubernetes.io/releases/version-skew-policy). It returns the finding, and whether the kubelet may be published. The
// cluster's own version is what was updated, not what runs now.
func CheckKubelet(shipped string, answers []string) (bundle.Finding, bool) {
	f := bundle.Finding{Severity: bundle.SeverityError, Object: bundle.Ref{Kind: "ClusterVersion", Name: "version"}}
	kubelet, err := version.ParseSemantic(shipped)
	var servers []*version.Version
	for _, s := range answers {
		v, bad := version.ParseSemantic(s)
		err = cmp.Or(err, bad)
		servers = append(servers, v)
	}
	if err != nil || len(servers) == 0 {
		f.Reason, f.Message = reason.APIServerVersionUnknown,
			"the version of the API server is not known, so kubelet "+shipped+" may be too new for it"
		f.Fix = "check that oc version prints the server's version"
		return f, false
	}
	oldest := slices.MinFunc(servers, compareVersions)
	if kubelet.Major() == oldest.Major() && kubelet.Minor() > oldest.Minor() || kubelet.Major() > oldest.Major() {
		f.Reason = reason.KubeletTooNew
		f.Message = fmt.Sprintf("kubelet %s, which nodes of this cluster get, is newer than one of its API servers, "+
			"v%s: nothing is published and no host joins until all API servers are updated", shipped, oldest)
		f.Fix = "finish the cluster's update first"
		return f, false
	}
	return f, true
}

// MayNotAsk is the finding that the operator may not ask where the API servers are, as one whose rights are older than its image.
func MayNotAsk(err error) bundle.Finding {
	return bundle.Finding{
		Severity: bundle.SeverityError, Reason: reason.APIServerVersionUnknown,
		Message: "the operator may not ask each API server for its version, so nothing is published: " + err.Error(),
		Fix:     "apply the ClusterRole of this release (deploy/rbac)",
	}
}

func compareVersions(a, b *version.Version) int {
	switch {
	case a.LessThan(b):
		return -1
	case b.LessThan(a):
		return 1
	}
	return 0
}
