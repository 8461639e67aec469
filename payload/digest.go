package payload

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

// Digest returns the digest of all executables of the set by name, empty without a payload. Their order does not
// matter.
func (s Set) Digest() bundle.Digest {
	if len(s.Built) == 0 {
		return ""
	}
	var lines []string
	for _, b := range s.Built {
		lines = append(lines, fmt.Sprintf("%s %s\n", b.Name, b.Digest))
	}
	slices.Sort(lines)
	return bundle.Of([]byte(strings.Join(lines, "")))
}
