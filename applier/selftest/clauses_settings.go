package selftest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest/result"
	"wmco/bundle"
)

var settingClauses = []Clause{
	{"Settings keeps the order of the names", func(t *trial) {
		t.set(variable(variable3, "b"))
		got, err := t.host.Settings(t.Context(), []plan.Setting{variable(variable2, "a"), variable(variable3, "b")})
		t.ok(err)
		t.equal([]plan.Setting{{Kind: bundle.KindVariable, Name: variable2}, variable(variable3, "b")}, got)
	}},
	{"a variable is set, changed and removed", func(t *trial) {
		t.lives(variable(variable1, "one"), variable(variable1, "two"))
	}},
	{"a variable may be empty, long or have characters that are special to a shell", func(t *trial) {
		for _, value := range []string{
			"", " ", `a "quoted" 'text'`, "%PATH%", "a&b|c<d>e^f", "größe 日本", "a\tb", `C:\dir\;D:\x`, strings.Repeat("0123456789", 900),
		} {
			t.lives(variable(variable1, value))
		}
	}},
	{"names of variables are case-insensitive", func(t *trial) {
		t.set(variable("WMCO_selftest", "one"))
		t.equal(variable("wmco_SELFTEST", "one"), t.setting(bundle.KindVariable, "wmco_SELFTEST"))
		t.set(variable(variable1, "two"))
		t.equal(variable("WMCO_selftest", "two"), t.setting(bundle.KindVariable, "WMCO_selftest"))
	}},
	{"a trusted CA is added and removed", func(t *trial) { t.lives(trusted(t.certificate())) }},
	{"unmanaged trusted CAs stay", func(t *trial) {
		keeper := need[CertificateKeeper](t)
		foreign, ours := t.certificate(), t.certificate()
		keeper.AddCertificate(t, foreign)
		t.lives(trusted(ours))
		t.equal(true, keeper.HasCertificate(t, foreign))
		t.equal(trusted(foreign), t.setting(bundle.KindTrustedCA, trusted(foreign).Name))
	}},
	{"a trusted CA with the wrong digest is refused", func(t *trial) {
		x := trusted(t.certificate())
		x.Name = string(bundle.Of([]byte("something else")))
		t.refusedSetting(x)
		t.equal(false, t.setting(x.Kind, x.Name).Present)
	}},
	{"an authorized key is added and removed", func(t *trial) { t.lives(present(bundle.KindAuthorizedKey, KeyFingerprint, KeyLine)) }},
	{"an authorized key with the wrong fingerprint is refused", func(t *trial) {
		if t.setting(bundle.KindAuthorizedKey, KeyFingerprint).Unavailable {
			t.Skip("this Windows has no settings of kind " + string(bundle.KindAuthorizedKey))
		}
		x := present(bundle.KindAuthorizedKey, strings.Repeat("x", len(KeyFingerprint)), KeyLine)
		t.refusedSetting(x)
		t.equal(false, t.setting(x.Kind, x.Name).Present)
	}},
	{"a policy is set, changed and removed", func(t *trial) {
		t.lives(present(bundle.KindPolicy, policy, "3"), present(bundle.KindPolicy, policy, "4294967295"))
	}},
	{"a policy that is no number is refused", func(t *trial) {
		x := present(bundle.KindPolicy, policy, "on")
		t.refusedSetting(x)
		t.equal(false, t.setting(x.Kind, x.Name).Present)
	}},
	{"a route is set, changed and removed", func(t *trial) {
		t.lives(present(bundle.KindRoute, testRoute, bundle.ViaDefault))
	}},
	{"a route to the next hop of the default route is read as via default", func(t *trial) {
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		t.set(present(bundle.KindRoute, testRoute, facts.DefaultRoute.Gateway))
		t.equal(bundle.ViaDefault, t.setting(bundle.KindRoute, testRoute).Value)
	}},
	{"a firewall rule is set, changed and removed", func(t *trial) {
		t.lives(present(bundle.KindFirewall, firewallRule, "TCP/10250"), present(bundle.KindFirewall, firewallRule, "UDP/9898"))
	}},
	{"an exclusion is set and removed where Defender runs", func(t *trial) {
		t.lives(present(bundle.KindExclusion, t.path(exclusion), ""))
	}},
	{"an HNS endpoint is made and removed", func(t *trial) {
		network := need[NetworkMaker](t).MakeNetwork(t)
		t.lives(present(bundle.KindEndpoint, EndpointName, network+"/1"))
		t.set(present(bundle.KindEndpoint, EndpointName, network+"/1"))
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		t.equal(network, facts.Endpoint(EndpointName).Network)
	}},
	{"an HNS endpoint needs its network", func(t *trial) {
		t.refusedSetting(present(bundle.KindEndpoint, EndpointName, "no such network/1"))
	}},
	{"an HNS network is removed and never made", func(t *trial) {
		network := need[NetworkMaker](t).MakeNetwork(t)
		t.equal(present(bundle.KindNetwork, network, ""), t.setting(bundle.KindNetwork, network))
		for range 2 {
			t.ok(t.host.Set(t.Context(), plan.Setting{Kind: bundle.KindNetwork, Name: network}))
			t.equal(false, t.setting(bundle.KindNetwork, network).Present)
		}
		t.refusedSetting(present(bundle.KindNetwork, network, ""))
	}},
	{"a kind of entry that is no setting is refused", func(t *trial) {
		t.refusedSetting(present(bundle.KindFile, t.path("file"), ""))
	}},
}

