package mirrors

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle/reason"
)

// TestFindingNamesThePlaceOfTheExistingOperator: a finding about an omitted mirror names the location of the existing operator's nodes, and that
// location is asked where it is named as a mirror too.
func TestFindingNamesThePlaceOfTheExistingOperator(t *testing.T) {
	leftOut := func(mirror string) string {
		return "mirror " + mirror + ` of q.io/team/app is left out: containerd on Windows appends the whole path of the image, so a mirror must end in "/team/app"`
	}
	const mirrorAgain = "mirror to <registry>/<any path>/team/app"
	for name, c := range map[string]struct {
		kind          SetKind
		mirror, place string
		files         []string
	}{
		"a mirror with less path":                         {DigestSet, "m.io/app", "m.io/team/app", []string{"q.io: m.io"}},
		"a mirror with another path":                      {TagSet, "m.io:5000/tools/shell", "m.io:5000/tools/shell/team/app", []string{"q.io: m.io:5000/tools/shell+t"}},
		"a kind that the existing operator does not read": {ContentSourcePolicy, "m.io/tools/shell", "", nil},
	} {
		want := []string{leftOut(c.mirror), mirrorAgain}
		if c.place != "" {
			want[1] += "; if nodes of the existing operator pulled from " + c.place + ", name that as a mirror too"
		}
		want[1] += fixExact
		var got []string
		for _, f := range Build(Inputs{Sets: sets(c.kind, []string{"q.io/team/app " + c.mirror})}, Options{PartialNever: Closed}).Findings {
			if f.Reason == reason.MirrorNotRepresentable {
				got = append(got, f.Message, f.Fix)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if c.place == "" {
			continue
		}
		named := Build(Inputs{Sets: sets(c.kind, []string{"q.io/team/app " + c.mirror + " " + c.place})}, Options{PartialNever: Closed})
		if diff := cmp.Diff(c.files, show(named.Files)); diff != "" {
			t.Errorf("%s, with its place as a mirror (-want +got):\n%s", name, diff)
		}
	}
}
