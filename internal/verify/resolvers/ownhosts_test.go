package resolvers

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/mirrors"
)

// TestCredentialsReachTheirOwnHostsAlone: in random clusters, the real kubelet's code takes the credentials of images from the rendered files, and both
// versions of containerd pull with them through the rendered hosts files. Whatever a place asks for, no request to it, nor to its token server or to a store
// that it redirects to, has a credential of another registry. What `wmco validate --image` lists for a place is what is sent there.
//
// WMCO_PULL_CLUSTERS is their number (30), WMCO_SEED repeats them. One case is left out, as it is the same on Linux: a kubelet has Docker Hub's entry for a
// registry without a domain and port, such as localhost (isDefaultRegistryMatch).
func TestCredentialsReachTheirOwnHostsAlone(t *testing.T) {
	number := func(name string, otherwise uint64) uint64 {
		n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), fmt.Sprint(otherwise)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	seed, count := number("WMCO_SEED", uint64(time.Now().UnixNano())), number("WMCO_PULL_CLUSTERS", 30)
	t.Logf("WMCO_SEED=%d", seed)
	var seen pulls
	for i := range count {
		chance := rand.New(rand.NewPCG(seed, i))
		data := make([]byte, 200)
		for j := range data {
			data[j] = byte(chance.Uint32())
		}
		t.Run(strconv.FormatUint(i, 10), func(t *testing.T) { newPullCase(t, &picks{data}, chance.Uint64()).run(t, &seen) })
	}
	t.Logf("%d clusters: %+v", count, seen)
	// The last one is the number of leaks if kubelets had the whole pull secret. Without any, the test could find none.
	if n := int(count); seen.own < n || seen.mirror == 0 || seen.cloud == 0 || seen.succeeded < n || seen.leaksOfAll == 0 {
		t.Errorf("the clusters do not cover enough: %+v", seen)
	}
}

// pulls counts, so that a test which compares nothing fails: pulls that succeeded, requests with a credential by what it is, and leaks to mirrors that withholding
// has prevented.
type pulls struct{ succeeded, own, mirror, cloud, leaksOfAll int }

// The registries of clouds, each with its platform; they take the place of other registries.
var clouds = []struct {
	platform bundle.Platform
	file     string
	provider string
	patterns []string
	hosts    []string
	// provides are the hosts that the provider has credentials for when it is asked for an image of the host.
	provides func(host string) []string
}{
	{platform: bundle.PlatformNone},
	{
		bundle.PlatformAWS, "ecr-credential-provider.yaml", "ecr-credential-provider", []string{"*.dkr.ecr.*.amazonaws.com", "*.dkr.ecr.*.amazonaws.com.cn"},
		[]string{"012345678901.dkr.ecr.eu-central-1.amazonaws.com", "987654321098.dkr.ecr.eu-central-1.amazonaws.com"}, func(host string) []string { return []string{host} },
	},
	{
		bundle.PlatformAzure, "acr-credential-provider.yaml", "acr-credential-provider", []string{"*.azurecr.io", "*.azurecr.cn"},
		[]string{"one.azurecr.io", "two.azurecr.io"}, func(host string) []string { return []string{host} },
	},
	{
		bundle.PlatformGCP, "gcr-credential-provider.yaml", "gcr-credential-provider", []string{"gcr.io", "*.gcr.io", "*.pkg.dev"},
		[]string{"eu.gcr.io", "europe-docker.pkg.dev"}, func(string) []string { return []string{"gcr.io", "*.gcr.io", "*.pkg.dev"} },
	},
}

// pullCase is one random cluster, with what its registries do.
type pullCase struct {
	seed    uint64
	cloud   int
	cluster render.Cluster
	// passwords are the keys of the pull secret by their passwords; "provider host" are those of the cloud.
	passwords map[string]string
	image     Image
	wire      *wire
}

