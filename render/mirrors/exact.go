package mirrors

import (
	"cmp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway/places"
)

// GatewayTable returns the table with which a node decides where images come from, as registries.conf and policy.json of Linux nodes
// (openshift/runtime-utils, EditRegistriesConfig; openshift/machine-config-operator, updatePolicyJSON). Inputs that Build refuses have none.
func (in Inputs) GatewayTable() places.Table {
	e := entries{}
	var digests, tags []Set
	for _, s := range in.Sets {
		if s.Kind == TagSet {
			tags = append(tags, s)
		} else {
			digests = append(digests, s)
		}
	}
	chains := e.addChains(Merge(digests), places.Digests)
	chains = append(chains, e.addChains(Merge(tags), places.Tags)...)
	blocked := onlyScopes(in.Scopes.Blocked)
	for _, s := range blocked {
		e.entryNamed(s)
	}
	for _, s := range onlyScopes(in.Scopes.Insecure) {
		e.entryNamed(s)
		e.markInsecure(s)
	}
	for _, s := range blocked {
		e.markBlocked(s)
	}
	for _, c := range chains {
		e.inheritMirrors(c.Source)
	}
	// containers/image sorts them, which decides between scopes of one length (sysregistriesv2, updateWithConfigurationFrom).
	slices.SortFunc(e.list, func(x, y places.Registry) int { return strings.Compare(x.Scope, y.Scope) })
	list, _ := in.parseCredentials() // Build reports entries that cannot be used
	t := places.Table{Registries: e.list, Allowed: shownNames(in.Scopes.Allowed), Denied: shownNames(in.Scopes.Blocked), Policies: in.signaturePolicies()}
	if len(t.Allowed)+len(t.Denied) > 0 {
		t.Settings = in.Scopes.Ref.String()
	}
	for i, r := range t.Registries {
		t.Registries[i].Objects = in.blockersOf(r.Scope)
	}
	for _, c := range list {
		if !servesMirror(t.Registries, c.key) {
			continue
		}
		t.Credentials = append(t.Credentials, places.Credential{
			Key: c.key, Auth: bundle.NewSecret(strings.TrimPrefix(c.header.Reveal(), "Basic ")),
		})
	}
	return t
}

// onlyScopes returns what is a scope. No image is in anything else, which OpenShift accepts too.
func onlyScopes(texts []string) (list []string) {
	for _, text := range texts {
		if _, ok := parseScope(text); ok {
			list = append(list, text)
		}
	}
	return list
}

// shownNames returns all names, without passwords. Names that no image can have stay: a list with only such names allows no image.
func shownNames(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, ShownName(text))
	}
	return list
}

// remedied are the reasons of findings about what hosts files cannot express.
var remedied = []string{
	reason.MirrorNotRepresentable, reason.MirrorScopeWidened, reason.MirrorOrderNotKept, reason.TagMirrorServesDigests, reason.NeverWidened,
	reason.NeverNotKept, reason.BlockNotRepresentable, reason.InsecureNotRepresentable, reason.AllowNotRepresentable, reason.AllowWidened,
	reason.CredentialsNotUsed,
}

// fixExact is added to the fixes of warnings that the gateway remedies.
const fixExact = "; or set mirrors.mode: Exact in windows-machine-config"

// lookAt notes the registry that findings are about. What is for several registries, or for one that can have no folder, is for all without a file.
func (b *builder) lookAt(s scope) {
	b.at = s.host
	if whyUnrepresentable(s) != "" {
		b.at = DefaultHost
	}
}

// routeAround sends the registry through the gateway if that remedies a finding, and reports whether it does.
func (b *builder) routeAround(why string) bool {
	if !b.exact || b.at == "" || !slices.Contains(remedied, why) {
		return false
	}
	b.routed[b.at] = true
	if b.at != DefaultHost {
		b.hostNamed(b.at)
	}
	return true
}

// routeMirrored sends the registries with mirrors through the gateway for which a kubelet uses an entry of the pull secret: the gateway gives mirrors
// nothing of the kubelet's.
func (b *builder) routeMirrored(files []HostsFile, host string) {
	for i := range files {
		if _, mirror := mirrorOf(files[i:i+1], host); mirror != "" {
			files[i] = routedFile(files[i].Host, b.gateway, files[i].Causes)
		}
	}
}

