package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/reason"
)

// tellOrder says when the sources of one host want an order that no one list can have.
func (b *builder) tellOrder(h *host, list, order []string) {
	if !b.closes(h) && !slices.Contains(list, h.name) {
		list = append(slices.Clone(list), h.name) // the source comes last where a list does not name it
	}
	at := -1
	for _, name := range list {
		i := slices.Index(order, name)
		if i < 0 {
			i = len(order) // the source, which comes last where it is not named
		}
		if i < at {
			b.warn(reason.MirrorOrderNotKept, bundle.Finding{
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
		b.warn(reason.MirrorScopeWidened, bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("the mirrors for %s are asked for every image of %s: containerd knows whole registries only", strings.Join(parts, ", "), h.name),
			Fix: "pull by digest and mirror with an ImageDigestMirrorSet, so that no mirror can give another image",
		})
	}
	for x := range h.tagged {
		if !h.digested[x] {
			b.info(reason.TagMirrorServesDigests, bundle.Finding{
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
		b.warn(reason.NeverNotKept, bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf("NeverContactSource is not kept for %s: containerd knows whole registries only, and mirrors.partialNever is Open", strings.Join(parts, ", ")),
			Fix: "set the policy for all of " + h.name + ", or mirrors.partialNever: Closed",
		})
	case !whole || len(h.allow) > 0:
		b.warn(reason.NeverWidened, bundle.Finding{
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

// tellNeverInside: a mirror that holds, as one of its parts, a source that must never be contacted. OpenShift asks the
// mirror for everything but that part; containerd asks it for all.
func (b *builder) tellNeverInside(mirror scope, ref bundle.Ref, source string) {
	for _, never := range b.neverOn[mirror.host] {
		if never != mirror && mirror.covers(never) {
			b.warn(reason.NeverNotKept, bundle.Finding{
				Object: ref, Field: never.String(), Message: fmt.Sprintf("NeverContactSource is not kept for %s where it is reached as a part of the mirror %s of %s", never, mirror, source),
				Fix: "mirror to another place, or set the policy for all of " + mirror.String(),
			})
		}
	}
}

// tellMixedTransport: one endpoint stands for several mirrors, of which some are insecure.
func (b *builder) tellMixedTransport(x scope) {
	b.warn(reason.InsecureNotRepresentable, bundle.Finding{
		Object: b.in.Scopes.Ref, Field: x.String(), Message: fmt.Sprintf("TLS is demanded of %s, although a mirror in it is insecure: containerd has one way to speak to it, and another mirror in it is not", x),
		Fix: "name all of " + x.host + " as insecure, or install its CA",
	})
}

// tellCredentials: an endpoint has one Authorization header, so entries of the pull secret for other parts of it are not
// used.
func (b *builder) tellCredentials(x scope, mirrors []scope) {
	used := headerFor(b.credentials, mirrors[0])
	for _, c := range b.credentials {
		key, ok := parseScope(c.key)
		if !ok || c.header == used.header {
			continue
		}
		wanted := slices.ContainsFunc(mirrors, func(m scope) bool {
			return m.covers(key) && m != key || headerFor(b.credentials, m).key == c.key
		})
		if wanted {
			b.warn(reason.CredentialsNotUsed, bundle.Finding{
				Object: b.in.PullSecretRef, Field: fmt.Sprintf("auths[%q]", c.key), Message: fmt.Sprintf("is not used on Windows nodes: containerd has one set of credentials for all of %s", x),
				Fix: "give the mirrors in " + x.String() + " one account that may read all of them",
			})
		}
	}
}
