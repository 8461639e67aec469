package existing

import (
	"regexp"
	"strings"
	"testing"
)

// TestEachGenerationHasItsPlaces: each fact of a generation names its source, once for each thing, and required facts are there.
func TestEachGenerationHasItsPlaces(t *testing.T) {
	place := regexp.MustCompile(`^[a-z_/]+\.go:[1-9][0-9]*$`)
	if len(Generations()) != len(lines{}) {
		t.Fatalf("%d generations, and lines of %d", len(Generations()), len(lines{}))
	}
	for _, g := range Generations() {
		f, err := ReadGeneration(g.Name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, items := range [][]Item{f.Files, f.Services, f.Annotations} {
			for _, item := range items {
				if !place.MatchString(item.Place) || seen[item.Name] {
					t.Errorf("%s: %s is there twice, or its place is %q", g.Name, item.Name, item.Place)
				}
				seen[item.Name] = true
			}
		}
		for _, name := range []string{Agent, agentService, "windows_exporter", "csi-proxy", "kube-proxy", domain + "version", Username} {
			if !seen[name] {
				t.Errorf("%s lacks %s", g.Name, name)
			}
		}
		if !strings.HasPrefix(f.Command(agentService), Agent+" controller ") || !strings.Contains(g.Version, g.Commit) {
			t.Errorf("%+v", f)
		}
	}
	if _, err := ReadGeneration("10.15"); err == nil {
		t.Error("there is a generation before the first one")
	}
}
