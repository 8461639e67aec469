package registriesconf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/containers/image/v5/docker/policyconfiguration"
	"github.com/containers/image/v5/docker/reference"
	"github.com/containers/image/v5/pkg/sysregistriesv2"
	"github.com/containers/image/v5/types"
	"github.com/google/go-cmp/cmp"
	"github.com/openshift/runtime-utils/pkg/registries"

	"wmco/bundle"
	"wmco/gateway/places"
	"wmco/render/mirrors"
)

// linux is what a Linux node has of a cluster: registries.conf, and the lists of which policy.json is made.
type linux struct {
	system *types.SystemContext
	lists  mirrors.Scopes
}

// scopesOf makes the lists of Image/cluster from bytes. Only one of blocked and allowed has entries: the machine-config-operator refuses both.
func scopesOf(g *generator) mirrors.Scopes {
	s := mirrors.Scopes{Ref: bundle.Ref{Kind: "Image", Name: "cluster"}}
	image := func(name string) string {
		if !strings.HasPrefix(name, "*") && strings.Contains(name, "/") && g.below(2) == 0 {
			return name + ":v1"
		}
		return name
	}
	list := func() (out []string) {
		for range g.below(4) {
			name := g.names[g.below(len(g.names))]
			if !strings.HasPrefix(name, "*") && g.below(3) == 0 {
				name += "/sub"
			}
			out = append(out, name)
		}
		return out
	}
	s.Insecure = list()
	switch g.below(3) {
	case 0:
		for _, name := range list() {
			s.Blocked = append(s.Blocked, image(name))
		}
	case 1:
		for _, name := range list() {
			s.Allowed = append(s.Allowed, image(name))
		}
	}
	return s
}

// linuxNode writes what the machine-config-operator would (updateRegistriesConfig and updatePolicyJSON in its
// pkg/controller/container-runtime-config/helpers.go). It returns an error where that refuses.
func linuxNode(t *testing.T, path string, c cluster, s mirrors.Scopes) (linux, error) {
	t.Helper()
	var conf sysregistriesv2.V2RegistriesConf
	if err := registries.EditRegistriesConfig(&conf, s.Insecure, s.Blocked, c.policies, c.digests, c.tags); err != nil {
		return linux{}, err
	}
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(conf); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sysregistriesv2.InvalidateCache()
	none := filepath.Join(filepath.Dir(path), "none")
	return linux{&types.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: none}, s}, nil
}

// allows reports whether policy.json, which the machine-config-operator makes of the lists, accepts an image: its entries are for an image or a
// namespace, and the default is the opposite (signature/policy_eval.go, requirementsForImageRef).
func (l linux) allows(t *testing.T, named reference.Named) bool {
	t.Helper()
	identity, err := policyconfiguration.DockerReferenceIdentity(named)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{identity}, policyconfiguration.DockerReferenceNamespaces(named)...) {
		if slices.Contains(l.lists.Blocked, name) {
			return false
		}
		if slices.Contains(l.lists.Allowed, name) {
			return true
		}
	}
	return len(l.lists.Allowed) == 0
}

