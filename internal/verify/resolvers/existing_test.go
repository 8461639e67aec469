package resolvers

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// existingFiles are the hosts files that the existing operator writes since April 2025 (its pkg/registries), as far as they say
// which mirrors are asked. It knows neither Image/cluster nor ImageContentSourcePolicies, and it sorts.
func existingFiles(in mirrors.Inputs) Files {
	type host struct{ tags bool }
	hosts := map[string]map[string]host{}
	for _, s := range in.Sets {
		source, _, _ := strings.Cut(s.Source, "/")
		if s.Kind == mirrors.ContentSourcePolicy || isWildcard(source) || len(s.Mirrors) == 0 {
			continue
		}
		if hosts[source] == nil {
			hosts[source] = map[string]host{}
		}
		for _, m := range s.Mirrors {
			rest := existingRest(s.Source, m)
			h := hosts[source][rest]
			h.tags = h.tags || s.Kind == mirrors.TagSet
			hosts[source][rest] = h
		}
	}
	files := Files{}
	for source, list := range hosts {
		var text strings.Builder
		fmt.Fprintf(&text, "server = %q\noverride_path = true\n", "https://"+source+"/v2")
		for _, rest := range slices.Sorted(maps.Keys(list)) {
			name, path, _ := strings.Cut(rest, "/")
			capabilities := `["pull"]`
			if list[rest].tags {
				capabilities = `["pull", "resolve"]`
			}
			fmt.Fprintf(&text, "\n[host.%q]\ncapabilities = %s\noverride_path = true\n", "https://"+join(name, "v2", path), capabilities)
		}
		directory := source
		if name, port, found := strings.Cut(source, ":"); found {
			directory = name + "_" + port + "_"
		}
		files[directory] = text.String()
	}
	return files
}

// existingRest returns a mirror without the elements at its end that equal those of the source; the host if the two are equal.
func existingRest(source, mirror string) string {
	if source == mirror {
		return hostOf(mirror)
	}
	a, b := strings.Split(source, "/"), strings.Split(mirror, "/")
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return strings.Join(b[:len(b)-n], "/")
}

// withExistingPlaces returns the inputs with the places where the existing operator's nodes ask as mirrors too, behind the others of their entry, as docs/mirrors.md
// tells people to write them.
func withExistingPlaces(in mirrors.Inputs) mirrors.Inputs {
	in.Sets = slices.Clone(in.Sets)
	for i, s := range in.Sets {
		host, path, _ := strings.Cut(s.Source, "/")
		if s.Kind == mirrors.ContentSourcePolicy || isWildcard(host) {
			continue
		}
		list := slices.Clone(s.Mirrors)
		for _, m := range s.Mirrors {
			if place := join(existingRest(s.Source, m), path); place != s.Source && !slices.Contains(list, place) {
				list = append(list, place)
			}
		}
		in.Sets[i].Mirrors = list
	}
	return in
}

// TestPlacesOfTheExistingOperatorCanBeMirrors: nodes ask every place where the existing operator's files made them ask if it is named as a mirror, unless a finding
// explains why not. Both versions of containerd read all files.
func TestPlacesOfTheExistingOperatorCanBeMirrors(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 8))
	met := map[string]int{}
	for i := range 300 {
		data := make([]byte, 64)
		for j := range data {
			data[j] = byte(chance.Uint32())
		}
		p := picks{data}
		in, partial := p.inputs()
		in.Scopes = mirrors.Scopes{Ref: in.Scopes.Ref}
		t.Run(strconv.Itoa(i), func(t *testing.T) { checkExistingPlaces(t, in, partial, met) })
	}
	t.Logf("%v", met)
	for _, what := range []string{"asked before", "left out with a finding", "the same"} {
		if met[what] < 50 {
			t.Errorf("%s: only %d", what, met[what])
		}
	}
}

func checkExistingPlaces(t *testing.T, in mirrors.Inputs, partial mirrors.PartialNever, met map[string]int) {
	files, findings, err := Render(withExistingPlaces(in), partial)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Engines() {
		now, then := newPlacer(t, e, files), newPlacer(t, e, existingFiles(in))
		for _, image := range images(in) {
			for _, by := range []By{Digest, Tag} {
				all, asked := now.mirrors(image, by), then.mirrors(image, by)
				for _, place := range asked {
					met["asked before"]++
					if slices.Contains(all, place) {
						continue
					}
					met["left out with a finding"]++
					if !slices.ContainsFunc(findings, func(f bundle.Finding) bool { return f.Reason == "MirrorBlocked" && hostOf(f.Field) == hostOf(image) }) {
						t.Errorf("%s: %s by %s: %s was asked, now %v\n%s", e.Version, image, by, place, all, describeInputs(in, partial))
					}
				}
				if len(all) > 0 && cmp.Equal(all, asked) {
					met["the same"]++
				}
			}
		}
	}
}

// placer returns what a containerd asks that has the hosts files below root.
type placer struct {
	t      *testing.T
	engine Engine
	root   string
	hosts  map[string][]Host
}

func newPlacer(t *testing.T, e Engine, f Files) placer {
	t.Helper()
	p := placer{t, e, t.TempDir(), map[string][]Host{}}
	if err := f.Write(p.root); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p placer) read(host string) []Host {
	if hosts, known := p.hosts[host]; known {
		return hosts
	}
	hosts, err := p.engine.Hosts(Client{Root: p.root}, host)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, line := range complaints.take() {
		p.t.Errorf("%s: %s: %s", p.engine.Version, host, line)
	}
	p.hosts[host] = hosts
	return hosts
}

// mirrors returns the places of an image that are not its own registry, each once.
func (p placer) mirrors(image string, by By) []string {
	host, repository, _ := strings.Cut(image, "/")
	places := []string{}
	for _, url := range URLs(p.read(host), repository, by) {
		if _, place := split(url); place != image && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return places
}
