package mirrors

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestKubeletCredentials: a kubelet gets the entries of registries whose images are asked for nowhere else, as they are in the pull secret.
func TestKubeletCredentials(t *testing.T) {
	secret := func(keys ...string) string {
		var pairs []string
		for _, k := range keys {
			pairs = append(pairs, k, encoded("user:"+k))
		}
		return auths(pairs...)
	}
	const all = "quay.io"
	for name, c := range map[string]struct {
		keys     string
		sets     []Set
		scopes   Scopes
		want     string
		withheld []string
	}{
		"no mirrors":                       {keys: "quay.io quay.io/org registry.example.com:5000", want: "quay.io quay.io/org registry.example.com:5000"},
		"what is no registry":              {keys: "cloud.openshift.com quay.io", want: all},
		"another registry has mirrors":     {keys: all, sets: idms("r.io m.io"), want: all},
		"the mirror's own entry":           {keys: "m.io", sets: idms("r.io m.io"), want: "m.io"},
		"the registry has a mirror":        {keys: "quay.io m.io", sets: idms("quay.io m.io"), want: "m.io", withheld: []string{"quay.io"}},
		"a part of it has":                 {keys: "quay.io quay.io/other", sets: idms("quay.io/org m.io/org"), withheld: []string{"quay.io", "quay.io/other"}},
		"a mirror for tags":                {keys: all, sets: itms("quay.io m.io"), withheld: []string{all}},
		"a mirror on the registry itself":  {keys: all, sets: idms("quay.io/org quay.io/mirror/org"), want: all},
		"the same name, another port":      {keys: "r.io r.io:5000", sets: idms("r.io r.io:5000"), want: "r.io:5000", withheld: []string{"r.io"}},
		"a mirror, and the source not":     {keys: all, sets: idms("!quay.io m.io"), withheld: []string{all}},
		"a mirror that is left out":        {keys: all, sets: idms("quay.io/org m.io/other"), want: all},
		"upper case":                       {keys: "QUAY.io", sets: idms("quay.io m.io"), withheld: []string{"QUAY.io"}},
		"a scheme and a version":           {keys: "https://quay.io/v2/", sets: idms("quay.io m.io"), withheld: []string{"https://quay.io/v2/"}},
		"a user in the key":                {keys: "me@quay.io", sets: idms("quay.io m.io"), withheld: []string{"<masked>@quay.io"}},
		"a password in the key":            {keys: "me:p@w@quay.io", sets: idms("quay.io m.io"), withheld: []string{"<masked>@quay.io"}},
		"a query in the key":               {keys: "quay.io?x", sets: idms("quay.io m.io"), withheld: []string{"quay.io?" + bundle.MaskedText}},
		"a key that a kubelet ignores":     {keys: "qu%zzay.io", sets: idms("quay.io m.io")},
		"a wildcard for a mirrored one":    {keys: "*.example.com", sets: idms("a.example.com m.io"), withheld: []string{"*.example.com"}},
		"a wildcard in a name":             {keys: "a*.example.com", sets: idms("abc.example.com m.io"), withheld: []string{"a*.example.com"}},
		"a wildcard for others":            {keys: "*.example.com", sets: idms("a.b.example.com m.io", "example.com m.io"), want: "*.example.com"},
		"a wildcard for another port":      {keys: "*.example.com:5000", sets: idms("a.example.com m.io"), want: "*.example.com:5000"},
		"Docker Hub":                       {keys: "docker.io https://index.docker.io/v1/", sets: idms("docker.io m.io"), withheld: []string{"docker.io", "https://index.docker.io/v1/"}},
		"Docker Hub without mirrors":       {keys: "https://index.docker.io/v1/", sets: idms("quay.io m.io"), want: "https://index.docker.io/v1/"},
		"an insecure registry":             {keys: "r.io", scopes: Scopes{Insecure: []string{"r.io"}}, want: "r.io"},
		"Docker Hub alone is allowed":      {keys: "docker.io", scopes: Scopes{Allowed: []string{"docker.io"}}, want: "docker.io"},
		"other registries are not allowed": {keys: "quay.io r.io", scopes: Scopes{Allowed: []string{"r.io"}}, want: "quay.io r.io"},
	} {
		t.Run(name, func(t *testing.T) {
			in := mirrored(secret(strings.Fields(c.keys)...), "x.io")
			in.Sets, in.Scopes = c.sets, c.scopes
			r := Build(in, Options{PartialNever: Closed, PullSecretOnNodes: true})
			var got, withheld []string
			for _, k := range r.KubeletCredentials {
				got = append(got, k.Key)
				if k.Auth.Reveal() != encoded("user:"+k.Key) {
					t.Errorf("%s has the credentials of another", k.Key)
				}
			}
			for _, f := range r.Findings {
				if f.Reason == reason.PullSecretEntryWithheld {
					withheld = append(withheld, strings.TrimSuffix(strings.TrimPrefix(f.Field, `auths["`), `"]`))
				}
			}
			slices.Sort(got)
			slices.Sort(withheld)
			if diff := cmp.Diff(strings.Fields(c.want), got, cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })); diff != "" {
				t.Errorf("kubelets have (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.withheld, withheld); diff != "" {
				t.Errorf("withheld (-want +got):\n%s", diff)
			}
			if without := Build(in, Options{PartialNever: Closed}); without.KubeletCredentials != nil {
				t.Error("kubelets get credentials without the option")
			}
		})
	}
}

// TestNoEntryOfAMirroredRegistryIsMissed: wherever a kubelet uses an entry for an image, by the table that internal/verify/consumers holds to the real kubelet,
// the entry is withheld if the registry of the image has a mirror.
func TestNoEntryOfAMirroredRegistryIsMissed(t *testing.T) {
	data, err := os.ReadFile("testdata/kubelet-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			t.Fatalf("not a line of the table: %q", line)
		}
		if words[2] != "yes" {
			continue
		}
		used++
		registry, _, _ := strings.Cut(words[1], "/")
		in := mirrored(auths(words[0], encoded("u:p")), "m.io")
		in.Sets = idms(registry + " m.io")
		if r := Build(in, Options{PartialNever: Closed, PullSecretOnNodes: true}); len(r.Files) == 0 || r.KubeletCredentials != nil {
			t.Errorf("kubelets have the entry %s, which they use for %s: %d files", words[0], words[1], len(r.Files))
		}
	}
	if used < 30 {
		t.Errorf("%d lines of the table are about an entry that is used", used)
	}
}
