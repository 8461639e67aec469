package certificates

import (
	"strings"
	"testing"
)

// TestNamesOfTheClusterBelongToNoHost: a host may say that it has any name, and the resolver that its entry has.
func TestNamesOfTheClusterBelongToNoHost(t *testing.T) {
	for _, name := range []string{
		"kubernetes", "kubernetes.default", "openshift", "openshift.default", "kubernetes.default.svc", "a.b.svc.cluster.local", "cluster.cluster.local", "localhost", "LOCALHOST", "a.localhost",
	} {
		v := decide(t, clientOf(strings.ToLower(name)), func(_ *ask, k *Known) { k.Hosts[0].Name = strings.ToLower(name) })
		if v.Decision != Leave || !strings.Contains(v.Message, "belongs to another host, or to the cluster") {
			t.Errorf("a first certificate for node %s: %s %q", name, v.Decision, v.Message)
		}
		for how, claim := range map[string]func(*Host){
			"the host":     func(h *Host) { h.Facts.HostName = name },
			"the resolver": func(h *Host) { h.Lookups = append(h.Lookups, name+".") },
		} {
			v := decide(t, servingOf("win-a", name), func(_ *ask, k *Known) { claim(&k.Hosts[0]) })
			if v.Decision != Leave || !strings.Contains(v.Message, "the host does not have the name") {
				t.Errorf("a serving certificate for %s, which %s claims: %s %q", name, how, v.Decision, v.Message)
			}
		}
	}
	for _, name := range []string{"kubernetes2", "svc", "a-svc", "localhost2", "default"} {
		if v := decide(t, clientOf(name), func(_ *ask, k *Known) { k.Hosts[0].Name = name }); v.Decision != Approve {
			t.Errorf("a first certificate for node %s: %s %q", name, v.Decision, v.Message)
		}
	}
}

// TestAddressesThatNoHostHasAlone: a host reports them among its own, and they lead to every host itself, or to several.
func TestAddressesThatNoHostHasAlone(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1"} {
		v := decide(t, servingOf("win-a", address), func(_ *ask, k *Known) {
			k.Hosts[0].Facts.Addresses, k.Hosts[0].Reached = []string{address}, []string{address}
		})
		if v.Decision != Leave || !strings.Contains(v.Message, "the host does not have the address") {
			t.Errorf("%s: %s %q", address, v.Decision, v.Message)
		}
	}
	for _, address := range []string{"10.0.0.5", "::ffff:10.0.0.5", "fd00::5"} {
		if v := decide(t, servingOf("win-a", address), nil); v.Decision != Approve {
			t.Errorf("%s: %s %q", address, v.Decision, v.Message)
		}
	}
}
