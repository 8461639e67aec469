package mirrors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// existingEndpoint returns the endpoint that the existing operator makes of a mirror since April 2025, and reports whether there
// is one. It removes the elements at the end of the mirror that equal those of the source, up to the source's host
// (openshift/windows-machine-config-operator pkg/registries, extractMirrorURL), and containerd appends the whole path of the image:
//
//	quay.io/team/app   mirror.example.com/tools/shell   mirror.example.com/tools/shell -> .../tools/shell/team/app
//	quay.io/team/app   mirror.example.com/app           mirror.example.com             -> .../team/app
//	quay.io            mirror.example.com/quay.io       mirror.example.com             -> .../team/app
func existingEndpoint(source, mirror string) (scope, bool) {
	wanted, rest := strings.Split(source, "/"), strings.Split(mirror, "/")
	for len(wanted) > 0 && len(rest) > 0 && wanted[len(wanted)-1] == rest[len(rest)-1] {
		wanted, rest = wanted[:len(wanted)-1], rest[:len(rest)-1]
	}
	return parseScope(strings.Join(rest, "/"))
}

// joinPath returns the scope of a path below s.
func (s scope) joinPath(path string) scope {
	return scope{host: s.host, path: strings.Trim(s.path+"/"+path, "/")}
}

// addExistingPaths adds the places that only the existing operator's nodes ask, after all others and in the order of its files:
// by name. It does not read ImageContentSourcePolicies, and no folder of Windows can have the name of a wildcard.
func (b *builder) addExistingPaths() {
	// Of several places that share an endpoint, the first one decides about credentials: the order of objects must not.
	sets := slices.SortedFunc(slices.Values(b.in.Sets), func(x, y Set) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Ref.String(), y.Ref.String()))
	})
	for _, s := range sets {
		source, _ := parseScope(s.Source) // validated before
		if s.Kind == ContentSourcePolicy || unrepresentable(source) != "" {
			continue
		}
		for _, m := range s.Mirrors {
			b.addExistingPath(s, source, m)
		}
	}
	for _, h := range b.hosts {
		slices.SortFunc(h.existing, func(x, y scope) int { return strings.Compare(x.String(), y.String()) })
	}
}

func (b *builder) addExistingPath(s Set, source scope, text string) {
	mirror, _ := parseScope(text) // validated before
	x, ok := existingEndpoint(s.Source, text)
	right, representable := mirror.without(source.path)
	if !ok || representable && x == right || x == (scope{host: source.host}) || b.refused(mirror) {
		return
	}
	place := x.joinPath(source.path)
	if b.refused(place) {
		b.info(reason.MirrorBlocked, bundle.Finding{Object: s.Ref, Field: s.Source, Message: fmt.Sprintf("%s, where the existing operator's nodes asked for %s, is left out: its registry is blocked, or it is a source that must never be contacted", place, s.Source), Fix: "unblock the registry, or remove the mirror"})
		return
	}
	if representable {
		b.info(reason.ExistingPathAsked, bundle.Finding{
			Object: s.Ref, Field: s.Source, Message: fmt.Sprintf("%s is asked after the mirrors, as by the existing operator's nodes: mirror %s of %s is at another place, and mirrors.existingPaths is true", place, text, s.Source),
			Fix: "copy what only " + place.String() + " has to " + text + ", then remove mirrors.existingPaths",
		})
	}
	h := b.host(source.host)
	if s.Kind == TagSet {
		h.tagged[x] = true
	} else if !h.asks(x) {
		h.digested[x] = true
	}
	h.existing = appendNew(h.existing, x)
	h.mirrors[x] = appendNew(h.mirrors[x], place)
	if source.path != "" {
		h.mirrored = append(h.mirrored, servedSource{source, s.Ref})
	}
	b.reportNeverInside(place, s.Ref, s.Source)
}

// asks reports whether the endpoint stands for a mirror, without the places of the existing operator.
func (h *host) asks(x scope) bool {
	return slices.ContainsFunc(h.chains, func(c []scope) bool { return slices.Contains(c, x) })
}

// reportPath warns that containerd cannot express a mirror, and says where the existing operator's nodes asked instead.
func (b *builder) reportPath(ref bundle.Ref, source scope, c Chain, text string) {
	f := bundle.Finding{
		Object: ref, Field: c.Source, Message: fmt.Sprintf("mirror %s of %s is left out: containerd on Windows appends the whole path of the image, so a mirror must end in %q", text, c.Source, "/"+source.path),
		Fix: "mirror to <registry>/<any path>/" + source.path,
	}
	x, ok := existingEndpoint(c.Source, text)
	if place := x.joinPath(source.path); ok && x != (scope{host: source.host}) && b.readByExisting(c.Source, text) && !b.refused(place) {
		if b.existingPaths {
			f.Message += fmt.Sprintf("; %s is asked instead, as by the existing operator's nodes", place)
			f.Fix += ", then remove mirrors.existingPaths"
		} else {
			f.Fix += fmt.Sprintf("; if nodes of the existing operator pulled from %s, mirrors.existingPaths: true asks there", place)
		}
	}
	b.leaveOut(reason.MirrorNotRepresentable, source, f)
}

// readByExisting reports whether an object that the existing operator reads has this mirror.
func (b *builder) readByExisting(source, mirror string) bool {
	return slices.ContainsFunc(b.in.Sets, func(s Set) bool {
		return s.Kind != ContentSourcePolicy && s.Source == source && slices.Contains(s.Mirrors, mirror)
	})
}
