package registriesconf

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	"github.com/openshift/runtime-utils/pkg/registries"

	"wmco/render/mirrors"
	"wmco/render/mirrors/mirrorstest"
)

func entry(source string, digests, tags []string, blocked bool) mirrorstest.Entry {
	return mirrorstest.Entry{Source: source, Digests: digests, Tags: tags, Blocked: blocked}
}

// openShift returns the entries that OpenShift's own code writes.
func openShift(t *testing.T, c cluster) []mirrorstest.Entry {
	t.Helper()
	var conf sysregistriesv2.V2RegistriesConf
	if err := registries.EditRegistriesConfig(&conf, nil, nil, c.policies, c.digests, c.tags); err != nil {
		t.Fatalf("EditRegistriesConfig: %v", err)
	}
	var out []mirrorstest.Entry
	for _, r := range conf.Registries {
		e := mirrorstest.Entry{Source: r.Location + r.Prefix, Blocked: r.Blocked}
		for _, m := range r.Mirrors {
			switch m.PullFromMirror {
			case sysregistriesv2.MirrorByDigestOnly:
				e.Digests = append(e.Digests, m.Location)
			case sysregistriesv2.MirrorByTagOnly:
				e.Tags = append(e.Tags, m.Location)
			default:
				t.Fatalf("mirror %s of %s is for %q", m.Location, e.Source, m.PullFromMirror)
			}
		}
		out = append(out, e)
	}
	slices.SortFunc(out, mirrorstest.BySource)
	return out
}

// compare compares the entries and the findings of one cluster with OpenShift's, and returns them.
func compare(t *testing.T, c cluster) (entries []mirrorstest.Entry, refused string) {
	t.Helper()
	entries = openShift(t, c)
	if diff := cmp.Diff(entries, mirrorstest.Entries(c.sets())); diff != "" {
		t.Fatalf("entries (-OpenShift +ours):\n%s\nof %+v", diff, c.sets())
	}
	refused = refusal(c)
	result := mirrors.Build(mirrors.Inputs{Sets: c.sets()}, mirrors.Options{PartialNever: mirrors.Closed})
	if result.Findings.Refused() != (refused != "") {
		t.Fatalf("OpenShift: %q\nours: %+v\nof %+v", refused, result.Findings, c.sets())
	}
	if refused == "" {
		return entries, refused
	}
	if len(result.Files) != 0 {
		t.Fatalf("refused, but files were returned: %+v", result.Files)
	}
	if !mirrorstest.Refuses(result.Findings, refused) {
		t.Fatalf("OpenShift: %q\nours: %+v\nof %+v", refused, result.Findings, c.sets())
	}
	return entries, refused
}

func FuzzMerge(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		f.Add(randomBytes(random))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, clusterFrom(data)) })
}

func randomBytes(random *rand.Rand) []byte {
	data := make([]byte, random.IntN(160))
	for i := range data {
		data[i] = byte(random.UintN(256))
	}
	return data
}

// TestMergeRandomClusters also counts the kinds of clusters, so that a generator that no longer makes them fails.
func TestMergeRandomClusters(t *testing.T) {
	const cases = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	met := map[string]int{}
	for range cases {
		c := clusterFrom(randomBytes(random))
		entries, refused := compare(t, c)
		if refused != "" {
			met["refused"]++
			continue
		}
		met["accepted"]++
		for _, e := range entries {
			for what, is := range map[string]bool{
				"blocked":                 e.Blocked,
				"source among mirrors":    slices.Contains(e.Digests, e.Source) || slices.Contains(e.Tags, e.Source),
				"by digest and by tag":    len(e.Digests) > 0 && len(e.Tags) > 0,
				"four mirrors or more":    len(e.Digests) > 3 || len(e.Tags) > 3,
				"order that no list kept": orderLost(c, e),
			} {
				if is {
					met[what]++
				}
			}
		}
	}
	t.Log(met)
	for _, what := range []string{"refused", "accepted", "blocked", "source among mirrors", "by digest and by tag", "four mirrors or more", "order that no list kept"} {
		if met[what] < cases/100 {
			t.Errorf("%s: only %d of %d", what, met[what], cases)
		}
	}
}

