package registriesconf

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// cluster is the objects about mirrors in a cluster.
type cluster struct {
	digests  []*configv1.ImageDigestMirrorSet
	tags     []*configv1.ImageTagMirrorSet
	policies []*operatorv1alpha1.ImageContentSourcePolicy
}

// sets returns the same objects for render/mirrors.
func (c cluster) sets() []mirrors.Set {
	var sets []mirrors.Set
	add := func(kind mirrors.SetKind, object, field, source string, list []string, policy configv1.MirrorSourcePolicy) {
		sets = append(sets, mirrors.Set{
			Kind: kind, Ref: bundle.Ref{Kind: string(kind), Name: object}, Field: field, Source: source, Mirrors: list, Policy: mirrors.Policy(policy),
		})
	}
	for _, o := range c.digests {
		for i, m := range o.Spec.ImageDigestMirrors {
			add(mirrors.DigestSet, o.Name, fmt.Sprintf("spec.imageDigestMirrors[%d]", i), m.Source, texts(m.Mirrors), m.MirrorSourcePolicy)
		}
	}
	for _, o := range c.tags {
		for i, m := range o.Spec.ImageTagMirrors {
			add(mirrors.TagSet, o.Name, fmt.Sprintf("spec.imageTagMirrors[%d]", i), m.Source, texts(m.Mirrors), m.MirrorSourcePolicy)
		}
	}
	for _, o := range c.policies {
		for i, m := range o.Spec.RepositoryDigestMirrors {
			add(mirrors.ContentSourcePolicy, o.Name, fmt.Sprintf("spec.repositoryDigestMirrors[%d]", i), m.Source, m.Mirrors, "")
		}
	}
	return sets
}

func texts(list []configv1.ImageMirror) []string {
	var out []string
	for _, m := range list {
		out = append(out, string(m))
	}
	return out
}

func imageMirrors(list []string) []configv1.ImageMirror {
	var out []configv1.ImageMirror
	for _, m := range list {
		out = append(out, configv1.ImageMirror(m))
	}
	return out
}

// generator makes a cluster from bytes. Each byte decides one thing, so that another byte makes another cluster. After the
// last byte it reads zeros.
type generator struct {
	data []byte
	// names are the few names of this cluster, so that sources and mirrors collide.
	names []string
	// odd is true if names may also be odd ones.
	odd  bool
	rule policyRule
}

// policyRule is the rule by which entries get their policy.
type policyRule string

const (
	noPolicy policyRule = "none"
	// bySource gives all entries of a source the same policy and mirrors that it allows, which random choices rarely do.
	bySource policyRule = "by source"
	anyOfAPI policyRule = "any of the API's"
	anyText  policyRule = "any"
)

// Names that the API accepts as source and, except for wildcards, as mirror. Neighbours collide.
var good = []string{
	"b.io", "b.io/x", "b.io/x/y", "a.io:5000", "a.io:5000/x", "a.io:5000/x/y", "c.io", "c.io/x", "B.io", "B.io/x",
	"registry-1.docker.io/library", "docker.io/library", "docker.io", "localhost:5000", "m.io/x", "*.io", "z.io/m/x/y",
}

// odd are unusual names; some of them are valid.
var odd = []string{
	"", "docker://b.io", "https://b.io/x", "b.io:tag", "b.io/x:1.0", "b.io/X", "b.io/x@sha256:00", "b.io/", "/x", "b_b.io", "b.io/x__y", "b.io/x___y",
	"b.io/x--y", "b.io/x._y", "b.io/-x", "-b.io", "b-.io", "b..io", ".io", "*", "*.", "*.io/x", "*.io:80", "*.*.io", "b.*.io", "x.*", " b.io", "b.io\n", "ü.io", "::1", "[::1]:80", "b.io:", "b.io:0",
	"con", "nul.local", "127.0.0.1:5000/a/b/c/d",
}

const (
	maxObjects = 8
	maxEntries = 6
	maxMirrors = 6
)

func clusterFrom(data []byte) cluster {
	g := generator{data: data}
	first, width := g.below(len(good)), 2+g.below(6)
	for i := range width {
		g.names = append(g.names, good[(first+i)%len(good)])
	}
	g.rule, g.odd = []policyRule{noPolicy, bySource, anyOfAPI, anyText}[g.below(4)], g.below(3) == 2
	var c cluster
	for i := 0; i < maxObjects && len(g.data) > 0; i++ {
		g.object(&c, fmt.Sprintf("object-%d", i))
	}
	return c
}

func (g *generator) below(n int) int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b) % n
}

func (g *generator) object(c *cluster, name string) {
	kind, entries := g.below(3), 1+g.below(maxEntries)
	meta := metav1.ObjectMeta{Name: name}
	digests, tags, policies := &configv1.ImageDigestMirrorSet{ObjectMeta: meta}, &configv1.ImageTagMirrorSet{ObjectMeta: meta}, &operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: meta}
	for range entries {
		source := g.name()
		list := g.list(source)
		switch kind {
		case 0:
			digests.Spec.ImageDigestMirrors = append(digests.Spec.ImageDigestMirrors, configv1.ImageDigestMirrors{Source: source, Mirrors: imageMirrors(list), MirrorSourcePolicy: g.policy(source)})
		case 1:
			tags.Spec.ImageTagMirrors = append(tags.Spec.ImageTagMirrors, configv1.ImageTagMirrors{Source: source, Mirrors: imageMirrors(list), MirrorSourcePolicy: g.policy(source)})
		default:
			policies.Spec.RepositoryDigestMirrors = append(policies.Spec.RepositoryDigestMirrors, operatorv1alpha1.RepositoryDigestMirrors{Source: source, Mirrors: list})
		}
	}
	switch kind {
	case 0:
		c.digests = append(c.digests, digests)
	case 1:
		c.tags = append(c.tags, tags)
	default:
		c.policies = append(c.policies, policies)
	}
}

func (g *generator) list(source string) []string {
	var list []string
	for range g.below(maxMirrors + 1) {
		if m := g.name(); g.rule != bySource || m != source || !g.closed(source) {
			list = append(list, m)
		}
	}
	return list
}

// closed reports whether the rule bySource gives the source the policy Never.
func (g *generator) closed(source string) bool { return slices.Index(g.names, source)%2 == 0 }

// name returns one of the names of the cluster, sometimes an odd one, or the next bytes.
func (g *generator) name() string {
	switch kind := g.below(256); {
	case kind < 252 || !g.odd:
		return g.names[kind%len(g.names)]
	case kind < 254:
		return odd[g.below(len(odd))]
	default:
		n := min(g.below(24), len(g.data))
		text := string(g.data[:n])
		g.data = g.data[n:]
		return text
	}
}

func (g *generator) policy(source string) configv1.MirrorSourcePolicy {
	all := []configv1.MirrorSourcePolicy{"", configv1.AllowContactingSource, configv1.NeverContactSource, "Sometimes"}
	switch g.rule {
	case bySource:
		if g.closed(source) {
			return configv1.NeverContactSource
		}
		return all[g.below(2)]
	case anyOfAPI:
		return all[g.below(3)]
	case anyText:
		return all[g.below(4)]
	case noPolicy:
	}
	return ""
}
