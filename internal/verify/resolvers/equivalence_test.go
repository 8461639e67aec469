package resolvers

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// Both versions of containerd try the places that OpenShift means for every image. Where they do not, a finding of the
// right kind names the place.
func TestPullsMatchOpenShift(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	var seen tally
	for i := range 600 {
		data := make([]byte, 64)
		for j := range data {
			data[j] = byte(chance.Uint32())
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) { checkBytes(t, data, &seen) })
	}
	t.Logf("%+v", seen)
	if seen.same < 10000 || seen.sameMirrored < 1000 || seen.explained < 1000 || seen.never < 500 || seen.refused > 0 {
		t.Errorf("the inputs do not cover enough: %+v", seen)
	}
}

func FuzzResolvers(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{1, 0, 1, 2, 1, 3, 1, 2, 2, 0, 1, 1, 1, 1, 0, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, data []byte) { checkBytes(t, data, &tally{}) })
}

// tally counts pulls, so that a test which compares nothing fails: equal ones, those of them that have mirrors, those whose
// difference has a finding, and those that must never reach the source.
type tally struct{ same, sameMirrored, explained, never, refused int }

func checkBytes(t *testing.T, data []byte, seen *tally) {
	p := picks{data}
	in, partial := p.inputs()
	files, findings, err := Render(in, partial)
	if err != nil {
		t.Fatalf("%s\n%v", describeInputs(in, partial), err)
	}
	if findings.Refused() {
		seen.refused++
		return
	}
	c := checker{t: t, in: in, partial: partial, findings: findings, root: t.TempDir(), seen: seen, result: mirrors.Build(in, mirrors.Options{PartialNever: partial}), hosts: map[string][]Host{}}
	if err := files.Write(c.root); err != nil {
		t.Fatal(err)
	}
	for _, image := range images(in) {
		c.checkImage(image)
	}
	if t.Failed() {
		t.Logf("%s", describeInputs(in, partial))
		for name, text := range files {
			t.Logf("%s\n%s", name, text)
		}
		for _, f := range findings {
			t.Logf("%s %s %s: %s", f.Reason, f.Object, f.Field, f.Message)
		}
	}
}

func describeInputs(in mirrors.Inputs, partial mirrors.PartialNever) string {
	var b strings.Builder
	for _, s := range in.Sets {
		fmt.Fprintf(&b, "%s %s -> %v %s\n", s.Kind, s.Source, s.Mirrors, s.Policy)
	}
	fmt.Fprintf(&b, "insecure %v, blocked %v, allowed %v, partialNever %s\n", in.Scopes.Insecure, in.Scopes.Blocked, in.Scopes.Allowed, partial)
	return b.String()
}

// checker is one input with its rendered files and findings.
type checker struct {
	t        *testing.T
	in       mirrors.Inputs
	partial  mirrors.PartialNever
	findings bundle.Findings
	root     string
	seen     *tally
	result   mirrors.Result
	// hosts are the endpoints by registry, the same for all versions of containerd.
	hosts map[string][]Host
}

// endpoints returns the endpoints of a registry, which must be the same in both versions of containerd.
func (c *checker) endpoints(host string) []Host {
	if hosts, known := c.hosts[host]; known {
		return hosts
	}
	var lists [][]Host
	for _, e := range Engines() {
		hosts, err := e.Hosts(Client{Root: c.root}, host)
		if err != nil {
			c.t.Fatalf("%s: %s: %v", e.Version, host, err)
		}
		for _, line := range complaints.take() {
			c.t.Errorf("%s: %s: %s", e.Version, host, line)
		}
		lists = append(lists, hosts)
	}
	if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
		c.t.Errorf("%s: the versions of containerd differ (-2.4.2 +1.7.27):\n%s", host, diff)
	}
	c.hosts[host] = lists[0]
	return lists[0]
}

func (c *checker) checkImage(image string) {
	host, repository, _ := strings.Cut(image, "/")
	hosts := c.endpoints(host)
	m := model{c.in}
	for _, by := range []By{Digest, Tag} {
		// The last mirror of a closed host is in the file twice, on purpose.
		got := slices.Compact(URLs(hosts, repository, by))
		c.checkTries(image, by, got)
		c.checkLookup(image, by, got)
	}
	if m.never(image) {
		c.checkNever(image, hosts)
	}
}