// orderLost reports whether a cycle was broken: some entry has two mirrors in the other order.
func orderLost(c cluster, e mirrorstest.Entry) bool {
	for _, s := range c.sets() {
		list := e.Digests
		if s.Kind == mirrors.TagSet {
			list = e.Tags
		}
		if s.Source != e.Source {
			continue
		}
		for i := 1; i < len(s.Mirrors); i++ {
			first, second := slices.Index(list, s.Mirrors[i-1]), slices.Index(list, s.Mirrors[i])
			if first >= 0 && second >= 0 && first > second {
				return true
			}
		}
	}
	return false
}

const (
	unset = configv1.MirrorSourcePolicy("")
	allow = configv1.AllowContactingSource
	never = configv1.NeverContactSource
)

func byDigest(source string, policy configv1.MirrorSourcePolicy, list ...string) cluster {
	o := &configv1.ImageDigestMirrorSet{}
	o.Spec.ImageDigestMirrors = []configv1.ImageDigestMirrors{{Source: source, Mirrors: imageMirrors(list), MirrorSourcePolicy: policy}}
	return cluster{digests: []*configv1.ImageDigestMirrorSet{o}}
}

func byTag(source string, policy configv1.MirrorSourcePolicy, list ...string) cluster {
	o := &configv1.ImageTagMirrorSet{}
	o.Spec.ImageTagMirrors = []configv1.ImageTagMirrors{{Source: source, Mirrors: imageMirrors(list), MirrorSourcePolicy: policy}}
	return cluster{tags: []*configv1.ImageTagMirrorSet{o}}
}

func byPolicy(source string, list ...string) cluster {
	o := &operatorv1alpha1.ImageContentSourcePolicy{}
	o.Spec.RepositoryDigestMirrors = []operatorv1alpha1.RepositoryDigestMirrors{{Source: source, Mirrors: list}}
	return cluster{policies: []*operatorv1alpha1.ImageContentSourcePolicy{o}}
}

func join(list ...cluster) cluster {
	var out cluster
	for _, c := range list {
		out.digests = append(out.digests, c.digests...)
		out.tags = append(out.tags, c.tags...)
		out.policies = append(out.policies, c.policies...)
	}
	return out
}