// pendingClauses are about settings that take effect with the next boot.
var pendingClauses = []Clause{
	{"a new host name takes effect with the next boot", func(t *trial) {
		booter := need[Booter](t)
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		own := present(bundle.KindHostName, bundle.Computer, facts.HostName)
		t.cleanup(func(ctx context.Context, h applier.Host) error { return h.Set(ctx, own) })
		t.ok(t.host.Set(t.Context(), present(bundle.KindHostName, bundle.Computer, HostName)))
		want := present(bundle.KindHostName, bundle.Computer, HostName)
		want.Pending = true
		t.equal(want, t.setting(bundle.KindHostName, bundle.Computer))
		still, err := t.host.Facts(t.Context())
		t.ok(err)
		t.equal(facts.HostName, still.HostName)
		booter.Boot(t)
		t.host = t.fixture.Host(t)
		t.equal(present(bundle.KindHostName, bundle.Computer, HostName), t.setting(bundle.KindHostName, bundle.Computer))
	}},
	// That facts have the old name until then is in the clause before: Wine returns the new one at once.
	{"a renamed computer waits for a boot until its old name is set again", func(t *trial) {
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		own := present(bundle.KindHostName, bundle.Computer, facts.HostName)
		t.cleanup(func(ctx context.Context, h applier.Host) error { return h.Set(ctx, own) })
		waits := present(bundle.KindHostName, bundle.Computer, HostName)
		waits.Pending = true
		for range 2 {
			t.ok(t.host.Set(t.Context(), present(bundle.KindHostName, bundle.Computer, HostName)))
			t.host = t.fixture.Host(t) // another process asks
			t.equal(waits, t.setting(bundle.KindHostName, bundle.Computer))
			still, err := t.host.Facts(t.Context())
			t.ok(err)
			t.equal(facts.BootTime, still.BootTime)
		}
		t.ok(t.host.Set(t.Context(), own))
		t.equal(own, t.setting(bundle.KindHostName, bundle.Computer))
	}},
	{"setting the current host name is no change", func(t *trial) {
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		own := present(bundle.KindHostName, bundle.Computer, facts.HostName)
		t.equal(own, t.setting(bundle.KindHostName, bundle.Computer))
		t.ok(t.host.Set(t.Context(), present(bundle.KindHostName, bundle.Computer, HostName)))
		t.ok(t.host.Set(t.Context(), own))
		t.equal(own, t.setting(bundle.KindHostName, bundle.Computer))
	}},
	{"a Windows feature takes effect with the next boot", func(t *trial) {
		t.skipIfFeatureIsOn()
		booter := need[Booter](t)
		want := present(bundle.KindFeature, Feature, "")
		t.set(want)
		want.Pending = true
		t.equal(want, t.setting(bundle.KindFeature, Feature))
		booter.Boot(t)
		t.host = t.fixture.Host(t)
		want.Pending = false
		t.equal(want, t.setting(bundle.KindFeature, Feature))
		facts, err := t.host.Facts(t.Context())
		t.ok(err)
		t.equal([]string{Feature}, facts.Features)
		t.ok(t.host.Set(t.Context(), want))
		t.equal(want, t.setting(bundle.KindFeature, Feature))
	}},
	{"a pending Windows feature is withdrawn without a boot", func(t *trial) {
		t.skipIfFeatureIsOn()
		t.set(present(bundle.KindFeature, Feature, ""))
		absent := plan.Setting{Kind: bundle.KindFeature, Name: Feature}
		t.ok(t.host.Set(t.Context(), absent))
		t.equal(absent, t.setting(bundle.KindFeature, Feature))
	}},
}

