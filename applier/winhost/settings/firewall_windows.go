package settings

import (
	"slices"

	"wmco/applier"
)

// The classes of the firewall (learn.microsoft.com/windows/win32/api/netfw/nn-netfw-inetfwpolicy2 and
// .../nn-netfw-inetfwrule).
const (
	classFirewallPolicy = "HNetCfg.FwPolicy2"
	classFirewallRule   = "HNetCfg.FWRule"
)

// noFirewall has the results of a Windows without a firewall.
var noFirewall = []uint32{resultNoServer, resultNotRegistered, resultNoClass, resultNoMember}

// windowsFirewall is the local policy of Windows Firewall.
type windowsFirewall struct{}

func withRules(use func(rules object) error) error {
	err := withObject(classFirewallPolicy, func(policy object) error {
		rules, err := policy.getObject("Rules")
		if err != nil {
			return err
		}
		defer rules.Release()
		return use(rules)
	})
	if slices.Contains(noFirewall, resultOf(err)) {
		return applier.ErrNoSetting
	}
	return err
}

func (windowsFirewall) findRule(name string) (rule firewallRule, ok bool, err error) {
	err = withRules(func(rules object) error {
		found, err := rules.callMethod("Item", name)
		if resultOf(err) == resultNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		defer found.Release()
		ok = true
		rule, err = readRule(name, found)
		return err
	})
	return rule, ok, err
}

func readRule(name string, o object) (firewallRule, error) {
	properties := map[string]any{}
	for _, p := range append(ruleProperties(firewallRule{}), boundProperties()...) {
		value, err := o.getValue(p.name)
		if err != nil {
			return firewallRule{}, err
		}
		properties[p.name] = value
	}
	return ruleOf(name, properties), nil
}

func (windowsFirewall) addRule(rule firewallRule) error {
	return withRules(func(rules object) error {
		return withObject(classFirewallRule, func(o object) error {
			for _, p := range ruleProperties(rule) {
				if err := o.putValue(p.name, p.value); err != nil {
					return err
				}
			}
			return rules.callWithoutResult("Add", o.IDispatch)
		})
	})
}

func (windowsFirewall) removeRule(name string) error {
	return withRules(func(rules object) error { return rules.callWithoutResult("Remove", name) })
}
