package gather

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/reason"
)

// instance is one entry of windows-instances.
type instance struct {
	address  string
	username string
}

// instances reads windows-instances. An invalid entry is a finding and is skipped; the others are used.
func (g *gatherer) instances() []instance {
	var cm corev1.ConfigMap
	if !g.read(render.FromInstances, place{"", "ConfigMap", g.options.Namespace, instancesName}, &cm) {
		return nil
	}
	var list []instance
	for _, address := range slices.Sorted(maps.Keys(cm.Data)) {
		username, err := parseInstance(address, cm.Data[address])
		if err != nil {
			g.add(bundle.SeverityWarning, reason.InstanceInvalid, bundle.Finding{
				Object: g.cluster.Origins[render.FromInstances], Field: fmt.Sprintf("data[%q]", address), Node: address,
				Message: err.Error() + "; the entry is skipped, the others are not affected", Fix: "write the entry as <IPv4 address or DNS name>: username=<name>",
			})
			continue
		}
		list = append(list, instance{address: address, username: username})
	}
	return list
}

// accountName is what Windows allows as a local account, or one of a domain before a backslash
// (learn.microsoft.com/windows/win32/api/lmaccess/ns-lmaccess-user_info_1).
var accountName = regexp.MustCompile(`^([^"/\\\[\]:;|=,+*?<>@\s[:cntrl:]]+\\)?[^"/\\\[\]:;|=,+*?<>@\s[:cntrl:]]([^"/\\\[\]:;|=,+*?<>@[:cntrl:]]*[^"/\\\[\]:;|=,+*?<>@\s[:cntrl:]])?$`)

// parseInstance checks one entry and returns its user. It ignores blanks and CRLF around the text.
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
			return "", fmt.Errorf("an entry must be the one line username=<name>")
		}
		username = strings.TrimSpace(value)
		if !accountName.MatchString(username) {
			return "", fmt.Errorf("the user name is empty or is not valid on Windows")
		}
	}
	if username == "" {
		return "", fmt.Errorf("an entry must be the one line username=<name>")
	}
	return username, nil
}

// checkAddress accepts an IPv4 address or a DNS name.
func checkAddress(address string) error {
	if a, err := netip.ParseAddr(address); err == nil {
		if !a.Is4() {
			return fmt.Errorf("%s is not an IPv4 address, which Windows nodes require", a)
		}
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(strings.ToLower(address)); len(problems) > 0 {
		return fmt.Errorf("%q is neither an IPv4 address nor a DNS name", address)
	}
	return nil
}
