package resolvers

import (
	"net"
	"slices"
	"strings"

	"wmco/render/mirrors"
)

// model is what OpenShift means by mirror sets and image settings, as its API and its implementation say
// (openshift/api config/v1, runtime-utils pkg/registries, containers/image sysregistriesv2). It is simple rather
// than fast, and shares no code with render.
type model struct {
	mirrors.Inputs
}

// try is one place where an image is looked for.
type try struct {
	// host and repository are those of the place, as users write them.
	host, repository string
	scheme           string
	source           bool
}

func (t try) url() string {
	host := t.host
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	return t.scheme + "://" + host + "/v2/" + t.repository
}

// tries returns the places where an image is looked for, in order.
func (m model) tries(image string, by By) []try {
	tries := []try{}
	if len(m.Scopes.Allowed) > 0 && !anyCovers(m.Scopes.Allowed, image) {
		return tries
	}
	source, found := m.source(image)
	if found {
		for _, mirror := range m.merged(source, by) {
			place := mirror + image[len(matched(source, image)):]
			if !m.blocked(place) {
				tries = append(tries, m.try(place))
			}
		}
	}
	if !m.blocked(image) {
		t := m.try(image)
		t.source = true
		// Without a configuration, containerd treats localhost as insecure, unlike OpenShift. That is wanted: no server is
		// written where the source may be used.
		if name, port, _ := net.SplitHostPort(t.host); name == "localhost" && port != "443" {
			t.scheme = anyUnless80(t.host)
		}
		tries = append(tries, t)
	}
	return tries
}

func (m model) try(place string) try {
	host, repository, _ := strings.Cut(place, "/")
	t := try{host: host, repository: repository, scheme: "https"}
	if anyCovers(m.Scopes.Insecure, place) {
		t.scheme = anyUnless80(host)
	}
	return t
}

// anyUnless80 returns the scheme of an insecure registry: on port 80 containerd does not try TLS.
func anyUnless80(host string) string {
	if strings.HasSuffix(host, ":80") {
		return "http"
	}
	return Any
}

// blocked reports whether a place must not be used: it is blocked, or a source with policy Never.
func (m model) blocked(place string) bool {
	return anyCovers(m.Scopes.Blocked, place) || m.never(place)
}

// never reports whether the most specific source that covers a place has policy Never.
func (m model) never(place string) bool {
	source, found := m.source(place)
	return found && slices.ContainsFunc(m.effective(), func(s mirrors.Set) bool {
		return s.Source == source && s.Policy == mirrors.NeverContactSource
	})
}

// source returns the most specific source that covers a place, without sources that have no mirror.
func (m model) source(place string) (string, bool) {
	best := ""
	for _, s := range m.effective() {
		if covers(s.Source, place) && moreSpecific(s.Source, best) {
			best = s.Source
		}
	}
	return best, best != ""
}

// moreSpecific reports whether a scope is more specific: a name than a wildcard, otherwise the longer one.
func moreSpecific(a, b string) bool {
	if b != "" && isWildcard(a) != isWildcard(b) {
		return isWildcard(b)
	}
	return len(a) > len(b)
}

// effective returns the sets that have a mirror other than the source. The others have no effect, not even their policy.
func (m model) effective() []mirrors.Set {
	var sets []mirrors.Set
	for _, s := range m.Sets {
		if slices.ContainsFunc(s.Mirrors, func(mirror string) bool { return mirror != s.Source }) {
			sets = append(sets, s)
		}
	}
	return sets
}

// merged returns the mirrors of a source for one kind of pull in one order.
func (m model) merged(source string, by By) []string {
	var lists [][]string
	for _, s := range m.effective() {
		if s.Source == source && (s.Kind == mirrors.TagSet) == (by == Tag) {
			lists = append(lists, s.Mirrors)
		}
	}
	order := topological(lists, source)
	if n := len(order); n > 0 && order[n-1] == source {
		order = order[:n-1]
	}
	return order
}

// topological keeps the order of every list. The source comes after each list that does not name it. Names that
// no list orders are sorted; a cycle is broken at the first of its names.
func topological(lists [][]string, source string) []string {
	type edge struct{ from, to string }
	edges := map[edge]bool{}
	var names []string
	for _, list := range lists {
		if !slices.Contains(list, source) {
			list = append(slices.Clone(list), source)
		}
		names = append(names, list...)
		for i := range list[1:] {
			edges[edge{list[i], list[i+1]}] = true
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	free := func(name string) bool {
		for e := range edges {
			if e.to == name {
				return false
			}
		}
		return true
	}
	var order, queue []string
	enqueue := func() {
		for _, name := range names {
			if !slices.Contains(order, name) && !slices.Contains(queue, name) && free(name) {
				queue = append(queue, name)
			}
		}
	}
	for enqueue(); len(order) < len(names); enqueue() {
		if len(queue) == 0 {
			queue = append(queue, names[slices.IndexFunc(names, func(n string) bool { return !slices.Contains(order, n) })])
		}
		next := queue[0]
		queue = queue[1:]
		order = append(order, next)
		for e := range edges {
			if e.from == next {
				delete(edges, e)
			}
		}
	}
	return order
}

func isWildcard(scope string) bool { return strings.HasPrefix(scope, "*.") }

// matched returns the part of an image name that a mirror replaces: the scope, or the host for a wildcard.
func matched(scope, image string) string {
	if isWildcard(scope) {
		host, _, _ := strings.Cut(image, "/")
		return host
	}
	return scope
}

// covers reports whether a scope, host[:port][/path] or *.host, covers a place.
func covers(scope, place string) bool {
	if isWildcard(scope) {
		host, _, _ := strings.Cut(place, "/")
		name, _, _ := strings.Cut(host, ":")
		return strings.HasSuffix(name, scope[1:])
	}
	return place == scope || strings.HasPrefix(place, scope+"/")
}

func anyCovers(scopes []string, place string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return covers(s, place) })
}
