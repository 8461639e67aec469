package resolvers

import (
	stdcmp "cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
)

const (
	idms = mirrors.DigestSet
	itms = mirrors.TagSet
	icsp = mirrors.ContentSourcePolicy

	allow = mirrors.AllowContactingSource
	never = mirrors.NeverContactSource
)

func set(kind mirrors.SetKind, source string, policy mirrors.Policy, list ...string) mirrors.Set {
	return mirrors.Set{Kind: kind, Source: source, Policy: policy, Mirrors: list}
}

// inputs returns inputs in which every set is its own object.
func inputs(sets ...mirrors.Set) mirrors.Inputs {
	in := mirrors.Inputs{Sets: sets, Scopes: mirrors.Scopes{Ref: bundle.Ref{Kind: "Image", Name: "cluster"}}}
	for i := range in.Sets {
		in.Sets[i].Ref, in.Sets[i].Field = bundle.Ref{Kind: string(in.Sets[i].Kind), Name: fmt.Sprintf("set-%d", i)}, "spec.mirrors[0]"
	}
	return in
}

func scoped(in mirrors.Inputs, insecure, blocked, allowed []string) mirrors.Inputs {
	in.Scopes.Insecure, in.Scopes.Blocked, in.Scopes.Allowed = insecure, blocked, allowed
	return in
}

// decided is one decided outcome: the places that pulls try, and the reasons of the findings.
type decided struct {
	name string
	in   mirrors.Inputs
	// partial is Closed if it is empty.
	partial mirrors.PartialNever
	// tries are the hosts and paths by "digest image" or "tag image", with https:// unless they have another scheme.
	tries map[string]string
	// reasons are the reasons of warnings and errors about mirrors.
	reasons string
	// absent are the directories that must not exist.
	absent []string
}

