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

// instances reads windows-instances. A bad entry is told and left out; the others go on.
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
				Message: err.Error() + "; the entry is left out, the others are not affected", Fix: "write the entry as <IPv4 address or DNS name>: username=<name>",
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

// parseInstance checks one entry and returns its user. Blanks and CRLF around the text do not matter.
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
			return "", fmt.Errorf("an entry holds the one line username=<name>")
		}
		username = strings.TrimSpace(value)
		if !accountName.MatchString(username) {
			return "", fmt.Errorf("the user name is empty or not one that Windows allows")
		}
	}
	if username == "" {
		return "", fmt.Errorf("an entry holds the one line username=<name>")
	}
	return username, nil
}

// checkAddress takes an IPv4 address or a DNS name.
func checkAddress(address string) error {
	if a, err := netip.ParseAddr(address); err == nil {
		if !a.Is4() {
			return fmt.Errorf("%s is not IPv4, which Windows nodes need", a)
		}
		return nil
	}
	if problems := validation.IsDNS1123Subdomain(strings.ToLower(address)); len(problems) > 0 {
		return fmt.Errorf("%q is neither an IPv4 address nor a DNS name", address)
	}
	return nil
}