// TestVectors compares both with results written by hand. render/mirrors has a copy of the table.
func TestVectors(t *testing.T) {
	for name, c := range map[string]struct {
		cluster cluster
		want    []mirrorstest.Entry
	}{
		"lists that overlap are joined":                 {join(byDigest("s", unset, "a", "b", "c"), byDigest("s", unset, "c", "d", "e")), []mirrorstest.Entry{entry("s", []string{"a", "b", "c", "d", "e"}, nil, false)}},
		"the order of objects does not matter":          {join(byDigest("s", unset, "c", "d", "e"), byDigest("s", unset, "a", "b", "c")), []mirrorstest.Entry{entry("s", []string{"a", "b", "c", "d", "e"}, nil, false)}},
		"one list is not sorted":                        {byDigest("s", unset, "z", "m", "a"), []mirrorstest.Entry{entry("s", []string{"z", "m", "a"}, nil, false)}},
		"unrelated lists are taken in turns":            {join(byDigest("s", unset, "z1", "z2"), byDigest("s", unset, "a1", "a2")), []mirrorstest.Entry{entry("s", []string{"a1", "z1", "a2", "z2"}, nil, false)}},
		"one Never is enough":                           {join(byDigest("s", unset, "a"), byDigest("s", never, "b")), []mirrorstest.Entry{entry("s", []string{"a", "b"}, nil, true)}},
		"a Never for tags is one for digests":           {join(byDigest("s", allow, "a"), byTag("s", never, "b")), []mirrorstest.Entry{entry("s", []string{"a"}, []string{"b"}, true)}},
		"no mirrors, no policy":                         {byDigest("s", never), nil},
		"the source as its only mirror is no mirror":    {byDigest("s", never, "s"), nil},
		"a cycle is broken at the first name":           {join(byPolicy("s", "r1", "r2"), byDigest("s", unset, "local", "r2", "r1")), []mirrorstest.Entry{entry("s", []string{"local", "r1", "r2"}, nil, false)}},
		"a scope in a scope is an entry of its own":     {join(byDigest("q.io/lib", unset, "m.io/lib"), byDigest("q.io/lib/busybox", unset, "n.io/bb")), []mirrorstest.Entry{entry("q.io/lib", []string{"m.io/lib"}, nil, false), entry("q.io/lib/busybox", []string{"n.io/bb"}, nil, false)}},
		"the source between mirrors stays":              {byDigest("s", unset, "a", "s", "b"), []mirrorstest.Entry{entry("s", []string{"a", "s", "b"}, nil, false)}},
		"the source behind its mirrors is left out":     {byDigest("s", unset, "a", "b", "s"), []mirrorstest.Entry{entry("s", []string{"a", "b"}, nil, false)}},
		"a repeated mirror is one":                      {byDigest("s", unset, "a", "a", "b", "a"), []mirrorstest.Entry{entry("s", []string{"a", "b"}, nil, false)}},
		"content source policies are for digests alone": {join(byPolicy("s", "a"), byTag("s", unset, "b")), []mirrorstest.Entry{entry("s", []string{"a"}, []string{"b"}, false)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, openShift(t, c.cluster)); diff != "" {
				t.Errorf("openshift/runtime-utils (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, mirrorstest.Entries(c.cluster.sets())); diff != "" {
				t.Errorf("mirrors.Merge (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusals checks that each message of the machine-config-operator has a finding, and that what it accepts has none.
func TestRefusals(t *testing.T) {
	const conflict = `conflicting mirrorSourcePolicy is set for the same source "s" in imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies`
	for name, c := range map[string]struct {
		cluster cluster
		want    string
	}{
		"nothing":                                 {},
		"unset is Allow":                          {cluster: join(byDigest("s", unset, "a"), byTag("s", allow, "b"))},
		"unset is not Never":                      {join(byDigest("s", unset, "a"), byTag("s", never, "b")), conflict},
		"content source policies allow":           {join(byDigest("s", never, "a"), byPolicy("s", "b")), conflict},
		"an entry without mirrors has a policy":   {join(byDigest("s", never), byDigest("s", allow, "a")), conflict},
		"policies of other spellings are others'": {cluster: join(byDigest("s", never, "a"), byDigest("S", allow, "a"))},
		"Never and the source among mirrors":      {byDigest("s", never, "a", "s"), `cannot set mirrorSourcePolicy: NeverContactSource if the source "s" is one of the mirrors`},
		"Never without mirrors":                   {cluster: byDigest("s", never)},
		"a scheme in a source":                    {byDigest("docker://s", unset, "a"), `invalid format for source "docker://s"`},
		"a tag in a mirror":                       {byTag("s", unset, "a/b:1.0"), `invalid format for mirror "a/b:1.0"`},
		"a wildcard source":                       {cluster: byDigest("*.s", unset, "a")},
		"a wildcard mirror":                       {byPolicy("s", "*.a"), `invalid format for mirror "*.a"`},
		"upper case in a host":                    {cluster: byDigest("S.io/x", unset, "A.io/x")},
		"upper case in a path":                    {byDigest("s.io/X", unset, "a"), `invalid format for source "s.io/X"`},
		"a policy that is none":                   {byDigest("s", "Sometimes", "a"), `"Sometimes" is not a policy`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := compare(t, c.cluster); got != c.want {
				t.Errorf("refusal %q, want %q", got, c.want)
			}
		})
	}
	for _, name := range odd {
		t.Run("odd "+name, func(t *testing.T) {
			compare(t, byDigest(name, unset, "a"))
			compare(t, byTag("s", unset, name))
		})
	}
}