// checkTries compares what containerd tries with what OpenShift means.
func (c *checker) checkTries(image string, by By, got []string) {
	want := model{c.in}.tries(image, by)
	var urls []string
	for _, t := range want {
		urls = append(urls, t.url())
	}
	urls = slices.Compact(urls)
	if slices.Equal(urls, got) {
		c.seen.same++
		if len(want) > 1 {
			c.seen.sameMirrored++
		}
		return
	}
	c.seen.explained++
	for _, d := range differences(image, by, want, got) {
		if !c.explained(d) {
			c.t.Errorf("%s by %s: %s %s, without a finding\nOpenShift  %v\ncontainerd %v", image, by, d.kind, d.place, urls, got)
		}
	}
}

// difference is one difference of two lists, and the place (host/repository) of it.
type difference struct {
	kind  differenceKind
	image string
	by    By
	place string
}

type differenceKind string

const (
	missingMirror differenceKind = "containerd leaves out the mirror"
	missingSource differenceKind = "containerd leaves out the source"
	extraMirror   differenceKind = "containerd asks as well the mirror"
	extraSource   differenceKind = "containerd asks as well the source"
	otherOrder    differenceKind = "the order differs at"
	otherScheme   differenceKind = "the transport differs at"
)

func differences(image string, by By, want []try, got []string) []difference {
	wanted, tried := map[string]string{}, map[string]string{}
	var wantOrder, gotOrder []string
	for _, t := range want {
		scheme, place := split(t.url())
		if _, known := wanted[place]; !known {
			wantOrder, wanted[place] = append(wantOrder, place), scheme
		}
	}
	for _, url := range got {
		scheme, place := split(url)
		if _, known := tried[place]; !known {
			gotOrder, tried[place] = append(gotOrder, place), scheme
		}
	}
	var list []difference
	add := func(kind differenceKind, place string) {
		list = append(list, difference{kind: kind, image: image, by: by, place: place})
	}
	for _, place := range wantOrder {
		scheme, found := tried[place]
		switch {
		case !found && place == image:
			add(missingSource, place)
		case !found:
			add(missingMirror, place)
		case scheme != wanted[place]:
			add(otherScheme, place)
		}
	}
	for _, place := range gotOrder {
		_, found := wanted[place]
		switch {
		case !found && place == image:
			add(extraSource, place)
		case !found:
			add(extraMirror, place)
		}
	}
	wantOrder = slices.DeleteFunc(wantOrder, func(p string) bool { return tried[p] == "" })
	gotOrder = slices.DeleteFunc(gotOrder, func(p string) bool { return wanted[p] == "" })
	for i := range wantOrder {
		if wantOrder[i] != gotOrder[i] {
			add(otherOrder, gotOrder[i])
			break
		}
	}
	if len(list) == 0 { // a place is tried more than once
		add(twiceDiffers(want, got), image)
	}
	return list
}

// twiceDiffers reports whether lists with repeats differ in more than the scheme of their places.
func twiceDiffers(want []try, got []string) differenceKind {
	if len(want) != len(got) {
		return otherOrder
	}
	for i, t := range want {
		_, meant := split(t.url())
		if _, place := split(got[i]); place != meant {
			return otherOrder
		}
	}
	return otherScheme
}

// split returns the scheme of a URL and the place as users write it.
func split(url string) (scheme, place string) {
	scheme, rest, _ := strings.Cut(url, "://")
	host, repository, _ := strings.Cut(rest, "/v2/")
	if host == "registry-1.docker.io" {
		host = "docker.io"
	}
	return scheme, host + "/" + repository
}

// excuses are the reasons of findings that explain each kind of difference.
var excuses = map[differenceKind][]string{
	missingMirror: {"MirrorNotRepresentable", "MirrorBlocked", "AllowNotRepresentable"},
	missingSource: {"NeverWidened", "AllowNotRepresentable"},
	extraMirror:   {"MirrorScopeWidened", "TagMirrorServesDigests", "NeverNotKept", "BlockNotRepresentable", "AllowWidened", "AllowNotRepresentable"},
	extraSource:   {"NeverNotKept", "BlockNotRepresentable", "AllowWidened", "AllowNotRepresentable"},
	otherOrder:    {"MirrorOrderNotKept", "MirrorScopeWidened"},
	otherScheme:   {"InsecureNotRepresentable"},
}

