package settings

import (
	"testing"

	"wmco/applier/plan"
	"wmco/applier/winhost/keepertest"
)

// fakeFirewall behaves like INetFwRules: several rules may have the same name, and find and remove take the first.
type fakeFirewall struct {
	rules  []firewallRule
	writes int
}

func (f *fakeFirewall) findRule(name string) (firewallRule, bool, error) {
	for _, r := range f.rules {
		if r.Name == name {
			return r, true, nil
		}
	}
	return firewallRule{}, false, nil
}

func (f *fakeFirewall) addRule(r firewallRule) error {
	f.writes++
	f.rules = append(f.rules, r)
	return nil
}

func (f *fakeFirewall) removeRule(name string) error {
	f.writes++
	for i, r := range f.rules {
		if r.Name == name {
			f.rules = append(f.rules[:i:i], f.rules[i+1:]...)
			return nil
		}
	}
	return nil
}

func TestFirewall(t *testing.T) {
	other := firewallRule{Name: "unmanaged", Protocol: protocolTCP, Ports: "22", Open: true}
	f := &fakeFirewall{rules: []firewallRule{other}}
	keepertest.CheckLifecycle(t, firewallKeeper{f}, &f.writes, "kubelet", "TCP/10250", "UDP/9898")
	if len(f.rules) != 1 || f.rules[0] != other {
		t.Errorf("left: %+v", f.rules)
	}
}

func TestAllRulesWithTheNameAreReplaced(t *testing.T) {
	closed := firewallRule{Name: "kubelet", Protocol: protocolTCP, Ports: "10250"}
	f := &fakeFirewall{rules: []firewallRule{closed, closed}}
	keepertest.CheckRead(t, firewallKeeper{f}, "kubelet", plan.Setting{Value: "other (protocol 6, ports 10250)", Present: true})
	if err := (firewallKeeper{f}).Write(t.Context(), plan.Setting{Name: "kubelet", Value: "TCP/10250", Present: true}); err != nil {
		t.Fatal(err)
	}
	if len(f.rules) != 1 {
		t.Errorf("left: %+v", f.rules)
	}
	keepertest.CheckRead(t, firewallKeeper{f}, "kubelet", plan.Setting{Value: "TCP/10250", Present: true})
}

func TestRuleOf(t *testing.T) {
	open := func() map[string]any {
		properties := map[string]any{}
		for _, p := range append(ruleProperties(firewallRule{Name: "x", Protocol: protocolTCP, Ports: "10250"}), boundProperties()...) {
			properties[p.name] = p.value
		}
		return properties
	}
	const want = "TCP/10250"
	const other = "other (protocol 6, ports 10250)"
	tests := map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"open":                  {func(map[string]any) {}, want},
		"nil for empty strings": {func(p map[string]any) { p["ApplicationName"], p["ServiceName"] = nil, nil }, want},
		"disabled":              {func(p map[string]any) { p["Enabled"] = false }, other},
		"outgoing":              {func(p map[string]any) { p["Direction"] = int32(2) }, other},
		"blocking":              {func(p map[string]any) { p["Action"] = int32(0) }, other},
		"only in one profile":   {func(p map[string]any) { p["Profiles"] = int32(1) }, other},
		"from some addresses":   {func(p map[string]any) { p["RemoteAddresses"] = "LocalSubnet" }, other},
		"for one program":       {func(p map[string]any) { p["ApplicationName"] = `C:\k\kubelet.exe` }, other},
		"for another protocol":  {func(p map[string]any) { p["Protocol"] = int32(58) }, "other (protocol 58, ports 10250)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := open()
			tt.change(p)
			if got := ruleOf("x", p).settingValue(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestInvalidValuesAreRefused(t *testing.T) {
	for _, value := range []string{"", "TCP", "TCP/", "TCP/0", "TCP/65536", "TCP/80,443", "tcp/80", "ICMP/1", "TCP/-1"} {
		f := &fakeFirewall{rules: []firewallRule{{Name: "x"}}}
		err := firewallKeeper{f}.Write(t.Context(), plan.Setting{Name: "x", Value: value, Present: true})
		if err == nil || f.writes != 0 {
			t.Errorf("%q: %v after %d changes", value, err, f.writes)
		}
	}
}
