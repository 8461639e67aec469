package settings

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"wmco/applier/plan"
)

// The IP protocols of rules (learn.microsoft.com/windows/win32/api/icftypes/ne-icftypes-net_fw_ip_protocol).
const (
	protocolTCP = 6  // NET_FW_IP_PROTOCOL_TCP
	protocolUDP = 17 // NET_FW_IP_PROTOCOL_UDP
)

// firewallRule is the part of an INetFwRule that is set. The rest is as in a new rule: any address, any program.
type firewallRule struct {
	Name     string
	Protocol int32
	// Ports are the local ports, as text: "10250", "80,443".
	Ports string
	// Open is true if the rule is enabled and allows incoming traffic in every profile.
	Open bool
}

// firewallRules are the rules of Windows Firewall. Several may have the same name: find and remove take the first one
// (learn.microsoft.com/windows/win32/api/netfw/nf-netfw-inetfwrules-item). If no firewall runs, every call returns
// applier.ErrNoSetting.
type firewallRules interface {
	findRule(name string) (rule firewallRule, ok bool, err error)
	addRule(rule firewallRule) error
	removeRule(name string) error
}

// firewallKeeper keeps bundle.KindFirewall.
type firewallKeeper struct{ rules firewallRules }

func (f firewallKeeper) Read(ctx context.Context, names []string) ([]plan.Setting, error) {
	return ReadEach(ctx, names, func(name string) (plan.Setting, error) {
		rule, ok, err := f.rules.findRule(name)
		if err != nil || !ok {
			return plan.Setting{}, err
		}
		return plan.Setting{Value: rule.settingValue(), Present: true}, nil
	})
}

// The values of a rule that allows incoming traffic (learn.microsoft.com/windows/win32/api/icftypes).
const (
	directionIn = 1          // NET_FW_RULE_DIR_IN
	actionAllow = 1          // NET_FW_ACTION_ALLOW
	allProfiles = 0x7fffffff // NET_FW_PROFILE2_ALL
	anyAddress  = "*"
)

// property is one of an INetFwRule (learn.microsoft.com/windows/win32/api/netfw/nn-netfw-inetfwrule).
type property struct {
	name  string
	value any
}

// ruleProperties returns the properties of a new rule, in an order that the firewall accepts: the ports after the
// protocol.
func ruleProperties(r firewallRule) []property {
	return []property{
		{"Name", r.Name}, {"Protocol", r.Protocol}, {"LocalPorts", r.Ports},
		{"Direction", int32(directionIn)}, {"Action", int32(actionAllow)}, {"Profiles", int32(allProfiles)}, {"Enabled", true},
	}
}

// boundProperties returns what differs in a rule that is bound to programs or addresses.
func boundProperties() []property {
	return []property{{"ApplicationName", ""}, {"ServiceName", ""}, {"RemoteAddresses", anyAddress}, {"LocalAddresses", anyAddress}}
}

// ruleOf returns the rule with these properties. COM returns numbers of several sizes, and nil for an empty string.
func ruleOf(name string, properties map[string]any) firewallRule {
	r := firewallRule{Name: name, Ports: shownValue(properties["LocalPorts"]), Open: true}
	if n, ok := properties["Protocol"].(int32); ok {
		r.Protocol = n
	}
	for _, p := range append(ruleProperties(r), boundProperties()...) {
		if shownValue(p.value) != shownValue(properties[p.name]) {
			r.Open = false
		}
	}
	return r
}

func shownValue(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// settingValue returns the value of the setting. No bundle has that of a rule that is not open, so that such a rule is
// replaced.
func (r firewallRule) settingValue() string {
	protocol := map[int32]string{protocolTCP: "TCP", protocolUDP: "UDP"}[r.Protocol]
	if !r.Open || protocol == "" {
		return fmt.Sprintf("other (protocol %d, ports %s)", r.Protocol, r.Ports)
	}
	return protocol + "/" + r.Ports
}

// ruleFor returns the rule of a value such as TCP/10250.
func ruleFor(name, value string) (firewallRule, error) {
	protocol, port, _ := strings.Cut(value, "/")
	number, ok := map[string]int32{"TCP": protocolTCP, "UDP": protocolUDP}[protocol]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !ok {
		return firewallRule{}, fmt.Errorf("%q is not PROTOCOL/PORT, such as TCP/10250", value)
	}
	return firewallRule{Name: name, Protocol: number, Ports: port, Open: true}, nil
}

// Write removes all rules with the name before it adds one. The port is closed in between, which is the safe state.
func (f firewallKeeper) Write(ctx context.Context, s plan.Setting) error {
	var rule firewallRule
	if s.Present {
		var err error
		if rule, err = ruleFor(s.Name, s.Value); err != nil {
			return err
		}
	}
	for {
		found, ok, err := f.rules.findRule(s.Name)
		switch {
		case err != nil:
			return err
		case s.Present && ok && found == rule:
			return nil
		case ok:
			err = f.rules.removeRule(s.Name)
		case s.Present:
			return f.rules.addRule(rule)
		default:
			return nil
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}
