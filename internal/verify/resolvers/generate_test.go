package resolvers

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// picks makes choices from bytes. After the last byte it chooses the first of everything.
type picks struct{ data []byte }

func (p *picks) below(n int) int {
	if len(p.data) == 0 {
		return 0
	}
	x := int(p.data[0])
	p.data = p.data[1:]
	return x % n
}

// one returns true once in n times.
func (p *picks) one(n int) bool { return p.below(n) == n-1 }

func (p *picks) of(list []string) string { return list[p.below(len(list))] }

// The names in the inputs. Some are both sources and mirrors.
var (
	someSources = []string{"a.io", "b.io:5000", "docker.io", "x.example.com", "y.example.com:80", "localhost:5000", "m.io"}
	someMirrors = []string{"m.io", "n.io:5000", "k.io:80", "x.example.com", "localhost:5000", "docker.io", "a.io"}
	somePaths   = []string{"", "", "p", "p/q", "lib", "p/q/r"}
	somePrefix  = []string{"", "", "org", "org/sub", "p"}
)

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

func (p *picks) scope() string {
	if p.one(8) {
		return "*.example.com"
	}
	return join(p.of(append(slices.Clone(someSources), someMirrors...)), p.of(somePaths))
}

// inputs returns mirror sets and settings that the API accepts, and how a part of a host is treated. A source has one policy.
func (p *picks) inputs() (mirrors.Inputs, mirrors.PartialNever) {
	in := mirrors.Inputs{
		Scopes:        mirrors.Scopes{Ref: bundle.Ref{Kind: "Image", Name: "cluster"}},
		PullSecretRef: bundle.Ref{Kind: "Secret", Name: "pull-secret"},
	}
	policies := map[string]mirrors.Policy{}
	for i := range 1 + p.below(4) {
		s := p.set(i)
		if _, known := policies[s.Source]; !known {
			policies[s.Source] = []mirrors.Policy{"", mirrors.AllowContactingSource, mirrors.NeverContactSource}[p.below(3)]
		}
		s.Policy = policies[s.Source]
		if s.Policy == mirrors.NeverContactSource {
			s.Mirrors = slices.DeleteFunc(s.Mirrors, func(m string) bool { return m == s.Source })
		}
		in.Sets = append(in.Sets, s)
	}
	switch p.below(6) {
	case 1:
		in.Scopes.Insecure = []string{p.scope()}
	case 2:
		in.Scopes.Blocked = []string{p.scope()}
	case 3:
		in.Scopes.Insecure, in.Scopes.Blocked = []string{p.scope()}, []string{p.scope(), p.scope()}
	case 4:
		in.Scopes.Allowed, in.Scopes.Insecure = []string{p.scope(), p.scope()}, []string{p.scope()}
	}
	if p.one(4) {
		return in, mirrors.Open
	}
	return in, mirrors.Closed
}

func (p *picks) set(i int) mirrors.Set {
	s := mirrors.Set{Kind: []mirrors.SetKind{mirrors.DigestSet, mirrors.TagSet, mirrors.DigestSet, mirrors.ContentSourcePolicy}[p.below(4)]}
	s.Ref, s.Field = bundle.Ref{Kind: string(s.Kind), Name: fmt.Sprintf("set-%d", i)}, "spec.mirrors[0]"
	path := p.of(somePaths)
	s.Source = join(p.of(someSources), path)
	if p.one(12) {
		s.Source, path = "*.example.com", ""
	}
	// No mirror on localhost is its own source: containerd has other defaults for localhost.
	for range 1 + p.below(3) {
		m := join(p.of(someMirrors), p.of(somePrefix), path)
		if p.one(6) {
			m = join(p.of(someMirrors[:4]), p.of(somePaths))
		}
		if p.one(10) && !isWildcard(s.Source) {
			m = s.Source
		}
		if !slices.Contains(s.Mirrors, m) && (m != s.Source || !strings.HasPrefix(m, "localhost")) {
			s.Mirrors = append(s.Mirrors, m)
		}
	}
	return s
}

// images returns names inside and outside of every scope of the inputs, on every host in them and on one that is not.
func images(in mirrors.Inputs) []string {
	scopes := slices.Concat(in.Scopes.Insecure, in.Scopes.Blocked, in.Scopes.Allowed)
	for _, s := range in.Sets {
		scopes = append(append(scopes, s.Source), s.Mirrors...)
	}
	repositories := map[string][]string{"other.io": nil}
	for _, scope := range scopes {
		host, path, _ := strings.Cut(strings.Replace(scope, "*", "z", 1), "/")
		repositories[host] = append(repositories[host], join(path, "img"), join(path, "p", "img"))
		if path != "" {
			repositories[host] = append(repositories[host], path, path+"x/img")
		}
	}
	var names []string
	for host, list := range repositories {
		for _, repository := range append(list, "outside/img") {
			names = append(names, host+"/"+repository)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
