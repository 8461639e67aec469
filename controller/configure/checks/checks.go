// Package checks decides whether Windows hosts can join the cluster now, and lists missing requirements.
//
//	findings of the inputs and of the key, versions, ConfigMap trusted-ca --JudgeCluster--> conditions; who waits
//
// A check that fails makes something wait and becomes a condition. It never stops the operator: certificates of
// nodes are approved and published bundles stay in any case. The package makes no requests and reads no clock.
package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/base/conditions"
	"wmco/controller/base/skew"
	"wmco/payload"
	"wmco/render"
)

// Type is the type of a condition. Each is met or not; none is left out.
type Type string

// The types, in the order of Result.Conditions.
const (
	// APIsServed means that the cluster serves every kind that is needed, and lets the operator read it.
	APIsServed Type = "APIsServed"
	// NetworkSupported means OVN-Kubernetes with a hybrid overlay.
	NetworkSupported Type = "NetworkSupported"
	// VersionSupported means that this release is for the cluster's version, and the kubelet of its nodes not newer
	// than an API server.
	VersionSupported Type = "VersionSupported"
	// TrustedCAReady means that the CAs of the proxy are known, where there is one.
	TrustedCAReady Type = "TrustedCAReady"
	// InputsValid means that all else that bundles are made of is valid.
	InputsValid Type = "InputsValid"
	// PrivateKeyValid means that the operator can log in.
	PrivateKeyValid Type = "PrivateKeyValid"
	// PayloadComplete means that the operator has every executable that nodes on the cluster's platform need.
	PayloadComplete Type = "PayloadComplete"
)

func conditionTypes() []Type {
	return []Type{APIsServed, NetworkSupported, VersionSupported, TrustedCAReady, InputsValid, PrivateKeyValid,
		PayloadComplete}
}

// Condition is the result of one check.
type Condition struct {
	Type Type
	Met  bool
	// Reason is conditions.ReasonAsExpected, or one of bundle/reason.
	Reason string
	// Message is the problem and Fix what to do, empty for a condition that is met.
	Message, Fix string
	// Note is a remark about a condition that is met.
	Note string
}

// Cluster has the facts to check.
type Cluster struct {
	// Findings are those of the inputs (desired.Hosts.Findings) and of the private key (keys.ReadSecret).
	Findings bundle.Findings
	// APIServers are the versions that API servers have told (/version, gitVersion). During an update there are
	// several.
	APIServers []string
	// Kubelet is the version of the kubelet that nodes of the cluster get.
	Kubelet   string
	TrustedCA TrustedCA
	// Payload are the executables that the operator has.
	Payload payload.Set
	Now     time.Time
}

// Result is the answer.
type Result struct {
	// Conditions has every type once.
	Conditions []Condition
	// JoinsWait reports whether no host may join now.
	JoinsWait bool
	// Again is when time alone will change the answer, zero if it will not.
	Again time.Duration
}

// JudgeCluster judges the cluster.
func JudgeCluster(c Cluster) Result {
	found := map[Type]bundle.Findings{}
	var r Result
	for _, f := range c.Findings {
		t := typeOf(f)
		if t == "" {
			continue
		}
		found[t] = append(found[t], f)
	}
	if f, ok := skew.CheckKubelet(c.Kubelet, c.APIServers); !ok {
		found[VersionSupported] = append(bundle.Findings{f}, found[VersionSupported]...)
	}
	if f, again, ok := c.TrustedCA.checkInjected(c.Now); !ok {
		// It explains more than that the inputs lack them.
		found[TrustedCAReady], r.Again = bundle.Findings{f}, again
	}
	for _, t := range conditionTypes() {
		condition := conditionOf(t, found[t])
		if t == PayloadComplete {
			condition = c.servedPlatforms(condition)
		}
		r.Conditions = append(r.Conditions, condition)
		r.JoinsWait = r.JoinsWait || !condition.Met &&
			(len(found[t]) == 0 || slices.ContainsFunc(found[t], func(f bundle.Finding) bool { return !ofMachines(f) }))
	}
	return r
}

// ofMachines reports whether a finding holds up the hosts of Machines alone, which are not in the inputs then.
func ofMachines(f bundle.Finding) bool { return f.Reason == reason.MachinesRefused }

// typeOf returns the condition that a finding is about, empty if nothing waits for it. A finding about one host is reported
// with that host.
func typeOf(f bundle.Finding) Type {
	switch f.Reason {
	case reason.ClusterVersionUnsupported: // a warning, for which nodes that have joined do not wait
		return VersionSupported
	case reason.SecretStandIn:
		return InputsValid
	case reason.MachinesRefused:
		return APIsServed
	}
	if f.Severity != bundle.SeverityError || f.Node != "" {
		return ""
	}
	switch f.Reason {
	case reason.KubeletTooNew:
		return VersionSupported
	case reason.PayloadIncomplete:
		return PayloadComplete
	case reason.KindNotServed, reason.Forbidden, reason.UnknownVersion:
		return APIsServed
	case reason.NetworkTypeUnsupported, reason.HybridOverlayMissing, reason.ServiceNetworkMissing,
		reason.ServiceNetworkIPv6:
		return NetworkSupported
	case reason.PrivateKeyMissing, reason.PrivateKeyNotPEM, reason.PrivateKeyLocked, reason.PrivateKeyWeak,
		reason.PrivateKeyMalformed, reason.PrivateKeyAmbiguous:
		return PrivateKeyValid
	case reason.InputMissing:
		if f.Object.Kind == "ConfigMap" && f.Object.Name == render.TrustedCAConfigMap {
			return TrustedCAReady
		}
	}
	return InputsValid
}

func conditionOf(t Type, found bundle.Findings) Condition {
	if len(found) == 0 {
		return Condition{Type: t, Met: true, Reason: conditions.ReasonAsExpected}
	}
	first := found[0]
	message := first.Message
	if where := first.Object.String(); where != "" {
		message = where + ": " + message
		if first.Field != "" {
			message = where + " " + first.Field + ": " + first.Message
		}
	}
	if n := len(found) - 1; n > 0 {
		message += "; and " + bundle.Count(n, "more finding")
	}
	return Condition{Type: t, Reason: first.Reason, Message: message, Fix: first.Fix}
}

// servedPlatforms adds the effect of a payload that lacks executables: that no host joins, or which
// platforms have to be others.
func (c Cluster) servedPlatforms(condition Condition) Condition {
	missing := c.Payload.Missing()
	if len(missing) == 0 {
		return condition
	}
	lines := make([]string, 0, len(missing))
	for _, x := range missing {
		lines = append(lines, fmt.Sprintf("%s (%s)", x.Name, x.On()))
	}
	lacks := "the payload of this operator lacks executables, and cannot serve nodes that need them: " +
		strings.Join(lines, ", ")
	if condition.Met {
		condition.Note = "nodes on this cluster's platform have all that they need; " + lacks
		return condition
	}
	condition.Message, condition.Fix = lacks, "use an image of the operator that has them"
	return condition
}