// causesOf returns the objects that configure a registry, or those without a file.
func (b *builder) causesOf(name string) (refs []bundle.Ref) {
	isOf := func(s scope) bool {
		return s.host == name || name == DefaultHost && s != (scope{}) && whyUnrepresentable(s) != ""
	}
	for _, s := range b.in.Sets {
		if source, _ := parseScope(s.Source); isOf(source) {
			refs = appendNew(refs, s.Ref)
		}
	}
	if slices.ContainsFunc(slices.Concat(b.insecure, b.blocked, b.allowed, b.images), isOf) {
		refs = appendNew(refs, b.in.Scopes.Ref)
	}
	for _, ref := range b.policiesOf(name) {
		refs = appendNew(refs, ref)
	}
	slices.SortFunc(refs, func(x, y bundle.Ref) int { return cmp.Compare(x.String(), y.String()) })
	return refs
}

// gatewayTable returns what the gateway decides by.
func (b *builder) gatewayTable(files []HostsFile) places.Table {
	var routed []string
	for _, f := range files {
		switch {
		case f.Routed && f.Host == DefaultHost:
			routed = append(routed, places.All)
		case f.Routed:
			routed = append(routed, f.Host)
		}
	}
	if routed == nil {
		return places.Table{}
	}
	t := b.in.GatewayTable()
	t.Routed = routed
	return t
}

// servesMirror reports whether an entry of the pull secret is for a mirror, or for a part of one.
func servesMirror(list []places.Registry, key string) bool {
	return slices.ContainsFunc(list, func(r places.Registry) bool {
		return slices.ContainsFunc(r.Mirrors, func(m places.Mirror) bool {
			return places.Covers(key, m.Location) || places.Covers(m.Location, key)
		})
	})
}

// entries are those of registries.conf, in its order.
type entries struct{ list []places.Registry }

func (e *entries) entryNamed(scope string) *places.Registry {
	i := slices.IndexFunc(e.list, func(r places.Registry) bool { return r.Scope == scope })
	if i < 0 {
		i = len(e.list)
		e.list = append(e.list, places.Registry{Scope: scope})
	}
	return &e.list[i]
}

func (e *entries) addChains(chains []Chain, use places.Use) []Chain {
	for _, c := range chains {
		r := e.entryNamed(c.Source)
		r.Blocked = r.Blocked || c.Never
		for _, m := range c.Mirrors {
			if strings.HasPrefix(m, "*.") { // the source itself, between mirrors; it has no name there, so Linux nodes pull nothing at all
				continue
			}
			r.Mirrors = append(r.Mirrors, places.Mirror{Location: m, Use: use})
		}
	}
	return chains
}

// markInsecure marks what is inside a scope: entries that have been made, and their mirrors.
func (e *entries) markInsecure(scope string) {
	for i := range e.list {
		r := &e.list[i]
		r.Insecure = r.Insecure || isNested(r.Scope, scope)
		for j := range r.Mirrors {
			r.Mirrors[j].Insecure = r.Mirrors[j].Insecure || isNested(r.Mirrors[j].Location, scope)
		}
	}
}

func (e *entries) markBlocked(scope string) {
	for i := range e.list {
		e.list[i].Blocked = e.list[i].Blocked || isNested(e.list[i].Scope, scope)
	}
}

// blockersOf returns the objects that block a registry, sorted.
func (in Inputs) blockersOf(scope string) []string {
	var list []string
	for _, s := range in.Sets {
		if s.Source == scope && s.Policy == NeverContactSource {
			list = append(list, s.Ref.String())
		}
	}
	if slices.ContainsFunc(in.Scopes.Blocked, func(b string) bool { return isNested(scope, b) }) {
		list = append(list, in.Scopes.Ref.String())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// inheritMirrors gives the entries inside a source, which only Image/cluster names, its mirrors.
func (e *entries) inheritMirrors(source string) {
	from := *e.entryNamed(source)
	for i := range e.list {
		r := &e.list[i]
		if r.Scope == source || len(r.Mirrors) > 0 || strings.HasPrefix(source, "*.") || !isNested(r.Scope, source) {
			continue
		}
		for _, m := range from.Mirrors {
			m.Location += r.Scope[len(source):]
			r.Mirrors = append(r.Mirrors, m)
		}
	}
}

// isNested reports whether a scope is inside another one, or is that one, as OpenShift decides it: an image of a part with a tag is inside no wildcard
// (github.com/openshift/runtime-utils, pkg/registries, ScopeIsNestedInsideScope).
func isNested(scope, outer string) bool {
	host, _, hasColon := strings.Cut(scope, ":")
	if !hasColon {
		host, _, _ = strings.Cut(scope, "/")
	}
	suffix, isWildcard := strings.CutPrefix(outer, "*")
	return scope == outer || strings.HasPrefix(scope, outer+"/") || isWildcard && strings.HasSuffix(host, suffix) && !strings.Contains(host, "/")
}
