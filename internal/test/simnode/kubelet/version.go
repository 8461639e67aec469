package kubelet

import (
	"fmt"
	"strings"

	"wmco/payload"
)

// longestStandIn is the size of a file, in bytes, up to which it is a stand-in: a line of text.
const longestStandIn = 1 << 10

// versionOf returns the version of the executable that this process was started from. Stand-ins say in their contents
// which executable of the payload they stand for; all else is the release of the tests.
func versionOf(host Host) (string, error) {
	text, err := host.ReadFile(payload.Find(payload.Kubelet).Path)
	if err != nil {
		return "", fmt.Errorf("reading the executable: %w", err)
	}
	tested, _ := payload.ReleaseOf(payload.TestedKubernetes)
	for _, r := range payload.Releases() {
		if len(text) <= longestStandIn && strings.Contains(string(text), payload.For(payload.Kubelet, r.Minor).Name) {
			return r.Version, nil
		}
	}
	return tested.Version, nil
}
