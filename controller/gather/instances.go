package gather

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// Instance is one entry of windows-instances, and its findings. One entry never concerns another, unless both
// are the same host.
type Instance struct {
	// Address is the key of the entry, Username the account, empty where the entry has none that is valid.
	Address, Username string
	// Addresses are the IPv4 addresses of a name, as far as the operator looked them up.
	Addresses []string
	// Skipped reports whether the entry stands for no host. The entry is there nevertheless: a host that joined by it
	// stays.
	Skipped bool
	// Finding is zero if there is nothing to say.
	Finding bundle.Finding
}

// Lookup is a resolver's answer for the name of an instance.
type Lookup struct {
	Addresses []netip.Addr
	// Problem is why there is no answer, empty if there is one.
	Problem string
}

// readInstances reads windows-instances. An invalid entry is a finding and is skipped; the others are used.
func (g *gatherer) readInstances() {
	var cm corev1.ConfigMap
	if !g.readObject(render.FromInstances, place{"", "ConfigMap", g.options.Namespace, render.InstancesConfigMap}, &cm) {
		return
	}
	for _, address := range slices.Sorted(maps.Keys(cm.Data)) {
		i := Instance{Address: address}
		var err error
		if i.Username, err = parseInstance(address, cm.Data[address]); err != nil {
			i.Skipped = true
			i.Finding = g.aboutInstance(
				address, reason.InstanceInvalid, err.Error()+"; the entry is skipped, the others are not affected",
				"write the entry as <IPv4 address or DNS name>: username=<name>",
			)
		} else {
			g.resolveInstance(&i)
		}
		g.instances = append(g.instances, i)
	}
}

// resolveInstance adds the addresses of a name. Names without any can be those of hosts that have joined, so they are
// not skipped.
func (g *gatherer) resolveInstance(i *Instance) {
	lookup, ok := g.options.Lookups[i.Address]
	if _, err := netip.ParseAddr(i.Address); !ok || err == nil {
		return
	}
	const fix = "correct the name, or its record in the cluster's DNS, or write the IPv4 address in its place"
	problem := cmp.Or(lookup.Problem, "it has no address")
	for _, a := range lookup.Addresses {
		a = a.Unmap()
		if err := checkIP(a); err != nil {
			problem = err.Error()
			continue
		}
		i.Addresses = appendMissing(i.Addresses, []string{a.String()})
	}
	slices.Sort(i.Addresses)
	switch n := len(i.Addresses); {
	case n == 0:
		i.Finding = g.aboutInstance(
			i.Address, reason.InstanceUnresolvable,
			"the name cannot be resolved: "+problem+"; the operator cannot reach the host", fix,
		)
	case n > 1:
		i.Finding = g.aboutInstance(
			i.Address, reason.InstanceAmbiguous,
			fmt.Sprintf("the name has %d IPv4 addresses (%s); they must be those of one host", n, strings.Join(i.Addresses, ", ")),
			"if they belong to several hosts, list each host by its IPv4 address",
		)
	}
}

// aboutInstance adds a finding about one entry and returns it.
func (g *gatherer) aboutInstance(address, why, message, fix string) bundle.Finding {
	f := bundle.Finding{
		Object: g.cluster.Origins[render.FromInstances], Field: fmt.Sprintf("data[%q]", address), Node: address, Message: message, Fix: fix,
	}
	g.addFinding(bundle.SeverityWarning, why, f)
	return g.findings[len(g.findings)-1]
}

// InstanceAccount returns the account of an entry of windows-instances, empty where the entry is not valid.
func InstanceAccount(address, text string) string {
	account, err := parseInstance(address, text)
	if err != nil {
		return ""
	}
	return account
}