// TestDecidedOutcomes: where containerd looks for an image, and which findings there are, for every decided outcome.
func TestDecidedOutcomes(t *testing.T) {
	list := func(s ...string) []string { return s }
	tests := []decided{
		// Merging lists.
		{name: "two overlapping lists", in: inputs(set(idms, "s.io", "", "a.io", "b.io", "c.io"), set(idms, "s.io", "", "c.io", "d.io", "e.io")),
			tries: map[string]string{"digest s.io/x": "a.io/x b.io/x c.io/x d.io/x e.io/x s.io/x", "tag s.io/x": "s.io/x"}},
		{name: "two overlapping lists in the other order", in: inputs(set(idms, "s.io", "", "c.io", "d.io", "e.io"), set(idms, "s.io", "", "a.io", "b.io", "c.io")),
			tries: map[string]string{"digest s.io/x": "a.io/x b.io/x c.io/x d.io/x e.io/x s.io/x"}},
		{name: "the order of one list is kept", in: inputs(set(idms, "s.io", "", "z.io", "m.io", "a.io")),
			tries: map[string]string{"digest s.io/x": "z.io/x m.io/x a.io/x s.io/x"}},
		{name: "two lists without a common mirror", in: inputs(set(idms, "s.io", "", "z1.io", "z2.io"), set(idms, "s.io", "", "a1.io", "a2.io")),
			tries: map[string]string{"digest s.io/x": "a1.io/x z1.io/x a2.io/x z2.io/x s.io/x"}},
		{name: "the example in OpenShift's own code", in: inputs(set(idms, "vendor2.io", "", "r1.io", "r2.io"), set(idms, "vendor2.io", "", "local.io", "r2.io", "r1.io")),
			tries: map[string]string{"digest vendor2.io/x": "local.io/x r1.io/x r2.io/x vendor2.io/x"}},
		{name: "a path, and a path below it", in: inputs(set(idms, "q.io/lib", "", "m.io/lib"), set(idms, "q.io/lib/busybox", "", "n.io/bb")),
			tries: map[string]string{
				"digest q.io/lib/x": "m.io/lib/x q.io/lib/x", "digest q.io/lib/busybox": "m.io/lib/busybox q.io/lib/busybox", "tag q.io/lib/x": "q.io/lib/x",
			}, reasons: "MirrorNotRepresentable"},
		{name: "ports on both sides", in: inputs(set(itms, "s.io:5000", "", "m.io:6000/o")),
			tries: map[string]string{"tag s.io:5000/x": "m.io:6000/o/x s.io:5000/x", "tag s.io/x": "s.io/x", "tag s.io:50/x": "s.io:50/x"}},
		{name: "a wildcard", in: inputs(set(idms, "*.s.io", "", "m.io")),
			tries: map[string]string{"digest a.s.io/x": "a.s.io/x"}, reasons: "MirrorNotRepresentable"},
		{name: "a wildcard with NeverContactSource", in: inputs(set(idms, "*.s.io", never, "m.io")),
			tries: map[string]string{"digest a.s.io/x": "a.s.io/x"}, reasons: "MirrorNotRepresentable NeverNotKept"},
		{name: "a mirror with another last path segment", in: inputs(set(idms, "s.io/o/a", "", "m.io/o/b")),
			tries: map[string]string{"digest s.io/o/a": "s.io/o/a"}, reasons: "MirrorNotRepresentable", absent: list("s.io")},
		{name: "a mirror without the organization", in: inputs(set(idms, "s.io/o/a", "", "m.io/a")),
			tries: map[string]string{"digest s.io/o/a": "s.io/o/a"}, reasons: "MirrorNotRepresentable"},
		{name: "a mirror in a deeper path", in: inputs(set(idms, "s.io/o/a", "", "m.io/x/y/o/a")),
			tries: map[string]string{"digest s.io/o/a": "m.io/x/y/o/a s.io/o/a"}},
		{name: "a mirror that ends in a part of the segment", in: inputs(set(idms, "s.io/a", "", "m.io/aa")),
			tries: map[string]string{"digest s.io/a": "s.io/a"}, reasons: "MirrorNotRepresentable"},
		{name: "the source is its only mirror", in: inputs(set(idms, "s.io", "", "s.io")), tries: map[string]string{"digest s.io/x": "s.io/x"}, absent: list("s.io")},
		{name: "the source between its mirrors", in: inputs(set(idms, "s.io", "", "a.io", "s.io", "b.io")),
			tries: map[string]string{"digest s.io/x": "a.io/x s.io/x b.io/x s.io/x"}},
		{name: "two mirrors collapse to one endpoint", in: inputs(set(idms, "s.io/a", "", "m.io/o/a"), set(itms, "s.io/b", "", "m.io/o/b")),
			tries: map[string]string{"digest s.io/a/x": "m.io/o/a/x s.io/a/x", "tag s.io/b/x": "m.io/o/b/x s.io/b/x"}},
		{name: "the same mirror for digests and tags", in: inputs(set(idms, "s.io", "", "m.io"), set(itms, "s.io", "", "m.io")),
			tries: map[string]string{"digest s.io/x": "m.io/x s.io/x", "tag s.io/x": "m.io/x s.io/x"}},
		{name: "different mirrors for digests and tags", in: inputs(set(idms, "s.io", "", "d.io"), set(itms, "s.io", "", "t.io")),
			tries: map[string]string{"digest s.io/x": "d.io/x t.io/x s.io/x", "tag s.io/x": "t.io/x s.io/x"}},
		{name: "different orders for digests and tags", in: inputs(set(idms, "s.io", "", "a.io", "b.io"), set(itms, "s.io", "", "b.io", "a.io")),
			tries: map[string]string{"digest s.io/x": "a.io/x b.io/x s.io/x", "tag s.io/x": "a.io/x b.io/x s.io/x"}, reasons: "MirrorOrderNotKept"},
		{name: "two policies for one source", in: inputs(set(idms, "s.io", allow, "m.io"), set(itms, "s.io", never, "n.io")), reasons: "MirrorsRefused"},
		{name: "no policy conflicts with NeverContactSource", in: inputs(set(idms, "s.io", "", "m.io"), set(idms, "s.io", never, "n.io")), reasons: "MirrorsRefused"},
		{name: "no policy agrees with AllowContactingSource", in: inputs(set(idms, "s.io", "", "m.io"), set(icsp, "s.io", "", "n.io"), set(itms, "s.io", allow, "m.io")),
			tries: map[string]string{"digest s.io/x": "m.io/x n.io/x s.io/x", "tag s.io/x": "m.io/x s.io/x"}},
		{name: "NeverContactSource with the source as a mirror", in: inputs(set(idms, "s.io", never, "m.io", "s.io")), reasons: "MirrorsRefused"},
		{name: "NeverContactSource without mirrors", in: inputs(set(idms, "s.io", never)), tries: map[string]string{"digest s.io/x": "s.io/x"}, absent: list("s.io")},
		{name: "NeverContactSource on a part of a registry", in: inputs(set(idms, "s.io", allow, "m.io"), set(idms, "s.io/a", never, "n.io/a")),
			tries: map[string]string{"digest s.io/a/x": "m.io/a/x n.io/a/x", "digest s.io/x": "m.io/x n.io/x", "tag s.io/x": ""}, reasons: "NeverWidened"},
		{name: "NeverContactSource on a part of a registry, partialNever Open", partial: mirrors.Open, in: inputs(set(idms, "s.io", allow, "m.io"), set(idms, "s.io/a", never, "n.io/a")),
			tries: map[string]string{"digest s.io/a/x": "m.io/a/x n.io/a/x s.io/a/x", "tag s.io/x": "s.io/x"}, reasons: "NeverNotKept"},
		{name: "NeverContactSource on a registry, with a part allowed", in: inputs(set(idms, "s.io", never, "m.io"), set(idms, "s.io/a", allow, "n.io/a")),
			tries: map[string]string{"digest s.io/a/x": "m.io/a/x n.io/a/x"}, reasons: "NeverWidened"},
		{name: "docker.io", in: inputs(set(itms, "docker.io", "", "m.io/hub")),
			tries: map[string]string{"tag docker.io/library/x": "m.io/hub/library/x registry-1.docker.io/library/x"}},
		{name: "docker.io with NeverContactSource", in: inputs(set(itms, "docker.io", never, "m.io/hub")), tries: map[string]string{"tag docker.io/library/x": "m.io/hub/library/x"}},
		{name: "docker.io as a mirror", in: inputs(set(itms, "s.io", "", "docker.io/o")), tries: map[string]string{"tag s.io/x": "registry-1.docker.io/o/x s.io/x"}},
		{name: "a part of docker.io", in: inputs(set(itms, "docker.io/library", "", "m.io/library")),
			tries: map[string]string{"tag docker.io/library/x": "m.io/library/x registry-1.docker.io/library/x"}, reasons: "MirrorScopeWidened"},
		{name: "localhost", in: inputs(set(itms, "localhost:5000", "", "m.io")), tries: map[string]string{"tag localhost:5000/x": "m.io/x any://localhost:5000/x"}},
		{name: "sources that differ in case are one host", in: inputs(set(itms, "S.io", "", "M.io"), set(itms, "s.io", "", "n.io")),
			tries: map[string]string{"tag s.io/x": "m.io/x n.io/x s.io/x"}},
		{name: "mirrors that differ in case are one host", in: inputs(set(itms, "s.io", "", "z.io", "M.io", "m.io", "c.io")),
			tries: map[string]string{"tag s.io/x": "z.io/x m.io/x c.io/x s.io/x"}},
		{name: "the source in another case is the source", in: inputs(set(itms, "s.io", never, "S.io", "m.io")), tries: map[string]string{"tag s.io/x": "m.io/x"}},
		{name: "device names of Windows", in: inputs(set(itms, "con", "", "m.io"), set(itms, "nul.local", never, "m.io"), set(itms, "con:5000", "", "m.io")),
			tries: map[string]string{"tag con:5000/x": "m.io/x con:5000/x"}, reasons: "MirrorNotRepresentable MirrorNotRepresentable NeverNotKept", absent: list("con", "nul.local")},
		{name: "a dot at the end of a host", in: inputs(set(itms, "dot.", "", "m.io")), reasons: "MirrorsRefused"},
		{name: "a scheme in the source", in: inputs(set(itms, "docker://s.io", "", "m.io")), reasons: "MirrorsRefused"},
		{name: "a scheme in a mirror", in: inputs(set(itms, "s.io", "", "https://m.io")), reasons: "MirrorsRefused"},
		{name: "a tag in the source", in: inputs(set(itms, "s.io/x:1", "", "m.io")), reasons: "MirrorsRefused"},
		{name: "a wildcard as a mirror", in: inputs(set(itms, "s.io", "", "*.m.io")), reasons: "MirrorsRefused"},
		{name: "an ImageContentSourcePolicy", in: inputs(set(icsp, "s.io", "", "m.io")), tries: map[string]string{"digest s.io/x": "m.io/x s.io/x", "tag s.io/x": "s.io/x"}},
		{name: "an insecure mirror", in: scoped(inputs(set(itms, "s.io", "", "m.io:5000", "n.io")), list("m.io:5000"), nil, nil),
			tries: map[string]string{"tag s.io/x": "any://m.io:5000/x n.io/x s.io/x", "tag m.io:5000/x": "any://m.io:5000/x"}},
		{name: "an insecure mirror on port 80, NeverContactSource", in: scoped(inputs(set(itms, "s.io", never, "m.io:80")), list("m.io:80"), nil, nil),
			tries: map[string]string{"tag s.io/x": "http://m.io:80/x"}},
		{name: "mirrors in an insecure wildcard", in: scoped(inputs(set(itms, "s.io", "", "a.m.io")), list("*.m.io"), nil, nil),
			tries: map[string]string{"tag s.io/x": "any://a.m.io/x s.io/x", "tag a.m.io/x": "a.m.io/x"}, reasons: "InsecureNotRepresentable"},
		{name: "a host that begins with http", in: inputs(set(itms, "httpbin.io", never, "https.io")), tries: map[string]string{"tag httpbin.io/x": "https.io/x"}},

		{name: "NeverContactSource with mirrors for digests only", in: inputs(set(idms, "s.io", never, "a.io", "b.io")),
			tries: map[string]string{"digest s.io/x": "a.io/x b.io/x", "tag s.io/x": ""}},
		{name: "NeverContactSource without a usable mirror", in: inputs(set(idms, "s.io/a", never, "m.io/b")), tries: map[string]string{"digest s.io/a/x": "", "tag s.io/x": ""}, reasons: "MirrorNotRepresentable NeverWidened"},
		{name: "a blocked registry", in: scoped(inputs(), nil, list("s.io"), nil), tries: map[string]string{"digest s.io/x": "", "tag s.io/x": "", "tag t.io/x": "t.io/x"}},
		{name: "a blocked registry with mirrors", in: scoped(inputs(set(itms, "s.io", "", "m.io")), nil, list("s.io"), nil), tries: map[string]string{"tag s.io/x": "m.io/x"}},
		{name: "a blocked mirror", in: scoped(inputs(set(itms, "s.io", "", "m.io", "n.io")), nil, list("m.io"), nil), tries: map[string]string{"tag s.io/x": "n.io/x s.io/x"}},
		{name: "a blocked part", in: scoped(inputs(), nil, list("s.io/a"), nil), tries: map[string]string{"tag s.io/a/x": "s.io/a/x"}, reasons: "BlockNotRepresentable", absent: list("s.io")},
		{name: "a blocked wildcard", in: scoped(inputs(), nil, list("*.s.io"), nil), tries: map[string]string{"tag a.s.io/x": "a.s.io/x"}, reasons: "BlockNotRepresentable"},
		{name: "allowed registries", in: scoped(inputs(set(itms, "s.io", "", "m.io"), set(itms, "t.io", "", "m.io")), nil, nil, list("s.io", "u.io:5000", "docker.io")),
			tries: map[string]string{
				"tag s.io/x": "m.io/x s.io/x", "tag t.io/x": "", "tag u.io:5000/x": "u.io:5000/x", "tag other.io/x": "", "tag docker.io/library/x": "registry-1.docker.io/library/x",
			}},
		{name: "an allowed registry with a port", in: scoped(inputs(), nil, nil, list("s.io:5000")), tries: map[string]string{"tag s.io:5000/x": "s.io:5000/x", "tag s.io/x": ""}},
		{name: "NeverContactSource on a part of a mirror", in: inputs(set(idms, "m.io/a", never, "n.io/a"), set(idms, "s.io", "", "m.io")),
			tries: map[string]string{"digest s.io/x": "m.io/x s.io/x"}, reasons: "NeverNotKept NeverWidened"},
		{name: "a part with the source as first mirror", in: inputs(set(idms, "x.io/a", "", "x.io/a", "m.io/a"), set(idms, "x.io/b", "", "m.io/b")),
			tries: map[string]string{"digest x.io/a/i": "m.io/a/i x.io/a/i"}, reasons: "MirrorOrderNotKept"},
		{name: "an allowed part", in: scoped(inputs(), nil, nil, list("s.io/a")), tries: map[string]string{"tag s.io/b/x": "s.io/b/x", "tag t.io/x": ""}, reasons: "AllowWidened"},
		{name: "an allowed wildcard", in: scoped(inputs(), nil, nil, list("*.s.io")), tries: map[string]string{"tag a.s.io/x": ""}, reasons: "AllowNotRepresentable"},
		{name: "an allowed wildcard, partialNever Open", partial: mirrors.Open, in: scoped(inputs(), nil, nil, list("*.s.io")), tries: map[string]string{"tag a.s.io/x": "a.s.io/x", "tag t.io/x": "t.io/x"}, reasons: "AllowNotRepresentable"},
		{name: "allowed and insecure", in: scoped(inputs(), list("s.io"), nil, list("s.io")), tries: map[string]string{"tag s.io/x": "any://s.io/x"}},
		{name: "allowed and blocked", in: scoped(inputs(), nil, list("s.io"), list("t.io")), reasons: "MirrorsRefused"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkDecided(t, test) })
	}
}

