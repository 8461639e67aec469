package fetch

import (
	"fmt"
	"regexp"
	"strings"

	"wmco/gateway/places"
)

// name is that of an image with its registry (github.com/distribution/reference): a first part without a dot, a port or localhost would be a namespace.
var name = regexp.MustCompile(`^((?:[a-zA-Z0-9-]+\.[a-zA-Z0-9.-]*[a-zA-Z0-9](?::[0-9]{1,5})?|[a-zA-Z0-9-]+:[0-9]{1,5}|localhost|\[[0-9a-fA-F:]+\](?::[0-9]{1,5})?))` +
	`/([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}))?(?:@(sha256:[a-f0-9]{64}))?$`)

// ParseImage reads REGISTRY/REPOSITORY with a :TAG, a @DIGEST or both, of which the digest counts. Without either, the tag is latest.
func ParseImage(text string) (places.Image, error) {
	m := name.FindStringSubmatch(text)
	if m == nil {
		return places.Image{}, fmt.Errorf("%q is not the name of an image: write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST", text)
	}
	reference := m[4]
	if reference == "" {
		reference = m[3]
	}
	if reference == "" {
		reference = "latest"
	}
	return places.Image{Registry: strings.ToLower(m[1]), Repository: m[2], Reference: reference}, nil
}
