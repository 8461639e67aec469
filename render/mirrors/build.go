package mirrors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/gateway/places"
)

// Result is the hosts files of a cluster, and the findings about its inputs.
type Result struct {
	// Files has one hosts file for each registry host, sorted by host.
	Files []HostsFile
	// KubeletCredentials are the entries of the pull secret that kubelets get, by key; none without Options.PullSecretOnNodes.
	KubeletCredentials []KubeletCredential
	// KubeletCauses are the mirror sets because of which entries are withheld from kubelets.
	KubeletCauses []bundle.Ref
	// Table is the table of the gateway; zero if no registry uses the gateway.
	Table    places.Table
	Findings bundle.Findings
}

// Build makes the hosts files. With findings of severity error there are none.
func Build(in Inputs, o Options) Result {
	b := &builder{
		in: in, partial: o.PartialNever, pauseImage: o.PauseImage, hosts: map[string]*host{}, exact: o.Mode == Exact, gateway: o.Gateway,
		routed: map[string]bool{},
	}
	b.findings = in.validateSets()
	if b.exact {
		b.findings = append(b.findings, in.validatePolicies()...)
	}
	if b.findings.Refused() {
		return Result{Findings: b.findings.Sorted()}
	}
	b.parseScopes()
	var findings bundle.Findings
	b.credentials, findings = in.parseCredentials()
	b.findings = append(b.findings, findings...)
	b.addChains()
	b.addScopes()
	b.routeSigned()
	r := Result{Files: b.buildFiles()}
	if o.PullSecretOnNodes {
		r.KubeletCredentials, r.KubeletCauses = b.kubeletCredentials(r.Files)
	}
	r.Table = b.gatewayTable(r.Files)
	r.Findings = b.findings.Sorted()
	return r
}

// builder collects the configuration of each registry host.
type builder struct {
	in          Inputs
	partial     PartialNever
	pauseImage  string
	credentials []credential
	hosts       map[string]*host
	findings    bundle.Findings

	// exact sends registries through the gateway where a hosts file is not enough. These are routed; at is the one that is looked at now.
	exact   bool
	gateway string
	routed  map[string]bool
	at      string

	insecure, blocked, allowed []scope
	// images are the repositories of entries for single images, which only the gateway can block.
	images []scope
	// sources are all sources with mirrors, and whether each must never be contacted.
	sources map[string]bool
	// neverBy are the same by scope. Of two spellings of one source, the stricter counts.
	neverBy map[scope]bool
	// neverOn are the sources that must never be contacted, by host.
	neverOn map[string][]scope
	// refsOf are the objects that name a source, by kind.
	refsOf map[pullKind]map[string][]bundle.Ref
}

// host is one registry.
type host struct {
	name string
	// chains are lists of endpoints, each in the order of one source.
	chains [][]scope
	// tagged are the endpoints that tags may be resolved at, digested those that some source pulls digests from.
	tagged, digested map[scope]bool
	// mirrors are the mirrors that an endpoint stands for, in their order.
	mirrors map[scope][]scope
	// mirrored are the sources that have an endpoint.
	mirrored []servedSource
	// never and allow are the sources on this host by policy. blocked reports whether Image/cluster blocks the whole
	// host.
	never, allow []scope
	blocked      bool
	insecure     bool
	permitted    bool
	causes       []bundle.Ref
}

func (b *builder) hostNamed(name string) *host {
	h := b.hosts[name]
	if h == nil {
		h = &host{name: name, tagged: map[scope]bool{}, digested: map[scope]bool{}, mirrors: map[scope][]scope{}}
		b.hosts[name] = h
	}
	return h
}

func (b *builder) addWarning(why string, f bundle.Finding) {
	if b.routeAround(why) {
		return
	}
	if b.at != "" && slices.Contains(remedied, why) {
		f.Fix += fixExact
	}
	f.Severity, f.Reason = bundle.SeverityWarning, why
	b.findings = append(b.findings, f)
}

func (b *builder) addInfo(why string, f bundle.Finding) {
	if b.routeAround(why) {
		return
	}
	f.Severity, f.Reason = bundle.SeverityInfo, why
	b.findings = append(b.findings, f)
}

// parseScopes reads the lists of Image/cluster. OpenShift accepts entries that are not scopes, such as one with a tag,
// so they are a warning here. They become the zero scope, which covers nothing.
func (b *builder) parseScopes() {
	parse := func(name, why string, texts []string) []scope {
		list := make([]scope, len(texts))
		for i, text := range texts {
			s, ok := parseScope(text)
			list[i] = s
			if !ok {
				b.at = ""
				if parts := imageName.FindStringSubmatch(text); parts != nil {
					image, _ := parseScope(parts[1])
					b.lookAt(image)
					b.images = append(b.images, image)
				}
				b.addWarning(why, bundle.Finding{
					Object: b.in.Scopes.Ref, Field: fmt.Sprintf("spec.registrySources.%s[%d]", name, i), Message: fmt.Sprintf(
						"%q is left out on Windows nodes: it is not a registry or a part of one", ShownName(text),
					), Fix: fixScope,
				})
			}
		}
		return list
	}
	b.insecure = parse("insecureRegistries", reason.InsecureNotRepresentable, b.in.Scopes.Insecure)
	b.blocked = parse("blockedRegistries", reason.BlockNotRepresentable, b.in.Scopes.Blocked)
	b.allowed = parse("allowedRegistries", reason.AllowNotRepresentable, repositoriesOf(b.in.Scopes.Allowed))
}

func anyCovers(list []scope, s scope) bool {
	return slices.ContainsFunc(list, func(x scope) bool { return x.covers(s) })
}