func checkDecided(t *testing.T, test decided) {
	files, findings, err := Render(test.in, stdcmp.Or(test.partial, mirrors.Closed))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(test.reasons), reasons(findings)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s%+v", diff, findings)
	}
	for _, directory := range test.absent {
		if text, found := files[directory]; found {
			t.Errorf("unexpected file %s:\n%s", directory, text)
		}
	}
	root := t.TempDir()
	if err := files.Write(root); err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Sorted(maps.Keys(test.tries)) {
		by, image, _ := strings.Cut(key, " ")
		host, repository, _ := strings.Cut(image, "/")
		want := []string{}
		for _, place := range strings.Fields(test.tries[key]) {
			scheme, rest, found := strings.Cut(place, "://")
			if !found {
				scheme, rest = "https", place
			}
			want = append(want, scheme+"://"+strings.Replace(rest, "/", "/v2/", 1))
		}
		for _, e := range Engines() {
			hosts, err := e.Hosts(Client{Root: root}, host)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, slices.Compact(URLs(hosts, repository, By(by)))); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", e.Version, key, diff)
			}
		}
	}
	complaints.take() // TestPullsMatchOpenShift checks these
}

// reasons returns the reasons of the warnings and errors about mirrors, sorted.
func reasons(findings bundle.Findings) []string {
	list := []string{}
	for _, f := range findings {
		if f.Severity != bundle.SeverityInfo && !strings.HasPrefix(f.Reason, "NodeImage") {
			list = append(list, f.Reason)
		}
	}
	slices.Sort(list)
	if len(list) > 0 && list[0] == "MirrorsRefused" {
		return list[:1] // one finding for each object
	}
	return list
}

