package mirrors

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// existingEndpoint returns the endpoint that the existing operator makes of a mirror since April 2025, and reports
// whether there is one. It removes the elements at the end of the mirror that equal those of the source, up to the
// source's host (openshift/windows-machine-config-operator pkg/registries, extractMirrorURL), and containerd appends
// the whole path of the image:
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

// reportPath warns that containerd cannot express a mirror, and names the location that the existing operator's nodes asked.
func (b *builder) reportPath(ref bundle.Ref, source scope, c Chain, text string) {
	f := bundle.Finding{
		Object: ref, Field: c.Source, Message: fmt.Sprintf(
			"mirror %s of %s is left out: containerd on Windows appends the whole path of the image, so a mirror must end in %q",
			text, c.Source, "/"+source.path,
		),
		Fix: "mirror to <registry>/<any path>/" + source.path,
	}
	x, ok := existingEndpoint(c.Source, text)
	if place := x.joinPath(source.path); ok && x != (scope{host: source.host}) &&
		b.readByExisting(c.Source, text) && !b.isRefused(place) {
		f.Fix += fmt.Sprintf("; if nodes of the existing operator pulled from %s, name that as a mirror too", place)
	}
	b.leaveOut(reason.MirrorNotRepresentable, source, f)
}

// readByExisting reports whether an object that the existing operator reads has this mirror.
func (b *builder) readByExisting(source, mirror string) bool {
	return slices.ContainsFunc(b.in.Sets, func(s Set) bool {
		return s.Kind != ContentSourcePolicy && s.Source == source && slices.Contains(s.Mirrors, mirror)
	})
}
