package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// reportOrder warns if the sources of one host list their mirrors in orders that contradict each other.
func (b *builder) reportOrder(h *host, list, order []string) {
	if !b.isClosed(h) && !slices.Contains(list, h.name) {
		list = append(slices.Clone(list), h.name) // the source comes last where a list does not name it
	}
	at := -1
	for _, name := range list {
		i := slices.Index(order, name)
		if i < 0 {
			i = len(order) // the source, which comes last where it is not named
		}
		if i < at {
			b.addWarning(reason.MirrorOrderNotKept, bundle.Finding{
				Object: h.causes[0], Field: h.name, Message: fmt.Sprintf(
					"the sources on %s list their mirrors in different orders; containerd uses one order per registry: %s",
					h.name, strings.Join(order, ", "),
				),
				Fix: "use the same order of mirrors for all sources on a registry",
			})
			return
		}
		at = max(at, i)
	}
}

// servedSource is a source with mirrors, and the first object that names it.
type servedSource struct {
	source scope
	ref    bundle.Ref
}

// reportWidened reports where containerd asks a mirror for more than its set lists.
func (b *builder) reportWidened(h *host) {
	var parts []string
	var ref, whole bundle.Ref
	for _, m := range h.mirrored {
		if m.source.path == "" {
			whole = m.ref
			continue
		}
		parts = appendNew(parts, m.source.String())
		if ref.IsZero() || m.ref.String() < ref.String() {
			ref = m.ref
		}
	}
	slices.Sort(parts)
	without := partsOf(slices.Concat(h.never, h.allow))
	switch {
	case len(parts) > 0:
		b.addWidened(h, bundle.Finding{
			Object: ref, Message: fmt.Sprintf(
				"the mirrors for %s are used for every image of %s: containerd can only configure a whole registry",
				strings.Join(parts, ", "), h.name,
			),
		})
	case !whole.IsZero() && len(without) > 0: // the mirrors of these are left out
		b.addWidened(h, bundle.Finding{
			Object: whole, Message: fmt.Sprintf(
				"the mirrors for %s are also used for %s, although it has none of its own: containerd can only configure a whole registry",
				h.name, strings.Join(without, ", "),
			),
		})
	}
	for x := range h.tagged {
		if !h.digested[x] {
			b.addInfo(reason.TagMirrorServesDigests, bundle.Finding{
				Object: h.causes[0], Field: h.name, Message: "mirrors for tags are used for digests as well: containerd cannot tell the two apart", Fix: "none; a digest is verified wherever the image comes from",
			})
			break
		}
	}
}

// addWidened adds the finding that mirrors of a registry are asked for more than their sets say. Nothing is wrong with
// that where they are asked for digests alone, or have nothing but copies.
func (b *builder) addWidened(h *host, f bundle.Finding) {
	f.Field = h.name
	if x, ok := b.mayServeAnother(h); ok {
		name, _, _ := strings.Cut(h.name, ":")
		f.Message += fmt.Sprintf(". containerd also pulls tags from %s, which may hold a different image with the same name", x)
		f.Fix = fmt.Sprintf(
			"mirror to a path that has nothing but copies, such as %s/%s/<source path>, or pull by digest and mirror with an ImageDigestMirrorSet",
			x, name,
		)
		b.addWarning(reason.MirrorScopeWidened, f)
		return
	}
	f.Fix = "none; a digest is verified wherever the image comes from"
	if len(h.tagged) > 0 {
		f.Fix = "none, if the mirrors hold only copies of their sources; otherwise pull by digest"
	}
	b.addInfo(reason.MirrorScopeWidened, f)
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

// reportNever warns if NeverContactSource applies to more than it is set for, or has no effect.
func (b *builder) reportNever(h *host) {
	parts := partsOf(h.never)
	whole := slices.ContainsFunc(h.never, func(s scope) bool { return s.path == "" })
	switch {
	case len(h.never) == 0 || h.blocked:
		return
	case !whole && b.partial == Open:
		b.addWarning(reason.NeverNotKept, bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf(
				"NeverContactSource has no effect for %s: containerd configures whole registries, and mirrors.partialNever is Open",
				strings.Join(parts, ", "),
			),
			Fix: "set the policy for all of " + h.name + ", or mirrors.partialNever: Closed",
		})
	case whole && len(h.allow) > 0:
		allowed := strings.Join(partsOf(h.allow), ", ")
		if allowed == "" {
			allowed = h.name + " in another spelling"
		}
		b.addWarning(reason.NeverWidened, bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf(
				"no part of %s is contacted, although %s may be: NeverContactSource is set for all of %s, and containerd configures whole registries",
				h.name, allowed, h.name,
			),
			Fix: "mirror everything that Windows nodes pull from " + allowed + ", or allow contacting all of " + h.name,
		})
	case !whole:
		b.addWarning(reason.NeverWidened, bundle.Finding{
			Object: h.causes[0], Field: h.name, Message: fmt.Sprintf(
				"no part of %s is contacted, although NeverContactSource is set for %s only: containerd configures whole registries",
				h.name, strings.Join(parts, ", "),
			),
			Fix: b.fixNeverWidened(h),
		})
	}
}

