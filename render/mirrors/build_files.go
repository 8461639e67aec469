package mirrors

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// buildFiles returns the file of each host, in the order of their names.
func (b *builder) buildFiles() []HostsFile {
	var files []HostsFile
	for _, name := range slices.Sorted(maps.Keys(b.hosts)) {
		b.at = name
		f, ok := b.buildFile(b.hosts[name])
		if b.routed[name] || b.exact && len(b.policiesOf(name)) > 0 {
			f, ok = routedFile(name, b.gateway, b.causesOf(name)), true
		}
		if ok {
			files = append(files, f)
		}
	}
	b.at = ""
	if len(b.allowed) > 0 && (b.partial == Closed || !slices.ContainsFunc(b.allowed, func(s scope) bool { return s.wildcard })) {
		files = append(files, blockedFile(DefaultHost, []bundle.Ref{b.in.Scopes.Ref}))
	}
	if b.routed[DefaultHost] {
		files = slices.DeleteFunc(files, func(f HostsFile) bool { return f.Host == DefaultHost })
		files = append(files, routedFile(DefaultHost, b.gateway, b.causesOf(DefaultHost)))
	}
	slices.SortFunc(files, func(x, y HostsFile) int { return strings.Compare(x.Directory, y.Directory) })
	return files
}

// buildFile returns the file of one host, and reports whether there is anything in it.
func (b *builder) buildFile(h *host) (HostsFile, bool) {
	slices.SortFunc(h.causes, func(x, y bundle.Ref) int { return cmp.Compare(x.String(), y.String()) })
	if len(b.allowed) > 0 && !h.permitted && !b.allowedByWildcard(h) {
		return blockedFile(h.name, appendNew(h.causes, b.in.Scopes.Ref)), true
	}
	f := HostsFile{Host: h.name, Directory: directoryName(h.name), Hosts: b.buildEndpoints(h), Causes: h.causes}
	if len(f.Hosts) > 0 {
		b.reportWidened(h)
	}
	b.reportNever(h)
	if slices.ContainsFunc(f.Hosts, func(e Endpoint) bool { return !e.Authorization.IsZero() }) {
		f.Causes = appendNew(f.Causes, b.in.PullSecretRef)
	}
	switch {
	case b.isClosed(h) && len(f.Hosts) == 0, b.exact && h.blocked: // Linux nodes pull nothing of a blocked registry, from mirrors either
		return blockedFile(h.name, h.causes), true
	case b.isClosed(h):
		// The last mirror is the server too, because containerd would add the source otherwise. It is asked twice if it
		// fails, which does no harm; older versions of containerd do not read a file with only a server.
		f.Server = f.Hosts[len(f.Hosts)-1]
	case h.insecure:
		f.Server = Endpoint{
			URL: endpointURL(scope{host: h.name}, transportAny), Capabilities: []Capability{Pull, Resolve},
			SkipVerify: true,
		}
	}
	return f, len(f.Hosts) > 0 || !f.Server.IsZero() || h.permitted
}

func (b *builder) allowedByWildcard(h *host) bool {
	return b.partial == Open && anyCovers(b.allowed, scope{host: h.name})
}

// buildEndpoints returns the endpoints of all sources on the host in one order.
func (b *builder) buildEndpoints(h *host) []Endpoint {
	byName := map[string]scope{}
	var lists [][]string
	for _, c := range h.chains {
		var list []string
		for _, x := range c {
			byName[x.String()] = x
			list = append(list, x.String())
		}
		lists = append(lists, list)
	}
	// A mirror for tags serves digests as well. OpenShift never asks it for a digest, so the mirrors for digests come
	// first.
	order := mergeDigestsFirst(lists, h.name, func(name string) bool { return h.digested[byName[name]] })
	for _, list := range lists {
		b.reportOrder(h, list, order)
	}
	var out []Endpoint
	for _, name := range order {
		x, known := byName[name]
		if !known || x == (scope{host: h.name}) && b.isClosed(h) {
			continue // the source, if no list names it or it must not be asked
		}
		out = append(out, b.buildEndpoint(h, x))
	}
	return out
}

func (b *builder) buildEndpoint(h *host, x scope) Endpoint {
	mirrors := h.mirrors[x]
	e := Endpoint{Capabilities: []Capability{Pull}, Authorization: headerFor(b.credentials, mirrors[0]).header}
	if h.tagged[x] {
		e.Capabilities = []Capability{Pull, Resolve}
	}
	t := transportTLS
	insecure := 0
	for _, m := range mirrors {
		if anyCovers(b.insecure, m) {
			insecure++
		}
	}
	switch {
	case insecure == len(mirrors):
		t, e.SkipVerify = transportAny, true
	case insecure > 0:
		b.reportMixedTransport(x)
	}
	b.reportCredentials(x, mirrors)
	e.URL = endpointURL(x, t)
	return e
}

// isClosed reports whether the registry itself must not be asked.
func (b *builder) isClosed(h *host) bool {
	if h.blocked {
		return true
	}
	whole := slices.ContainsFunc(h.never, func(s scope) bool { return s.path == "" })
	return whole || len(h.never) > 0 && b.partial == Closed
}
