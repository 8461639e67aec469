package machines

import (
	"fmt"
	"slices"
	"strings"
)

// Platform is where machines run, spelled as Infrastructure/cluster spells it.
type Platform string

// The platforms whose Machine API can make Windows machines.
const (
	AWS     Platform = "AWS"
	Azure   Platform = "Azure"
	GCP     Platform = "GCP"
	VSphere Platform = "VSphere"
	Nutanix Platform = "Nutanix"
)

// Platforms are all of them.
func Platforms() []Platform { return []Platform{AWS, Azure, GCP, VSphere, Nutanix} }

// ParsePlatform reads a platform in any case.
func ParsePlatform(s string) (Platform, error) {
	i := slices.IndexFunc(Platforms(), func(p Platform) bool { return strings.EqualFold(string(p), s) })
	if i < 0 {
		return "", fmt.Errorf("platform %q is none of %s", s, platformNames("|"))
	}
	return Platforms()[i], nil
}

// Flag is how people type the platform.
func (p Platform) Flag() string { return strings.ToLower(string(p)) }

func platformNames(separator string) string {
	var names []string
	for _, p := range Platforms() {
		names = append(names, p.Flag())
	}
	return strings.Join(names, separator)
}

const (
	// maxName is what a DNS label leaves for a MachineSet when "-" and five characters follow.
	maxName = 63 - suffix
	// maxComputerName is the same where the Machine's name becomes the computer's, which NetBIOS limits to 15.
	maxComputerName = 15 - suffix
	suffix          = 6
)

// maxSetName is how many characters the name of a MachineSet may have.
func (p Platform) maxSetName() int {
	switch p {
	case Azure, VSphere, Nutanix:
		return maxComputerName
	case AWS, GCP:
		return maxName
	}
	return maxName
}