// skipIfFeatureIsOn skips a clause that would turn off a feature of the machine.
func (t *trial) skipIfFeatureIsOn() {
	t.Helper()
	if s := t.setting(bundle.KindFeature, Feature); s.Present || s.Pending {
		t.Skip("the feature " + Feature + " is on, or waits for a boot, and is left as it is")
	}
}

func present(kind bundle.EntryKind, name, value string) plan.Setting {
	return plan.Setting{Kind: kind, Name: name, Value: value, Present: true}
}

func variable(name, value string) plan.Setting { return present(bundle.KindVariable, name, value) }

func trusted(der []byte) plan.Setting {
	return present(bundle.KindTrustedCA, string(bundle.Of(der)), string(der))
}

func (t *trial) setting(kind bundle.EntryKind, name string) plan.Setting {
	t.Helper()
	got, err := t.host.Settings(t.Context(), []plan.Setting{{Kind: kind, Name: name}})
	t.ok(err)
	if len(got) != 1 {
		t.Fatalf("%d results for one setting", len(got))
	}
	return got[0]
}

// set sets a setting, which is removed after the clause.
func (t *trial) set(x plan.Setting) {
	t.Helper()
	t.cleanup(func(ctx context.Context, h applier.Host) error {
		return h.Set(ctx, plan.Setting{Kind: x.Kind, Name: x.Name})
	})
	t.ok(t.host.Set(t.Context(), x))
}

// lives checks that a setting is absent, sets each of the values twice, and removes it twice.
func (t *trial) lives(values ...plan.Setting) {
	t.Helper()
	absent := plan.Setting{Kind: values[0].Kind, Name: values[0].Name}
	before := t.setting(absent.Kind, absent.Name)
	if before.Unavailable {
		t.Skip("this Windows has no settings of kind " + string(absent.Kind))
	}
	t.equal(absent, before)
	for _, want := range values {
		for range 2 {
			t.set(want)
			t.equal(want, t.setting(want.Kind, want.Name))
		}
	}
	for range 2 {
		t.ok(t.host.Set(t.Context(), absent))
		t.equal(absent, t.setting(absent.Kind, absent.Name))
	}
}

func (t *trial) refusedSetting(x plan.Setting) {
	t.Helper()
	err := t.host.Set(t.Context(), x)
	if err == nil || errors.Is(err, context.Canceled) {
		t.fail(result.Failure{Expected: "an error", Seen: string(x.ID()) + " set: " + errorText(err)})
	}
}

// certificate returns a new CA certificate as DER.
func (t *trial) certificate() []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	t.ok(err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	t.ok(err)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: CertificateName + serial.String()},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	t.ok(err)
	return der
}
