package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"wmco/render/bundle"
)

// tellOrder says when the sources of one host want an order that no one list can have.
func (b *builder) tellOrder(h *host, list, order []string) {
	at := -1
	for _, name := range list {
		i := slices.Index(order, name)
		if i >= 0 && i < at {
			b.warn("MirrorOrderNotKept", bundle.Finding{
				Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("the sources on %s want their mirrors in different orders; containerd has one order per registry: %s", h.name, strings.Join(order, ", ")),
				Fix: "give the sources on one registry the same order of mirrors",
			})
			return
		}
		at = max(at, i)
	}
}

// tellWidened says where containerd asks more than was meant.
func (b *builder) tellWidened(h *host) {
	parts := partsOf(slices.Concat(h.never, h.allow))
	if len(parts) > 0 {
		b.warn("MirrorScopeWidened", bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("the mirrors for %s are asked for every image of %s: containerd knows whole registries only", strings.Join(parts, ", "), h.name),
			Fix: "pull by digest and mirror with an ImageDigestMirrorSet, so that no mirror can give another image",
		})
	}
	for x := range h.tagged {
		if !h.digested[x] {
			b.info("TagMirrorServesDigests", bundle.Finding{
				Object: h.causes[0], Field: h.name, Message: "mirrors for tags are asked for digests as well: containerd cannot tell them apart", Fix: "nothing: a digest is checked wherever the image comes from",
			})
			break
		}
	}
}

func partsOf(list []scope) []string {
	var parts []string
	for _, s := range list {
		if s.path != "" {
			parts = appendNew(parts, s.String())
		}
	}
	slices.Sort(parts)
	return parts
}

// tellNever says where a policy reaches further than it was meant, or is not kept.
func (b *builder) tellNever(h *host) {
	parts := partsOf(h.never)
	whole := slices.ContainsFunc(h.never, func(s scope) bool { return s.path == "" })
	switch {
	case len(h.never) == 0 || h.blocked:
		return
	case !whole && b.partial == Open:
		b.warn("NeverNotKept", bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("NeverContactSource is not kept for %s: containerd knows whole registries only, and mirrors.partialNever is Open", strings.Join(parts, ", ")),
			Fix: "set the policy for all of " + h.name + ", or mirrors.partialNever: Closed",
		})
	case !whole || len(h.allow) > 0:
		b.warn("NeverWidened", bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("all of %s is never contacted, although NeverContactSource is set for a part of it only: containerd knows whole registries only", h.name),
			Fix: "mirror everything that Windows nodes pull from " + h.name + ", or set mirrors.partialNever: Open in windows-machine-config",
		})
	}
}

// parent is the scope that s lies in, one element of the path up.
func (s scope) parent() scope {
	i := max(strings.LastIndexByte(s.path, '/'), 0)
	return scope{host: s.host, path: s.path[:i]}
}