// parseInstance checks one entry and returns its user. It ignores blanks and CRLF around the text. Which of the
// possible names are accounts is for the host to say: there are local ones, those of a domain (DOMAIN\user,
// user@domain) and names with blanks.
func parseInstance(address, text string) (string, error) {
	if err := checkAddress(address); err != nil {
		return "", err
	}
	username := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "username" || username != "" {
			return "", errors.New("an entry must be the one line username=<name>")
		}
		username = strings.TrimSpace(value)
		if username == "" {
			return "", errors.New("the user name is empty")
		}
		if err := checkAccount(username); err != nil {
			return "", err
		}
	}
	if username == "" {
		return "", errors.New("an entry must be the one line username=<name>")
	}
	return username, nil
}

// checkAddress accepts an IPv4 address or a DNS name that can be those of another host.
func checkAddress(address string) error {
	if a, err := netip.ParseAddr(address); err == nil {
		return checkIP(a)
	}
	if looksNumeric(address) {
		return checkNumbers(address)
	}
	name := strings.ToLower(address)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is neither an IPv4 address nor a DNS name", address)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return fmt.Errorf("%s is a name of the loopback interface, not of another host", address)
	}
	return nil
}

// checkIP refuses addresses that no host can be reached at. A kubelet refuses most of them as its node's address too.
func checkIP(a netip.Addr) error {
	switch {
	case !a.Is4():
		return fmt.Errorf("%s is not an IPv4 address, which Windows nodes require", a)
	case a.As4()[0] == 0:
		return fmt.Errorf("%s stands for no host or for this one (0.0.0.0/8)", a)
	case a.IsLoopback():
		return fmt.Errorf("%s is a loopback address, which is not one of another host (127.0.0.0/8)", a)
	case a.IsLinkLocalUnicast():
		return fmt.Errorf("%s is a link-local address, which a host without DHCP gives itself (169.254.0.0/16)", a)
	case a.IsMulticast():
		return fmt.Errorf("%s is a multicast address (224.0.0.0/4)", a)
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return fmt.Errorf("%s is the broadcast address", a)
	case a.As4()[0] >= 240:
		return fmt.Errorf("%s is a reserved address (240.0.0.0/4)", a)
	}
	return nil
}

// looksNumeric reports whether programs could take an address for an IPv4 address: its last part is a number. They
// accept fewer than four numbers, octal and hexadecimal ones (inet_aton), and the last part of a name in DNS is
// alphabetic (RFC 1123, section 2.1).
func looksNumeric(address string) bool {
	parts := strings.Split(strings.TrimSuffix(address, "."), ".")
	return isNumber(parts[len(parts)-1])
}

// isNumber reports whether a part is decimal, octal or hexadecimal. inet_aton reads a 0x without digits as 0.
func isNumber(part string) bool {
	return part != "" && strings.Trim(part, "0123456789") == "" || isHexadecimal(part)
}

func isHexadecimal(part string) bool {
	digits, ok := strings.CutPrefix(strings.ToLower(part), "0x")
	return ok && strings.Trim(digits, "0123456789abcdef") == ""
}

// checkNumbers returns why an address that looks numeric is not an IPv4 address.
func checkNumbers(address string) error {
	numbers := strings.Split(address, ".")
	if slices.ContainsFunc(numbers, func(n string) bool { return n != "" && !isNumber(n) }) {
		return fmt.Errorf("%q ends in a number, which some programs read as the end of an IPv4 address", address)
	}
	if i := slices.IndexFunc(numbers, isHexadecimal); i >= 0 {
		return fmt.Errorf("%q is not an IPv4 address: %s is a number that some programs read as hexadecimal", address, numbers[i])
	}
	if len(numbers) != 4 {
		return fmt.Errorf("%q is not an IPv4 address: it has %s, not 4", address, bundle.Count(len(numbers), "number"))
	}
	for _, n := range numbers {
		if len(n) > 1 && n[0] == '0' {
			return fmt.Errorf("%q is not an IPv4 address: %s has a leading zero, which some programs read as octal", address, n)
		}
	}
	return fmt.Errorf("%q is not an IPv4 address: each number is from 0 to 255", address)
}
