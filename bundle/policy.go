package bundle

import (
	"fmt"
	"strconv"
	"strings"
)

// Policy is a number that a policy of Windows has in the registry, as Group Policy writes it. The value from before is
// restored when the bundle does not name it any more.
type Policy struct {
	// Name is the key and the value below PoliciesKey.
	Name string `json:"name"`
	// Value is a REG_DWORD in decimal digits.
	Value  string `json:"value"`
	Impact Impact `json:"impact"`
}

// PoliciesKey is the key of all of them below HKEY_LOCAL_MACHINE.
const PoliciesKey = `SOFTWARE\Policies\Microsoft\Windows`

// The policy Configure Automatic Updates (learn.microsoft.com/windows/deployment/update/waas-wu-settings, "Configure
// Automatic Updates").
const (
	PolicyUpdates = `WindowsUpdate\AU\AUOptions`
	// UpdatesNotInstalled has Windows download updates, but neither install them nor boot for them.
	UpdatesNotInstalled = "3"
)

// PolicyNumber returns the number of a policy.
func PolicyNumber(value string) (uint32, error) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != value {
		return 0, fmt.Errorf("%.100q is no number of 32 bits", value)
	}
	return uint32(n), nil
}

// checkPolicy accepts the name of a value in a key, and a number.
func checkPolicy(p Policy) error {
	key, value, ok := cutLast(p.Name)
	if !ok || key == "" || value == "" || strings.ContainsAny(p.Name, "\x00/") ||
		strings.Contains(p.Name, `\\`) || strings.HasPrefix(p.Name, `\`) {
		return fmt.Errorf("name: %.100q is not the name of a value in a key", p.Name)
	}
	if _, err := PolicyNumber(p.Value); err != nil {
		return fmt.Errorf("value: %w", err)
	}
	return nil
}

// PolicyPlace returns the key below HKEY_LOCAL_MACHINE and the value of a policy.
func PolicyPlace(name string) (key, value string) {
	key, value, _ = cutLast(name)
	return PoliciesKey + `\` + key, value
}

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndex(name, `\`)
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