func newPullCase(t *testing.T, p *picks, seed uint64) *pullCase {
	in, partial := p.inputs()
	c := &pullCase{seed: seed, cloud: p.below(len(clouds)), passwords: map[string]string{}}
	cloud := clouds[c.cloud]
	if len(cloud.hosts) > 0 {
		names := strings.NewReplacer("a.io", cloud.hosts[0], "m.io", cloud.hosts[1])
		for i := range in.Sets {
			in.Sets[i].Source = names.Replace(in.Sets[i].Source)
			for k, m := range in.Sets[i].Mirrors {
				in.Sets[i].Mirrors[k] = names.Replace(m)
			}
		}
		for _, list := range [][]string{in.Scopes.Insecure, in.Scopes.Blocked, in.Scopes.Allowed} {
			for k := range list {
				list[k] = names.Replace(list[k])
			}
		}
	}
	auths := map[string]any{"cloud.openshift.com": map[string]string{"auth": c.auth("cloud.openshift.com")}}
	for range 2 + p.below(7) {
		if key := c.key(p); auths[key] == nil {
			auths[key] = map[string]string{"auth": c.auth(key)}
		}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	in.PullSecret = bundle.NewSecret(string(text))
	c.cluster = cluster(in, render.MirrorSettings{PartialNever: partial})
	c.cluster.Platform = cloud.platform
	if cloud.file != "" {
		file, err := yaml.Marshal(map[string]any{"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": []any{map[string]any{
			"name": cloud.provider, "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "defaultCacheDuration": "10m", "matchImages": cloud.patterns,
		}}})
		if err != nil {
			t.Fatal(err)
		}
		c.cluster.Machine = render.MachineConfig{Providers: map[string]string{cloud.file: string(file)}, Azure: render.AzureIdentity{Managed: true}}
	}
	if c.image, err = NewImage("app"); err != nil {
		t.Fatal(err)
	}
	c.wire = &wire{handler: c.handler}
	return c
}

// auth returns the credentials of a new entry.
func (c *pullCase) auth(key string) string {
	password := fmt.Sprintf("secret-%d-%d", len(c.passwords), c.seed)
	c.passwords[password] = key
	return base64.StdEncoding.EncodeToString([]byte("user:" + password))
}

// key returns a key of a pull secret: for a registry of the inputs, one of its parts, or a wildcard, in all forms.
func (c *pullCase) key(p *picks) string {
	host := p.of(slices.Concat(someSources, someMirrors, clouds[c.cloud].hosts, []string{"other.io"}))
	path := p.of(somePaths)
	switch p.below(12) {
	case 0:
		return "https://" + join(host, path)
	case 1:
		return "https://" + host + "/v1/"
	case 2:
		return join(host, "v2", path)
	case 3:
		return "me@" + host
	case 4:
		_, rest, _ := strings.Cut(host, ".")
		return strings.TrimSuffix("*."+rest, ".")
	case 5:
		return p.of([]string{"*.io", "*.example.com", "*.io:5000", "?.io", "*.*.com", "*.azurecr.io", "*.pkg.dev", "*.dkr.ecr.*.amazonaws.com"})
	case 6:
		return p.of([]string{"https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io", "docker.io/library", "hub.docker.io"})
	case 7:
		return strings.ToUpper(host)
	}
	return join(host, path)
}

// dice returns a number below n that depends on the case and on a text.
func (c *pullCase) dice(n uint64, about string) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, c.seed, about)
	return h.Sum64() % n
}

// handler is the registry, token server or store of a host; nil for none. The token server of a registry has its name, or one of its own.
func (c *pullCase) handler(host string) http.Handler {
	if c.dice(8, "down "+host) == 0 {
		return nil
	}
	registry, _ := strings.CutPrefix(host, "tokens.")
	o := oneImage{image: c.image, asks: []challenge{anonymous, asksBasic, asksToken, asksTokenByGet}[c.dice(4, "asks "+registry)], realm: "https://" + registry + "/token"}
	if c.dice(2, "realm "+registry) == 0 {
		o.realm = "https://tokens." + registry + "/token"
	}
	if c.dice(4, "blobs "+registry) == 0 && host != "store.test" {
		o.blobs = "https://store.test"
	}
	if host == "store.test" {
		o.asks = anonymous
	}
	o.accepts = func(_, password string) bool {
		return c.dice(3, "accepts "+registry+password) > 0 && c.belongs(password, registry)
	}
	if c.dice(5, "lacks "+registry) == 0 {
		o.image = Image{}
	}
	return o
}

