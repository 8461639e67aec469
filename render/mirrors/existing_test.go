package mirrors

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestPlacesOfTheExistingOperator: with existingPaths its places come after the right ones; without, nothing is asked there.
func TestPlacesOfTheExistingOperator(t *testing.T) {
	const asked, left, widened = "info ExistingPathAsked", "warning MirrorNotRepresentable", "info MirrorScopeWidened"
	tests := []struct {
		name          string
		sets          []Set
		scopes        Scopes
		without, with []string
		findings      []string
	}{
		{name: "the same place", sets: idms("q.io/a/b m.io/x/a/b"), without: []string{"q.io: m.io/x"}, with: []string{"q.io: m.io/x"}, findings: []string{widened}},
		{name: "a mirror with less path", sets: idms("q.io/team/app m.io/app"), with: []string{"q.io: m.io"}, findings: []string{left, widened}},
		{name: "a mirror with another path", sets: itms("q.io/team/app m.io:5000/tools/shell"), with: []string{"q.io: m.io:5000/tools/shell+t"}, findings: []string{left, widened, "info TagMirrorServesDigests"}},
		{name: "a mirror that ends in the host of the source", sets: idms("q.io z.io/q.io"), without: []string{"q.io: z.io/q.io"}, with: []string{"q.io: z.io/q.io z.io"}, findings: []string{asked}},
		{name: "after the right ones, by name", sets: idms("q.io/a z.io/a y.io/b x.io/c w.io/a"), without: []string{"q.io: z.io w.io"}, with: []string{"q.io: z.io w.io x.io/c y.io/b"}, findings: []string{left, widened}},
		{name: "a right place of another source stays where it is", sets: idms("q.io/a m.io/a n.io/a", "q.io/b m.io/x"), without: []string{"q.io: m.io n.io"}, with: []string{"q.io: m.io n.io m.io/x"}, findings: []string{left, widened}},
		{name: "NeverContactSource", sets: idms("!q.io/a m.io/b"), without: []string{"q.io: server=q.io(push)"}, with: []string{"q.io: server=m.io/b m.io/b"}, findings: []string{left, widened, "warning NeverWidened"}},
		{name: "the registry of the source", sets: idms("!q.io/a/b q.io/b m.io/a/b"), without: []string{"q.io: server=m.io m.io"}, with: []string{"q.io: server=m.io m.io"}, findings: []string{left, widened, "warning NeverWidened"}},
		{name: "an ImageContentSourcePolicy", sets: sets(ContentSourcePolicy, []string{"q.io/a m.io/b"}), findings: []string{left}},
		{name: "a wildcard", sets: idms("*.q.io m.io/b"), findings: []string{left}},
		{name: "a blocked mirror", sets: idms("q.io/a m.io/b"), scopes: Scopes{Blocked: []string{"m.io/b"}}, findings: []string{"info MirrorBlocked", "warning BlockNotRepresentable"}},
		{name: "a blocked mirror whose place is not blocked", sets: idms("q.io/team/app m.io/other/app"), scopes: Scopes{Blocked: []string{"m.io/other/app"}}, findings: []string{"info MirrorBlocked", "warning BlockNotRepresentable"}},
		{name: "a blocked place", sets: idms("q.io/a m.io/b"), scopes: Scopes{Blocked: []string{"m.io/b/a"}}, findings: []string{"info MirrorBlocked", left, "warning BlockNotRepresentable"}},
		{name: "an insecure place", sets: idms("q.io/a m.io/b"), scopes: Scopes{Insecure: []string{"m.io"}}, without: []string{"m.io: server=http://m.io+t~"}, with: []string{"m.io: server=http://m.io+t~", "q.io: http://m.io/b~"}, findings: []string{left, widened}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := Inputs{Sets: test.sets, Scopes: test.scopes}
			if diff := cmp.Diff(test.without, show(Build(in, Options{PartialNever: Closed}).Files)); diff != "" {
				t.Errorf("without (-want +got):\n%s", diff)
			}
			r := Build(in, Options{PartialNever: Closed, ExistingPaths: true})
			if diff := cmp.Diff(test.with, show(r.Files)); diff != "" {
				t.Errorf("with (-want +got):\n%s", diff)
			}
			got := reasons(r.Findings)
			slices.Sort(got)
			slices.Sort(test.findings)
			if diff := cmp.Diff(test.findings, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%+v", diff, r.Findings)
			}
		})
	}
}

// TestFindingNamesThePlaceOfTheExistingOperator: a mirror that is left out says where nodes asked before, and how to leave that.
func TestFindingNamesThePlaceOfTheExistingOperator(t *testing.T) {
	const leftOut = `mirror m.io/tools/shell of q.io/team/app is left out: containerd on Windows appends the whole path of the image, so a mirror must end in "/team/app"`
	const place, mirrorAgain = "m.io/tools/shell/team/app", "mirror to <registry>/<any path>/team/app"
	for name, c := range map[string]struct {
		sets []Set
		with bool
		want []string
	}{
		"without the setting": {idms("q.io/team/app m.io/tools/shell"), false, []string{leftOut, mirrorAgain + "; if nodes of the existing operator pulled from " + place + ", mirrors.existingPaths: true asks there"}},
		"with it":             {idms("q.io/team/app m.io/tools/shell"), true, []string{leftOut + "; " + place + " is asked instead, as by the existing operator's nodes", mirrorAgain + ", then remove mirrors.existingPaths"}},
		"a kind that the existing operator does not read": {sets(ContentSourcePolicy, []string{"q.io/team/app m.io/tools/shell"}), true, []string{leftOut, mirrorAgain}},
	} {
		var got []string
		for _, f := range Build(Inputs{Sets: c.sets}, Options{PartialNever: Closed, ExistingPaths: c.with}).Findings {
			if f.Reason == reason.MirrorNotRepresentable {
				got = append(got, f.Message, f.Fix)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The credentials of such a place are those of the place, not those of the mirror that stands in the object.
func TestCredentialsOfAPlaceOfTheExistingOperator(t *testing.T) {
	in := Inputs{Sets: idms("q.io/team/app m.io/tools"), PullSecret: bundle.NewSecret(`{"auths": {"m.io": {"username": "u", "password": "host"}, "m.io/tools/team": {"username": "u", "password": "place"}}}`)}
	files := Build(in, Options{PartialNever: Closed, ExistingPaths: true}).Files
	if len(files) != 1 || len(files[0].Hosts) != 1 {
		t.Fatalf("%+v", files)
	}
	if got, _ := decodeBase64(strings.TrimPrefix(files[0].Hosts[0].Authorization.Reveal(), "Basic ")); got != "u:place" {
		t.Errorf("credentials %q", got)
	}
}
