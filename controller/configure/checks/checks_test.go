package checks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/base/conditions"
	"wmco/payload"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// good is a cluster in which nothing is wrong.
func good() Cluster {
	return Cluster{
		APIServers: []string{"v1.36.3"}, Kubelet: "v1.36.3", Now: now,
		TrustedCA: TrustedCA{Proxy: true, ConfigMap: configMap("CAs", "true")},
	}
}

// configMap was made an hour ago.
func configMap(text, label string) corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "trusted-ca", Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": label},
			CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		},
		Data: map[string]string{"ca-bundle.crt": text},
	}
}

func finding(severity bundle.Severity, why string) bundle.Finding {
	return bundle.Finding{Severity: severity, Reason: why, Object: bundle.Ref{Kind: "Kind", Name: "name"}, Field: "spec.x", Message: "is wrong", Fix: "correct it"}
}

func TestChecks(t *testing.T) {
	fails := func(why string) func(*Cluster) {
		return func(c *Cluster) { c.Findings = bundle.Findings{finding(bundle.SeverityError, why)} }
	}
	for _, c := range []struct {
		name   string
		change func(*Cluster)
		// unmet is "Type Reason" of the one condition that is not met and for which joins wait, empty for none.
		unmet string
	}{
		{"nothing is wrong", func(*Cluster) {}, ""},
		{"no proxy, and no ConfigMap", func(c *Cluster) { c.TrustedCA = TrustedCA{} }, ""},
		{"no proxy, and an empty ConfigMap", func(c *Cluster) { c.TrustedCA = TrustedCA{ConfigMap: configMap("", "")} }, ""},
		{"a kubelet that is older, patch and minor", func(c *Cluster) { c.APIServers = []string{"v1.37.0", "v1.36.9+abc"} }, ""},
		{"a kubelet with a newer patch", func(c *Cluster) { c.APIServers = []string{"v1.36.0"} }, ""},
		{"warnings", func(c *Cluster) {
			c.Findings = bundle.Findings{finding(bundle.SeverityWarning, reason.MirrorScopeWidened), finding(bundle.SeverityInfo, reason.DefaultsAssumed)}
		}, ""},
		{"a host whose name cannot be used", func(c *Cluster) {
			f := finding(bundle.SeverityError, reason.InputInvalid)
			f.Node = "nul"
			c.Findings = bundle.Findings{f}
		}, ""},

		{"a kind that is not served", fails(reason.KindNotServed), "APIsServed KindNotServed"},
		{"a permission that is missing", fails(reason.Forbidden), "APIsServed Forbidden"},
		{"another network", fails(reason.NetworkTypeUnsupported), "NetworkSupported NetworkTypeUnsupported"},
		{"no hybrid overlay", fails(reason.HybridOverlayMissing), "NetworkSupported HybridOverlayMissing"},
		{"services in IPv6", fails(reason.ServiceNetworkIPv6), "NetworkSupported ServiceNetworkIPv6"},
		{"a cluster of another version", func(c *Cluster) {
			c.Findings = bundle.Findings{finding(bundle.SeverityWarning, reason.ClusterVersionUnsupported)}
		}, "VersionSupported ClusterVersionUnsupported"},
		{"a cluster that is older than all kubelets", fails(reason.KubeletTooNew), "VersionSupported KubeletTooNew"},
		{"a kubelet that is newer than one API server", func(c *Cluster) { c.APIServers = []string{"v1.36.3", "v1.35.12"} }, "VersionSupported KubeletTooNew"},
		{"an API server that emulates an older version", func(c *Cluster) { c.APIServers = []string{"v1.35.0+emulated-by-v1.36.3"} }, "VersionSupported KubeletTooNew"},
		{"a kubelet of a newer major version", func(c *Cluster) { c.Kubelet = "v2.0.0" }, "VersionSupported KubeletTooNew"},
		{"no API server's version", func(c *Cluster) { c.APIServers = nil }, "VersionSupported APIServerVersionUnknown"},
		{"an API server's version that is none", func(c *Cluster) { c.APIServers = []string{"v1.36.3", "?"} }, "VersionSupported APIServerVersionUnknown"},
		{"another input", fails(reason.InputInvalid), "InputsValid InputInvalid"},
		{"an executable that is not there", fails(reason.PayloadIncomplete), "PayloadComplete PayloadIncomplete"},
		{"a secret that is not known", func(c *Cluster) {
			c.Findings = bundle.Findings{finding(bundle.SeverityWarning, reason.SecretStandIn)}
		}, "InputsValid SecretStandIn"},
		{"an object that is missing", fails(reason.InputMissing), "InputsValid InputMissing"},
		{"no private key", fails(reason.PrivateKeyMissing), "PrivateKeyValid PrivateKeyMissing"},
		{"a private key with a passphrase", fails(reason.PrivateKeyLocked), "PrivateKeyValid PrivateKeyLocked"},

		{"no ConfigMap", func(c *Cluster) { c.TrustedCA.ConfigMap = corev1.ConfigMap{} }, "TrustedCAReady TrustedCAPending"},
		{"a ConfigMap without its label", func(c *Cluster) { c.TrustedCA.ConfigMap = configMap("", "") }, "TrustedCAReady TrustedCAPending"},
		{"a label with another value", func(c *Cluster) { c.TrustedCA.ConfigMap = configMap(" \n", "yes") }, "TrustedCAReady TrustedCAPending"},
		{"CAs without the label, which is repaired", func(c *Cluster) { c.TrustedCA.ConfigMap = configMap("CAs", "") }, ""},
		{"an empty ConfigMap, a minute old", func(c *Cluster) {
			c.TrustedCA.ConfigMap = configMap("", "true")
			c.TrustedCA.ConfigMap.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
		}, "TrustedCAReady TrustedCAPending"},
		{"an empty ConfigMap whose label was set a minute ago", func(c *Cluster) {
			c.TrustedCA.ConfigMap = configMap("", "true")
			at := metav1.NewTime(now.Add(-time.Minute))
			c.TrustedCA.ConfigMap.ManagedFields = []metav1.ManagedFieldsEntry{{}, {Time: &at}}
		}, "TrustedCAReady TrustedCAPending"},
		{"an empty ConfigMap of an hour", func(c *Cluster) { c.TrustedCA.ConfigMap = configMap("", "true") }, "TrustedCAReady TrustedCAEmpty"},
		{"CAs that the proxy names and nodes would lose", func(c *Cluster) {
			c.TrustedCA.ConfigMap = configMap("", "true")
			c.Findings = bundle.Findings{{Severity: bundle.SeverityError, Reason: reason.InputMissing, Object: bundle.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "trusted-ca"}}}
		}, "TrustedCAReady TrustedCAEmpty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := good()
			c.change(&cluster)
			r := JudgeCluster(cluster)
			var unmet []string
			for _, condition := range r.Conditions {
				if condition.Met != (condition.Reason == conditions.ReasonAsExpected) || condition.Met != (condition.Message == "") || condition.Met != (condition.Fix == "") {
					t.Errorf("%+v", condition)
				}
				if !condition.Met {
					unmet = append(unmet, fmt.Sprintf("%s %s", condition.Type, condition.Reason))
				}
			}
			if got := strings.Join(unmet, ", "); got != c.unmet {
				t.Errorf("not met: %q, want %q", got, c.unmet)
			}
			if r.JoinsWait != (c.unmet != "") {
				t.Errorf("joins wait: %t", r.JoinsWait)
			}
			if len(r.Conditions) != len(conditionTypes()) {
				t.Errorf("%d conditions", len(r.Conditions))
			}
		})
	}
}