// belongs reports whether a password is one for the registry.
func (c *pullCase) belongs(password, registry string) bool {
	key, known := c.passwords[password]
	if pattern, cloud := strings.CutPrefix(key, "provider "); cloud {
		matches, _ := credentialprovider.URLsMatchStr(pattern, registry)
		return matches
	}
	return known && owns(key, registry)
}

// provided returns what the credential provider of the cloud adds for an image, if the rendered configuration lets the kubelet run it. The programs
// themselves are run in TestPullsWithTheIdentityOfACloud.
func (c *pullCase) provided(t *testing.T, config, repository string) credentialprovider.DockerConfig {
	t.Helper()
	var file kubeletv1.CredentialProviderConfig
	if err := yaml.UnmarshalStrict([]byte(config), &file); err != nil {
		t.Fatal(err)
	}
	list := credentialprovider.DockerConfig{}
	for _, p := range file.Providers {
		if slices.ContainsFunc(p.MatchImages, func(pattern string) bool {
			matches, _ := credentialprovider.URLsMatchStr(pattern, repository)
			return matches
		}) {
			host, _, _ := strings.Cut(repository, "/")
			for _, pattern := range clouds[c.cloud].provides(host) {
				password := fmt.Sprintf("token-of-%s-%d", strings.ReplaceAll(pattern, "*", "any"), c.seed)
				c.passwords[password] = "provider " + pattern
				list[pattern] = credentialprovider.DockerConfigEntry{Username: "user", Password: password}
			}
		}
	}
	return list
}

