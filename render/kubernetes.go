package render

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
	"wmco/render/kubelets"
)

// PausedPoolMode is what Windows nodes do about a new minor version of Kubernetes while the worker pool is paused.
type PausedPoolMode string

const (
	// PausedPoolWait keeps them at the version of the pool, as an update of two minor versions at once wants it (EUS to
	// EUS).
	PausedPoolWait PausedPoolMode = "Wait"
	// PausedPoolFollow follows the API server.
	PausedPoolFollow PausedPoolMode = "Follow"
)

// KubernetesSettings are about the minor version of Kubernetes on nodes.
type KubernetesSettings struct {
	// PausedPool is Wait or Follow.
	PausedPool PausedPoolMode `json:"pausedPool"`
}

func (k KubernetesSettings) checkValues() bundle.Findings {
	if k.PausedPool != PausedPoolWait && k.PausedPool != PausedPoolFollow {
		return bundle.Findings{invalidSetting("kubernetes.pausedPool", "%q is neither Wait nor Follow", k.PausedPool)}
	}
	return nil
}

// WorkerPool is what the MachineConfigPool worker has about the version of Linux nodes.
type WorkerPool struct {
	Paused bool
	// Release is the cluster's version that its current configuration was rendered by, such as "4.18.12"; empty if
	// unknown.
	Release string
}

// oldestBehind is how many minor versions a kubelet may be older than the API server
// (kubernetes.io/releases/version-skew-policy).
const oldestBehind = 3

// kubernetesOf returns the minor version of Kubernetes of a cluster's version, empty where that is not known, and
// whether it is supported.
func kubernetesOf(version string) (string, bool) {
	n, ok := payload.KubernetesOf(version)
	if !ok {
		return "", false
	}
	minor := fmt.Sprintf("1.%d", n)
	_, supported := payload.ReleaseOf(minor)
	return minor, supported
}

// Kubernetes returns the minor version of Kubernetes that nodes of the cluster get, such as "1.36": that of the newest
// completed version of the cluster. While the worker pool is paused, it is that of the pool, if the API server allows
// it. A cluster that is too old is refused, and one that is too new, or of an unknown version, gets the newest.
func (c Cluster) Kubernetes() string {
	server, ok := kubernetesOf(c.Version)
	if !ok {
		releases := payload.Releases()
		if server != "" && isBehind(server, releases[0].Minor) {
			return releases[0].Minor
		}
		return releases[len(releases)-1].Minor
	}
	waits := c.Pool.Paused && c.Settings.Kubernetes.PausedPool == PausedPoolWait
	if kept, ok := kubernetesOf(c.Pool.Release); ok && waits && isBehind(kept, server) {
		return notOlderThan(kept, server)
	}
	return server
}

// isBehind reports whether a minor version is older than the other one.
func isBehind(kubelet, server string) bool { return minorsBehind(kubelet, server) > 0 }

// minorsBehind returns by how many minor versions a kubelet is older than the API server.
func minorsBehind(kubelet, server string) int {
	k, _ := payload.MinorNumber(kubelet)
	s, _ := payload.MinorNumber(server)
	return s - k
}

// notOlderThan returns the kubelet's minor version, or the oldest one that the API server allows.
func notOlderThan(kubelet, server string) string {
	s, _ := payload.MinorNumber(server)
	if minorsBehind(kubelet, server) <= oldestBehind {
		return kubelet
	}
	return fmt.Sprintf("1.%d", s-oldestBehind)
}

// checkVersion reports whether the cluster's version is supported, and what its nodes get instead of the kubelet of that
// version.
func (c Cluster) checkVersion() bundle.Findings {
	r := report{ref: orRef(c.Origins[FromVersion], bundle.Ref{Kind: "ClusterVersion", Name: "version"})}
	const field = "status.history"
	if c.Version == "" {
		r.addFinding(
			bundle.SeverityInfo, reason.ClusterVersionUnknown, field,
			fmt.Sprintf(
				"the cluster's version is not known: this is rendered for Kubernetes %s, and it is not checked "+
					"whether this release supports the cluster",
				c.Kubernetes(),
			),
			"add the object: oc get clusterversions.config.openshift.io version -o yaml",
		)
		return r.findings
	}
	if _, err := semver.NewVersion(c.Version); err != nil {
		r.addFinding(
			bundle.SeverityWarning, reason.ClusterVersionUnsupported, field,
			fmt.Sprintf("%q is not a version", c.Version), "correct the version in the object",
		)
		return r.findings
	}
	server, supported := kubernetesOf(c.Version)
	if oldest := payload.Releases()[0]; server != "" && isBehind(server, oldest.Minor) {
		r.addFinding(
			bundle.SeverityError, reason.KubeletTooNew, field,
			fmt.Sprintf(
				"cluster version %s has Kubernetes %s, and the oldest kubelet of this release, %s, is newer than its API server",
				c.Version, server, oldest.Version,
			),
			fmt.Sprintf("update the cluster to %s or later first", oldest.Clusters()[0]),
		)
		return r.findings
	}
	if !supported {
		all := payload.ClusterVersions()
		r.addFinding(bundle.SeverityWarning, reason.ClusterVersionUnsupported, field,
			fmt.Sprintf(
				"this release does not support cluster version %s: its kubelets are for clusters %s to %s, and nodes get %s",
				c.Version, all[0].Cluster, all[len(all)-1].Cluster, c.KubeletVersion(),
			),
			"use the release of the operator for the cluster's version; until then no host joins, and nodes "+
				"follow other inputs unless that kubelet is newer than the API server")
		return r.findings
	}
	if isBehind(c.Kubernetes(), server) {
		c.kubeletKept(&r)
	}
	return r.findings
}

// kubeletKept reports that nodes wait for the worker pool, and what that means for the cluster's next update.
func (c Cluster) kubeletKept(r *report) {
	message := fmt.Sprintf(
		"MachineConfigPool worker is paused at %s: Windows nodes keep kubelet %s, and skip to that of the cluster when the pool is resumed",
		c.Pool.Release, c.KubeletVersion(),
	)
	fix := "resume the pool to update them: oc patch machineconfigpool worker --type merge -p " +
		"'{\"spec\":{\"paused\":false}}', or set kubernetes.pausedPool to Follow in " + SettingsConfigMap
	if payload.RefusesUpdate(c.Version, c.KubeletVersion()) {
		message += "; until then OpenShift refuses the next minor update of the cluster (KubeletMinorVersionUpgradeable)"
	}
	r.addFinding(bundle.SeverityInfo, reason.KubeletKept, "status.history", message, fix)
}

// KubeletVersion returns the version of the kubelet that nodes get, such as "v1.36.3".
func (c Cluster) KubeletVersion() string {
	r, _ := payload.ReleaseOf(c.Kubernetes())
	return r.Version
}

// kubeletTable returns what the kubelet of the nodes knows.
func (c Cluster) kubeletTable() kubelets.Table {
	t, _ := kubelets.Of(c.Kubernetes())
	return t
}