// addChains turns the merged chains of both kinds into endpoints of their hosts.
func (b *builder) addChains() {
	var digests, tags []Set
	for _, s := range b.in.Sets {
		if s.Kind == TagSet {
			tags = append(tags, s)
		} else {
			digests = append(digests, s)
		}
	}
	digestChains, tagChains := Merge(digests), Merge(tags)
	b.sources = map[string]bool{}
	for _, c := range slices.Concat(digestChains, tagChains) {
		b.sources[c.Source] = b.sources[c.Source] || c.Never
	}
	b.neverBy, b.neverOn = map[scope]bool{}, map[string][]scope{}
	for text, never := range b.sources {
		source, _ := parseScope(text) // validated before
		b.neverBy[source] = b.neverBy[source] || never
		if never {
			b.neverOn[source.host] = append(b.neverOn[source.host], source)
		}
	}
	for _, c := range digestChains {
		b.addChain(c, kindDigest)
	}
	for _, c := range tagChains {
		b.addChain(c, kindTag)
	}
}

// pullKind is what a chain is for.
type pullKind string

const (
	kindDigest pullKind = "digests"
	kindTag    pullKind = "tags"
)

func (b *builder) addChain(c Chain, kind pullKind) {
	source, _ := parseScope(c.Source) // validated before
	b.lookAt(source)
	refs := b.refsNaming(c.Source, kind)
	if problem := whyUnrepresentable(source); problem != "" {
		b.notRepresentable(refs, source, c, problem)
		return
	}
	h := b.hostNamed(source.host)
	var endpoints []scope
	for _, m := range c.Mirrors {
		mirror, _ := parseScope(m)
		if b.isRefused(mirror) {
			b.addInfo(reason.MirrorBlocked, bundle.Finding{
				Object: refs[0], Field: c.Source,
				Message: fmt.Sprintf(
					"mirror %s of %s is left out: its registry is blocked, or it is a source that must never be contacted",
					m, c.Source,
				),
				Fix: "unblock the mirror's registry, or remove the mirror",
			})
			continue
		}
		x, ok := mirror.withoutSuffix(source.path)
		if !ok {
			b.reportPath(refs[0], source, c, m)
			continue
		}
		endpoints = appendNew(endpoints, x)
		h.mirrors[x] = appendNew(h.mirrors[x], mirror)
		b.reportNeverInside(mirror, refs[0], c.Source)
	}
	h.addEndpoints(endpoints, kind)
	if len(endpoints) > 0 {
		h.mirrored = append(h.mirrored, servedSource{source, refs[0]})
	}
	if b.sources[c.Source] {
		h.never = appendNew(h.never, source)
	} else {
		h.allow = appendNew(h.allow, source)
	}
	for _, ref := range refs {
		h.causes = appendNew(h.causes, ref)
	}
}

func (h *host) addEndpoints(endpoints []scope, kind pullKind) {
	if len(endpoints) == 0 {
		return
	}
	h.chains = append(h.chains, endpoints)
	for _, x := range endpoints {
		if kind == kindTag {
			h.tagged[x] = true
		} else {
			h.digested[x] = true
		}
	}
}

func appendNew[E comparable](list []E, e E) []E {
	if slices.Contains(list, e) {
		return list
	}
	return append(list, e)
}

// refsNaming returns the objects whose sets name the source.
func (b *builder) refsNaming(source string, kind pullKind) []bundle.Ref {
	if b.refsOf == nil {
		b.refsOf = map[pullKind]map[string][]bundle.Ref{kindDigest: {}, kindTag: {}}
		for _, s := range b.in.Sets {
			k := kindDigest
			if s.Kind == TagSet {
				k = kindTag
			}
			b.refsOf[k][s.Source] = appendNew(b.refsOf[k][s.Source], s.Ref)
		}
	}
	refs := b.refsOf[kind][source]
	slices.SortFunc(refs, func(x, y bundle.Ref) int { return cmp.Compare(x.String(), y.String()) })
	return refs
}

// whyUnrepresentable returns why a source can have no hosts file; empty if it can have one.
func whyUnrepresentable(source scope) string {
	if source.wildcard {
		return "containerd does not support wildcards"
	}
	if err := bundle.CheckName(directoryName(source.host)); err != nil {
		return "Windows does not allow a folder of that name"
	}
	return ""
}

func (b *builder) notRepresentable(refs []bundle.Ref, source scope, c Chain, why string) {
	b.leaveOut(reason.MirrorNotRepresentable, source, bundle.Finding{
		Object: refs[0], Field: c.Source, Message: fmt.Sprintf("source %s is left out: %s", c.Source, why), Fix: "use a separate source for each registry",
	})
	if b.sources[c.Source] {
		b.leaveOut(reason.NeverNotKept, source, bundle.Finding{
			Object: refs[0], Field: c.Source, Message: fmt.Sprintf(
				"NeverContactSource has no effect on Windows nodes for %s: %s", c.Source, why,
			), Fix: "use a separate source for each registry",
		})
	}
}

// isRefused reports whether a mirror must not be asked. OpenShift looks a mirror up like any registry, and does not ask
// one that is blocked or is a source that must never be contacted. The most specific entry counts.
func (b *builder) isRefused(mirror scope) bool {
	if anyCovers(b.blocked, mirror) {
		return true
	}
	for x := mirror; ; x = x.parent() {
		if never, ok := b.neverBy[x]; ok {
			return never
		}
		if x.path == "" {
			break
		}
	}
	name, _, _ := strings.Cut(mirror.host, ":")
	for i, c := range name {
		if never, ok := b.neverBy[scope{host: "*" + name[i:], wildcard: true}]; ok && c == '.' {
			return never
		}
	}
	return false
}