// fixNeverWidened returns the fix if NeverContactSource is set for a part of a registry. If a source around the part
// may be contacted, its mirrors already stand for the rest.
func (b *builder) fixNeverWidened(h *host) string {
	open := "or set mirrors.partialNever: Open in windows-machine-config"
	for _, never := range h.never {
		for _, outer := range h.allow {
			if outer.covers(never) {
				return fmt.Sprintf(
					"if the mirrors of %s hold everything, set NeverContactSource for %s too; otherwise allow contacting %s, %s",
					outer, outer, never, open,
				)
			}
		}
	}
	return "mirror everything that Windows nodes pull from " + h.name + ", " + open
}

// parent returns the scope one path element above s.
func (s scope) parent() scope {
	i := max(strings.LastIndexByte(s.path, '/'), 0)
	return scope{host: s.host, path: s.path[:i]}
}

// reportNeverInside warns if a part of a mirror is a source that must never be contacted. OpenShift asks the mirror for
// everything but that part; containerd asks it for everything.
func (b *builder) reportNeverInside(mirror scope, ref bundle.Ref, source string) {
	for _, never := range b.neverOn[mirror.host] {
		if never != mirror && mirror.covers(never) {
			b.addWarning(reason.NeverNotKept, bundle.Finding{
				Object: ref, Field: never.String(), Message: fmt.Sprintf(
					"NeverContactSource has no effect for %s as a part of the mirror %s of %s", never, mirror,
					source,
				),
				Fix: "mirror to another place, or set the policy for all of " + mirror.String(),
			})
		}
	}
}

// reportMixedTransport warns that an endpoint stands for several mirrors, of which only some are insecure.
func (b *builder) reportMixedTransport(x scope) {
	b.addWarning(reason.InsecureNotRepresentable, bundle.Finding{
		Object: b.in.Scopes.Ref, Field: x.String(), Message: fmt.Sprintf(
			"TLS is required for %s, although a mirror in it is insecure: another mirror in it is not, and containerd has one setting for both",
			x,
		),
		Fix: "name all of " + x.host + " as insecure, or install its CA",
	})
}

// reportCredentials warns about entries of the pull secret that are not used, because an endpoint has one Authorization
// header.
func (b *builder) reportCredentials(x scope, mirrors []scope) {
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
			b.addWarning(reason.CredentialsNotUsed, bundle.Finding{
				Object: b.in.PullSecretRef, Field: fmt.Sprintf("auths[%q]", c.key), Message: fmt.Sprintf(
					"is not used on Windows nodes: containerd has one set of credentials for all of %s", x,
				),
				Fix: "use one account that may read all mirrors in " + x.String(),
			})
		}
	}
}