// explained reports whether a finding is about a difference: of the right kind, and about the registry of the image or a scope
// that covers the place.
func (c *checker) explained(d difference) bool {
	return slices.ContainsFunc(c.findings, func(f bundle.Finding) bool {
		if !slices.Contains(excuses[d.kind], f.Reason) || f.Reason == "TagMirrorServesDigests" && d.by != Digest {
			return false
		}
		scope := c.subject(f)
		if d.kind == otherOrder && f.Reason == "MirrorScopeWidened" && d.place != d.image {
			return false // only a source that is a mirror of a part may come too early for the other images
		}
		switch f.Reason {
		case "BlockNotRepresentable", "InsecureNotRepresentable":
			return covers(scope, d.place) || d.kind == otherScheme && hostOf(scope) == hostOf(d.place)
		case "AllowWidened":
			return hostOf(scope) == hostOf(d.image)
		case "MirrorNotRepresentable":
			return covers(scope, d.image)
		case "NeverNotKept":
			return covers(scope, d.image) || covers(scope, d.place)
		case "MirrorBlocked":
			return covers(scope, d.image) || c.namesSource(f.Object, d.image)
		case "AllowNotRepresentable":
			return covers(scope, d.image) || c.partial == mirrors.Open // which opens everything without its own entry
		}
		return scope == hostOf(d.image)
	})
}

// namesSource reports whether an object has a set whose source covers an image.
func (c *checker) namesSource(object bundle.Ref, image string) bool {
	return slices.ContainsFunc(c.in.Sets, func(s mirrors.Set) bool { return s.Ref == object && covers(s.Source, image) })
}

var registrySource = regexp.MustCompile(`^spec\.registrySources\.(\w+)\[(\d+)\]$`)

// subject returns the scope of a finding.
func (c *checker) subject(f bundle.Finding) string {
	match := registrySource.FindStringSubmatch(f.Field)
	if match == nil {
		return f.Field
	}
	i, _ := strconv.Atoi(match[2])
	return map[string][]string{
		"blockedRegistries": c.in.Scopes.Blocked, "insecureRegistries": c.in.Scopes.Insecure, "allowedRegistries": c.in.Scopes.Allowed,
	}[match[1]][i]
}

func hostOf(place string) string {
	host, _, _ := strings.Cut(place, "/")
	return host
}

// checkNever checks that no request for an image with policy Never reaches its source, not even in the second step of a
// pull, which asks every endpoint of the file once one of them may pull (2.4.2 core/remotes/docker/fetcher.go).
func (c *checker) checkNever(image string, hosts []Host) {
	c.seen.never++
	kept := !slices.ContainsFunc(c.findings, func(f bundle.Finding) bool {
		return f.Reason == "NeverNotKept" && covers(c.subject(f), image)
	})
	if !kept || !slices.ContainsFunc(hosts, func(h Host) bool { return h.Pull }) {
		return
	}
	_, repository, _ := strings.Cut(image, "/")
	for _, h := range hosts {
		if _, place := split(h.URL(repository)); place == image {
			c.t.Errorf("%s must never be contacted, and %s can be", image, h.URL(repository))
		}
	}
}

// checkLookup checks that Lookup returns what containerd does.
func (c *checker) checkLookup(image string, by By, got []string) {
	ref := image + ":1"
	if by == Digest {
		ref = image + "@sha256:" + strings.Repeat("0", 64)
	}
	l := c.result.Lookup(ref)
	_, repository, _ := strings.Cut(image, "/")
	var answer []string
	for _, m := range l.Mirrors {
		_, place := split(m + "/" + repository)
		answer = append(answer, place)
	}
	if l.Source {
		answer = append(answer, image)
	}
	var tried []string
	for _, url := range got {
		_, place := split(url)
		tried = append(tried, place)
	}
	if !slices.Equal(answer, tried) || l.By != string(by) {
		c.t.Errorf("%s: Lookup returns %v by %s, containerd tries %v", ref, answer, l.By, tried)
	}
}
