package mirrors

import (
	"slices"
	"strings"

	"wmco/bundle"
)

// linuxOnly are the places whose images are for Linux alone: the release payloads of OpenShift and OKD, and the
// registries that Red Hat publishes or certifies images of operators in, which are built on its Linux base images. No
// Windows node pulls from them, whatever a tool such as oc-mirror writes into the mirror sets.
var linuxOnly = []scope{
	{host: "quay.io", path: "openshift-release-dev"},
	{host: "quay.io", path: "openshift/okd"},
	{host: "quay.io", path: "openshift/okd-content"},
	{host: "quay.io", path: "okd/scos-release"},
	{host: "quay.io", path: "okd/scos-content"},
	{host: "registry.redhat.io"},
	{host: "registry.access.redhat.com"},
	{host: "registry.connect.redhat.com"},
}

// forLinuxAlone reports whether no Windows node pulls an image of a source. The pause image is one that nodes pull,
// wherever it is.
func (b *builder) forLinuxAlone(source scope) bool {
	pause, ok := parseScope(repositoriesOf([]string{b.pauseImage})[0])
	return anyCovers(linuxOnly, source) && !(ok && source.covers(pause))
}

// leaveOut reports something that Windows nodes do not do for a source: a warning, unless they pull nothing from it.
func (b *builder) leaveOut(why string, source scope, f bundle.Finding) {
	if !b.forLinuxAlone(source) {
		b.addWarning(why, f)
		return
	}
	f.Message += ". Its images are for Linux alone"
	f.Fix = "none; no Windows node pulls from " + source.String()
	b.at = "" // it needs no gateway
	b.addInfo(why, f)
}

// openRegistries are registries in which anybody can have repositories.
var openRegistries = []string{
	"docker.io", "registry-1.docker.io", "quay.io", "ghcr.io", "gcr.io", "public.ecr.aws", "registry.gitlab.com",
}

// mayServeAnother returns the endpoint at which an image of the host that is pulled by tag may be another one than in
// its own registry: the top of a registry that has more than mirrors, as far as the sets say. Tools that copy images
// write them below a path, or use one registry for the images of many.
func (b *builder) mayServeAnother(h *host) (scope, bool) {
	var found []scope
	for x := range h.tagged {
		whole := slices.Contains(h.mirrors[x], x) // a mirror of the whole registry
		if x.path == "" && !whole && x.host != h.name && (slices.Contains(openRegistries, x.host) || !b.mirrorsSeveral(x.host)) {
			found = append(found, x)
		}
	}
	slices.SortFunc(found, func(x, y scope) int { return strings.Compare(x.host, y.host) })
	if len(found) == 0 {
		return scope{}, false
	}
	return found[0], true
}

// mirrorsSeveral reports whether the mirrors of several registries are on a host.
func (b *builder) mirrorsSeveral(mirror string) bool {
	sources := map[string]bool{}
	for _, s := range b.in.Sets {
		source, _ := parseScope(s.Source) // validated before
		for _, text := range s.Mirrors {
			if m, _ := parseScope(text); m.host == mirror {
				sources[source.host] = true
			}
		}
	}
	return len(sources) > 1
}