// Rendering 3,000 entries takes less than 10 seconds.
func TestManySources(t *testing.T) {
	var sets []mirrors.Set
	for i := range 3000 {
		sets = append(sets, set(idms, fmt.Sprintf("s%d.io/a", i%1000), "", fmt.Sprintf("m%d.io/a", i%7), fmt.Sprintf("n%d.io:5000/o/a", i%3)))
	}
	start := time.Now()
	files, findings, err := Render(inputs(sets...), mirrors.Closed)
	if err != nil || findings.Refused() || len(files) != 1000 {
		t.Fatalf("%d files, %v, %d findings", len(files), err, len(findings))
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("rendering 3000 entries took %s", took)
	}
}

// The order of the objects does not matter, not even where two of them are equally specific.
func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	cases := map[string]mirrors.Inputs{
		"plain": inputs(set(idms, "s.io", "", "z.io", "m.io"), set(idms, "s.io", "", "a.io"), set(itms, "s.io/a", never, "n.io/a"), set(icsp, "t.io", "", "s.io/b")),
		// A name of one letter is as long as the wildcard.
		"name and wildcard":   inputs(set(itms, "*.example.com", never, "m.io"), set(itms, "x.example.com", "", "n.io"), set(itms, "s.io", "", "x.example.com")),
		"upper and lower":     inputs(set(itms, "Q.io", never, "m.io"), set(itms, "q.io", "", "n.io"), set(itms, "s.io", "", "q.io")),
		"mirrors of one case": inputs(set(itms, "s.io", "", "z.io", "M.io", "m.io", "c.io")),
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			first, findings, err := Render(in, mirrors.Closed)
			if err != nil || findings.Refused() {
				t.Fatalf("%v %+v", err, findings)
			}
			for range 30 {
				in.Sets = append(in.Sets[1:len(in.Sets):len(in.Sets)], in.Sets[0])
				files, _, err := Render(in, mirrors.Closed)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(first, files); diff != "" {
					t.Fatalf("(-first +later):\n%s", diff)
				}
			}
		})
	}
}

// The directory of a registry goes with its last set.
func TestLastSetTakesTheDirectoryWithIt(t *testing.T) {
	two, _, err := Render(inputs(set(idms, "s.io", "", "m.io"), set(idms, "t.io", "", "m.io")), mirrors.Closed)
	if err != nil {
		t.Fatal(err)
	}
	one, _, err := Render(inputs(set(idms, "t.io", "", "m.io")), mirrors.Closed)
	if err != nil {
		t.Fatal(err)
	}
	none, _, err := Render(inputs(), mirrors.Closed)
	if err != nil {
		t.Fatal(err)
	}
	got := [][]string{slices.Sorted(maps.Keys(two)), slices.Sorted(maps.Keys(one)), slices.Sorted(maps.Keys(none))}
	if diff := cmp.Diff([][]string{{"s.io", "t.io"}, {"t.io"}, nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