// pull returns where containers/image would pull an image from (docker/docker_image_src.go, newImageSource): a place whose own entry is blocked
// fails before a connection is made (docker/docker_client.go, newDockerClient).
// It is false for an image that Linux nodes cannot pull at all, because the name of one of the places is no name.
func (l linux) pull(t *testing.T, image string) (list []string, ok bool) {
	t.Helper()
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	if !l.allows(t, named) {
		return nil, true
	}
	registry, err := sysregistriesv2.FindRegistry(l.system, named.Name())
	if err != nil {
		t.Fatal(err)
	}
	if registry == nil {
		return []string{named.Name() + " false"}, true
	}
	sources, err := registry.PullSourcesFromReference(named)
	if err != nil {
		return nil, false
	}
	for _, s := range sources {
		own, err := sysregistriesv2.FindRegistry(l.system, s.Reference.Name())
		if err != nil {
			t.Fatal(err)
		}
		if own == nil || !own.Blocked {
			list = append(list, fmt.Sprint(s.Reference.Name(), " ", s.Endpoint.Insecure))
		}
	}
	return list, true
}

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// imagesNear returns names in, around and beside the names of a cluster.
func imagesNear(names []string) (list []places.Image) {
	for _, name := range names {
		name = strings.Replace(name, "*", "sub", 1)
		for _, more := range []string{"/img", "/sub/img", "/x/img", "x/img", "/x/y/sub/z"} {
			named, err := reference.ParseNormalizedNamed(name + more) // containerd asks for docker.io/library/img too
			if err != nil {
				continue
			}
			registry, repository, _ := strings.Cut(named.Name(), "/")
			for _, reference := range []string{"v1", "v2", someDigest} {
				list = append(list, places.Image{Registry: registry, Repository: repository, Reference: reference})
			}
		}
	}
	return list
}

// TestPlacesRandomClusters compares where nodes pull images from. WMCO_REFERENCES is how many images it compares at least.
func TestPlacesRandomClusters(t *testing.T) {
	want := 100_000
	if n, err := strconv.Atoi(os.Getenv("WMCO_REFERENCES")); err == nil {
		want = n
	}
	path := filepath.Join(t.TempDir(), "registries.conf")
	random := rand.New(rand.NewPCG(5, 6))
	met := map[string]int{}
	for compared := 0; compared < want; {
		data := randomBytes(random)
		c := clusterFrom(data)
		g := &generator{data: randomBytes(random), names: append([]string{}, good...)}
		random.Shuffle(len(g.names), func(i, j int) { g.names[i], g.names[j] = g.names[j], g.names[i] })
		scopes := scopesOf(g)
		if refusal(c) != "" {
			met["refused"]++
			continue
		}
		in := mirrors.Inputs{Sets: c.sets(), Scopes: scopes}
		node, err := linuxNode(t, path, c, scopes)
		if err != nil {
			met["wildcard source with a scope inside"]++
			continue
		}
		encoded, err := in.GatewayTable().Encode()
		if err != nil {
			t.Fatal(err)
		}
		table, err := places.Decode(encoded)
		if err != nil {
			t.Fatalf("%v\n%s", err, encoded)
		}
		images := imagesNear(append(g.names[:4:4], sourcesOf(c)...))
		if hasTwoPorts(table, images) {
			met["two ports"]++
			continue
		}
		for _, image := range images {
			theirs, ok := node.pull(t, image.String())
			if !ok {
				met["no name"]++
				continue
			}
			compared++
			decision := table.Decide(image)
			var ours []string
			for _, p := range decision.Places {
				ours = append(ours, fmt.Sprint(p.Name(), " ", p.Insecure))
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("%s (-Linux +ours):\n%s\n%s", image, diff, encoded)
			}
			met[fmt.Sprintf("%d places", min(len(ours), 3))]++
			if len(decision.Skipped) > 0 && len(ours) > 0 {
				met["some skipped"]++
			}
		}
	}
	t.Log(met)
	for _, what := range []string{"0 places", "1 places", "2 places", "3 places", "some skipped"} {
		if met[what] < want/500 {
			t.Errorf("%s: only %d of %d", what, met[what], want)
		}
	}
}

func sourcesOf(c cluster) (list []string) {
	for _, s := range c.sets() {
		list = append(list, s.Source)
	}
	return list
}

// hasTwoPorts reports whether a scope is a host without a port of which another name has one: containers/image takes b.io for b.io:5000 too, and says
// that it will not (sysregistriesv2, refMatchingPrefix).
func hasTwoPorts(t places.Table, images []places.Image) bool {
	var names []string
	for _, i := range images {
		names = append(names, i.Registry)
	}
	for _, r := range t.Registries {
		for _, m := range r.Mirrors {
			names = append(names, m.Location)
		}
	}
	return slices.ContainsFunc(t.Registries, func(r places.Registry) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, r.Scope+":") })
	})
}