func (c *pullCase) run(t *testing.T, seen *pulls) {
	files, _ := bundleOf(t, c.cluster)
	root := t.TempDir()
	if err := hostsFiles(files).Write(root); err != nil {
		t.Fatal(err)
	}
	own := nodeKeyring(t, files[kubeletConfig])
	all := nodeKeyring(t, c.cluster.Mirrors.PullSecret.Reveal())
	repositories := images(c.cluster.Mirrors)
	for _, i := range rand.New(rand.NewPCG(c.seed, 1)).Perm(len(repositories))[:min(6, len(repositories))] {
		repository := repositories[i]
		keyring := &credentialprovider.BasicDockerKeyring{}
		keyring.Add(nil, c.provided(t, files[`C:\k\credential-provider-config.yaml`], repository))
		for _, image := range []string{repository + ":1", repository + "@" + c.image.Digest().String()} {
			claimed := c.cluster.ImagePulls([]string{image})[0]
			list := lookUp(t, credentialprovider.UnionDockerKeyring{own, keyring}, repository)
			c.checkOrder(t, claimed, list)
			for _, e := range Engines() {
				got, err := pullWith(t, e, c.wire.client(root), image, list)
				if err == nil {
					seen.succeeded++
					if got.Digest != c.image.Digest() {
						t.Errorf("%s: %s has another image", e.Version, image)
					}
				}
				c.check(t, e, claimed, seen)
			}
			// The test finds leaks: with the whole pull secret there are some.
			_, _ = pullWith(t, Engines()[0], c.wire.client(root), image, lookUp(t, all, repository))
			seen.leaksOfAll += len(c.leaks())
			c.wire.sent = nil
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", describeInputs(c.cluster.Mirrors, c.cluster.Settings.Mirrors.PartialNever), slices.Sorted(maps.Values(c.passwords)))
	}
	complaints.take()
}

// given returns the passwords that a request has, in whatever form.
func (c *pullCase) given(s sent) []string {
	var list []string
	for password := range c.passwords {
		if strings.Contains(s.text, password) || strings.Contains(s.text, base64.StdEncoding.EncodeToString([]byte("user:"+password))) {
			list = append(list, password)
		}
	}
	return list
}

// leaks describes the requests with a credential of another registry, or with a token that is none of the registry's.
func (c *pullCase) leaks() []string {
	var list []string
	for _, s := range c.wire.sent {
		registry, _ := strings.CutPrefix(s.host, "tokens.")
		for _, password := range c.given(s) {
			if !c.belongs(password, registry) {
				list = append(list, fmt.Sprintf("%s got the credential of %s", s.host, c.passwords[password]))
			}
		}
		if _, token, found := strings.Cut(s.text, "Bearer token-"); found && strings.TrimSpace(strings.SplitN(token, "\n", 2)[0]) != s.host {
			list = append(list, fmt.Sprintf("%s got the token of another registry", s.host))
		}
	}
	return list
}

// check compares the requests with the law and with what is claimed about the image.
func (c *pullCase) check(t *testing.T, e Engine, claimed render.ImagePull, seen *pulls) {
	t.Helper()
	for _, leak := range c.leaks() {
		t.Errorf("%s: pulling %s: %s", e.Version, claimed.Image, leak)
	}
	for _, s := range c.wire.sent {
		registry, _ := strings.CutPrefix(s.host, "tokens.")
		for _, password := range c.given(s) {
			listed := false
			for _, place := range claimed.Places {
				if strings.HasPrefix(place.URL, "https://"+registry+"/") || strings.HasPrefix(place.URL, "http://"+registry+"/") {
					listed = listed || slices.Contains(place.Credentials, c.source(password))
				}
			}
			if !listed {
				t.Errorf("%s: pulling %s: %s got the credential of %s, which is not in %+v", e.Version, claimed.Image, s.host, c.passwords[password], claimed.Places)
			}
			own, _, _ := strings.Cut(claimed.Image, "/")
			switch {
			case strings.HasPrefix(c.passwords[password], "provider "):
				seen.cloud++
			case hub(registry) == hub(own):
				seen.own++
			default:
				seen.mirror++
			}
		}
	}
	c.wire.sent = nil
}

// source is how ImagePulls names a credential.
func (c *pullCase) source(password string) string {
	key := c.passwords[password]
	if strings.HasPrefix(key, "provider ") {
		return fmt.Sprintf("credential provider %q", clouds[c.cloud].provider)
	}
	if _, host, found := strings.Cut(key, "@"); found {
		key = bundle.MaskedText + "@" + host
	}
	return fmt.Sprintf("entry %q of the pull secret", key)
}

// checkOrder compares the credentials that the kubelet has for an image with those that are claimed for places without their own.
func (c *pullCase) checkOrder(t *testing.T, claimed render.ImagePull, list []credentialprovider.TrackedAuthConfig) {
	t.Helper()
	var want []string
	for _, a := range list {
		if s := c.source(a.Password); !slices.Contains(want, s) {
			want = append(want, s)
		}
	}
	places := mirrors.Build(c.cluster.Mirrors, mirrors.Options{PartialNever: c.cluster.Settings.Mirrors.PartialNever}).Pulls(c.cluster.Mirrors, claimed.Image)
	if len(places) != len(claimed.Places) {
		t.Fatalf("%s: %d places, and %d are claimed", claimed.Image, len(places), len(claimed.Places))
	}
	for i, p := range claimed.Places {
		if places[i].FromKubelet {
			// A kubelet has two entries for one place in any order: it reads them from a map.
			got := slices.Clone(p.Credentials)
			if c.hasEqualKeys() {
				slices.Sort(got)
				slices.Sort(want)
			}
			if diff := gocmp.Diff(want, got, gocmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) })); diff != "" {
				t.Errorf("%s at %s: the kubelet's credentials, and those claimed (-want +got):\n%s", claimed.Image, p.URL, diff)
			}
		}
	}
}

// hasEqualKeys reports whether two keys of the pull secret are one for a kubelet.
func (c *pullCase) hasEqualKeys() bool {
	plain := map[string]bool{}
	for _, key := range c.passwords {
		key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "me@")
		for _, version := range []string{"/v1", "/v2"} {
			if host, rest, found := strings.Cut(key, version); found && !strings.Contains(host, "/") {
				key = host + "/" + strings.TrimPrefix(rest, "/")
			}
		}
		key = strings.Trim(key, "/")
		if plain[key] {
			return true
		}
		plain[key] = true
	}
	return false
}
