package plan

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

// TargetDigest returns what a bundle is, without the values that belong to one node alone: the digest of its cluster layer, and of its node
// layer which entries there are, with the flags of services but not their values. Two nodes with the same target get the same change. If values
// alone change on all nodes, none of them has what is wanted yet, so canaries go first as well.
func TargetDigest(cluster bundle.Digest, node bundle.Layer) bundle.Digest {
	lines := []string{"cluster " + string(cluster), "stage " + string(node.Stage)}
	for _, id := range node.IDs() {
		lines = append(lines, "entry "+string(id))
	}
	for _, s := range node.Services {
		lines = append(lines, "service "+s.Name+" "+s.Environment+" "+strings.Join(flagNames(s.Argv), " "))
	}
	for _, p := range node.Payload {
		lines = append(lines, fmt.Sprintf("payload %s %s", p.Path, p.Digest))
	}
	slices.Sort(lines)
	return bundle.Of([]byte(strings.Join(lines, "\n")))
}

// flagNames returns the names of flags in a command.
func flagNames(argv []string) []string {
	var names []string
	for _, a := range argv {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(name, "-") {
			names = append(names, name)
		}
	}
	return names
}
