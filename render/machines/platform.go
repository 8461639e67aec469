package machines

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
	"wmco/render"
)

// Platforms returns the platforms whose Machine API can make Windows machines: all but None.
func Platforms() []bundle.Platform {
	return slices.DeleteFunc(bundle.Platforms(), func(p bundle.Platform) bool { return p == bundle.PlatformNone })
}

// ParsePlatform reads one of the platforms, in any case.
func ParsePlatform(s string, among []bundle.Platform) (bundle.Platform, error) {
	i := slices.IndexFunc(among, func(p bundle.Platform) bool { return strings.EqualFold(string(p), s) })
	if i < 0 {
		return "", fmt.Errorf("platform %q is none of %s", s, flags(among, "|"))
	}
	return among[i], nil
}

// Flag is the value of a flag that stands for the platform.
func Flag(p bundle.Platform) string { return strings.ToLower(string(p)) }

func platformNames(separator string) string { return flags(Platforms(), separator) }

func flags(platforms []bundle.Platform, separator string) string {
	var names []string
	for _, p := range platforms {
		names = append(names, Flag(p))
	}
	return strings.Join(names, separator)
}

// computerNames reports whether the name of a Machine becomes the name of its computer.
func computerNames(p bundle.Platform) bool {
	return p == bundle.PlatformAzure || p == bundle.PlatformVSphere || p == bundle.PlatformNutanix
}

// maxSetName returns the number of characters that the name of a MachineSet may have.
func maxSetName(p bundle.Platform) int {
	if computerNames(p) {
		return render.MaxComputerName - render.MachineSuffix
	}
	return validation.DNS1123LabelMaxLength - render.MachineSuffix
}