// TestWhatTheOperatorCannotServe has a payload without what nodes on Azure need.
func TestWhatTheOperatorCannotServe(t *testing.T) {
	c := good()
	for _, x := range payload.Table() {
		if x.Name != payload.CloudManager {
			c.Payload.Built = append(c.Payload.Built, payload.Built{Name: x.Name})
		}
	}
	const lacks = "the payload of this operator lacks executables, and cannot serve nodes that need them: azure-cloud-node-manager (Azure)"
	last := func() Condition { return JudgeCluster(c).Conditions[len(conditionTypes())-1] }
	want := Condition{Type: PayloadComplete, Met: true, Reason: conditions.ReasonAsExpected, Note: "nodes on this cluster's platform have all that they need; " + lacks}
	if diff := cmp.Diff(want, last()); diff != "" {
		t.Errorf("on another platform (-want +got):\n%s", diff)
	}
	c.Findings = bundle.Findings{finding(bundle.SeverityError, reason.PayloadIncomplete)}
	want = Condition{Type: PayloadComplete, Reason: reason.PayloadIncomplete, Message: lacks, Fix: "use an image of the operator that has them"}
	if diff := cmp.Diff(want, last()); diff != "" {
		t.Errorf("on Azure (-want +got):\n%s", diff)
	}
	if !JudgeCluster(c).JoinsWait {
		t.Error("hosts join without an executable that they need")
	}
}

func TestTheFirstOfSeveralFindingsIsShown(t *testing.T) {
	c := good()
	c.Findings = bundle.Findings{finding(bundle.SeverityError, reason.InputInvalid), finding(bundle.SeverityError, reason.CertificateInvalid), finding(bundle.SeverityError, reason.ProxyInvalid)}
	want := Condition{Type: InputsValid, Reason: reason.InputInvalid, Message: "Kind/name spec.x: is wrong; and 2 more findings", Fix: "correct it"}
	if diff := cmp.Diff(want, JudgeCluster(c).Conditions[4]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhenTimeChangesTheAnswer(t *testing.T) {
	c := good()
	c.TrustedCA.ConfigMap = configMap("", "true")
	for _, test := range []struct{ waited, again time.Duration }{
		{0, TrustedCALimit}, {-time.Hour, TrustedCALimit}, {4 * time.Minute, TrustedCALimit - 4*time.Minute}, {TrustedCALimit, 0}, {time.Hour, 0},
	} {
		c.TrustedCA.ConfigMap.CreationTimestamp = metav1.NewTime(now.Add(-test.waited))
		if got := JudgeCluster(c).Again; got != test.again {
			t.Errorf("after %s: again in %s, want %s", test.waited, got, test.again)
		}
	}
	if got := JudgeCluster(good()).Again; got != 0 {
		t.Errorf("with CAs: again in %s", got)
	}
}

func TestRepair(t *testing.T) {
	want := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "trusted-ca", Labels: map[string]string{"config.openshift.io/inject-trusted-cabundle": "true"}},
	}
	for name, have := range map[string]corev1.ConfigMap{"absent": {}, "without the label": configMap("", ""), "another value": configMap("CAs", "false")} {
		got, ok := TrustedCA{Proxy: true, ConfigMap: have}.ConfigMapToApply("ns")
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
	for name, have := range map[string]TrustedCA{
		"as it must be": {Proxy: true, ConfigMap: configMap("", "true")}, "no proxy": {}, "no proxy, without the label": {ConfigMap: configMap("", "")},
	} {
		if got, ok := have.ConfigMapToApply("ns"); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
