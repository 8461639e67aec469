package mirrors

import (
	"slices"
	"strings"

	"wmco/bundle"
)

// SourceCredentials returns the credentials of the pull secret for the registries of images, as the
// machine-config-operator uses them on Linux nodes: those of the longest key that covers the image. Images whose
// registry is never asked need none; mirrors have theirs in the hosts files. The images are sorted.
func (r Result) SourceCredentials(in Inputs, images []string) []bundle.PinnedCredential {
	list, _ := in.parseCredentials() // Build has reported what cannot be used
	byHeader := map[string]int{}
	var out []bundle.PinnedCredential
	for _, image := range images {
		name, _, _ := strings.Cut(image, "@")
		host, path, _ := strings.Cut(name, "/")
		header := headerFor(list, scope{host: strings.ToLower(host), path: path}).header
		if header.IsZero() || !r.Lookup(image).Source {
			continue
		}
		auth := strings.TrimPrefix(header.Reveal(), "Basic ")
		i, known := byHeader[auth]
		if !known {
			i = len(out)
			byHeader[auth] = i
			out = append(out, bundle.PinnedCredential{Auth: bundle.NewSecret(auth)})
		}
		out[i].Images = append(out[i].Images, image)
	}
	for _, c := range out {
		slices.Sort(c.Images)
	}
	return out
}
