package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/review"
)

// mirrorsPage is a review in which as many objects make a file each, and two are behind all of them. Each node is a group of its own, because
// its own Node changes a service.
func mirrorsPage(nodes, objects int) Page {
	kinds := []string{"ImageDigestMirrorSet", "ImageTagMirrorSet", "MachineConfig"}
	var changes bundle.Changes
	for i := range objects {
		changes = append(changes, bundle.Change{
			Entry: bundle.KindFile.ID(fmt.Sprintf(`C:\k\containerd\registries\mirror-%03d.example.com\hosts.toml`, i)), Action: bundle.ActionAdd, Impact: bundle.ImpactNone,
			Causes:    []bundle.Ref{{Kind: kinds[i%len(kinds)], Name: fmt.Sprintf("mirror-%03d", i)}, {Kind: "Image", Name: "cluster"}, {Kind: "Secret", Namespace: "openshift-config", Name: "pull-secret"}},
			AfterText: []byte("server = \"https://example.com\"\n"),
		})
	}
	r := review.Review{}
	for i := range nodes {
		own := bundle.Change{Entry: bundle.KindService.ID("kubelet"), Action: bundle.ActionChange, Impact: bundle.ImpactDrain, Restarts: []string{"kubelet"}, Causes: []bundle.Ref{{Kind: "Node", Name: nodeName(i)}}}
		r.Groups = append(r.Groups, review.Group{Nodes: []string{nodeName(i)}, Impact: bundle.ImpactDrain, Restarts: own.Restarts, Changes: append(bundle.Changes{own}, changes...)})
	}
	return Page{Title: "Mirrors", Review: &r}
}

// drawn are the arrows of a picture, in words.
func drawn(p causesPicture) []string {
	var list []string
	for _, b := range p.Boxes {
		for _, to := range b.to {
			list = append(list, b.kind+" "+b.Label+" -> "+to.kind+" "+to.Label)
		}
	}
	slices.Sort(list)
	return list
}

func TestObjectsPointToWhatTheyChange(t *testing.T) {
	v := diffPage(t).viewOf(t)
	got := drawn(v.Causes.Picture)
	want := []string{
		"Proxy cluster -> environment ~ proxy", "Proxy cluster -> variable + HTTPS_PROXY", "Proxy cluster -> variable + HTTP_PROXY", "Proxy cluster -> variable + NO_PROXY",
		"environment ~ proxy -> services restarts containerd", "environment ~ proxy -> services restarts csi-proxy", "environment ~ proxy -> services restarts hybrid-overlay-node",
		"environment ~ proxy -> services restarts kube-proxy", "environment ~ proxy -> services restarts kubelet", "environment ~ proxy -> services restarts windows-i…tance-config-daemon",
		"environment ~ proxy -> services restarts windows_exporter", "variable + HTTPS_PROXY -> nodes no restart", "variable + HTTP_PROXY -> nodes no restart", "variable + NO_PROXY -> nodes no restart",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrows (-want +got):\n%s", diff)
	}
	for _, b := range v.Causes.Picture.Boxes {
		if b.Anchor == "" || b.column == entryColumn && !strings.HasSuffix(b.Title, " on 6 nodes") {
			t.Errorf("%s leads to %q and says %q", b.Label, b.Anchor, b.Title)
		}
	}
}

// What nodes have comes from objects, too; entries that are neither files nor services lead to those of their kind.
func TestObjectsPointToWhatTheyMake(t *testing.T) {
	p := renderPage(t)
	v := p.viewOf(t)
	got := drawn(v.Causes.Picture)
	for _, want := range []string{"Proxy cluster -> environment proxy", "Infrastructure cluster -> service hybrid-overlay-node", `ControllerConfig machine-config-controller -> file C:\k\ca-bundle.crt`} {
		if !slices.Contains(got, want) {
			t.Errorf("no arrow %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
	for _, b := range v.Causes.Picture.Boxes {
		if b.Anchor == "" || b.column == effectColumn {
			t.Errorf("%s %s leads to %q", b.kind, b.Label, b.Anchor)
		}
	}
}

// A picture of a thousand nodes and many objects is no larger than people can read, and counts what it leaves out.
func TestPicturesOfCausesStayReadable(t *testing.T) {
	p := mirrorsPage(1000, 200)
	v := p.viewOf(t)
	checkReadable(t, v.Causes.Picture)
	if text := htmlOf(t, p); len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
	if len(v.Changes.Groups) != 1 || len(v.Changes.Groups[0].Nodes) != 1000 {
		t.Errorf("%d groups", len(v.Changes.Groups))
	}
	if v.Causes.Count != 1202 || v.Causes.More != 1202-mostObjects || !strings.Contains(v.Causes.Picture.Text, "1202 objects, next to it 201 entries") {
		t.Errorf("%d objects, %d more, %s", v.Causes.Count, v.Causes.More, v.Causes.Picture.Text)
	}
	got := map[string]int{}
	for _, b := range v.Causes.Picture.Boxes {
		got[b.kind]++
		if n := 0; b.Class == "more" {
			if _, err := fmt.Sscanf(b.Label, "and %d more", &n); err != nil || b.Anchor != "objects" {
				t.Errorf("%q leads to %q", b.Label, b.Anchor)
			}
			got[b.kind] += n - 1
		}
	}
	want := map[string]int{"ImageDigestMirrorSet": 67, "ImageTagMirrorSet": 67, "MachineConfig": 66, "Image": 1, "Secret": 1, "Node": 1000, "file": 200, "service": 1, "services": 1, "nodes": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parts by kind (-want +got):\n%s", diff)
	}
	if !slices.Contains(drawn(v.Causes.Picture), `ImageDigestMirrorSet mirror-000 -> file + …mirror-000.example.com\hosts.toml`) {
		t.Errorf("files cannot be told apart:\n%s", strings.Join(drawn(v.Causes.Picture), "\n"))
	}
}

// Where everything causes everything, kinds are drawn; of many kinds, the first ones.
func TestDensePicturesAreOfKinds(t *testing.T) {
	var causes []bundle.Ref
	for i := range 200 {
		causes = append(causes, bundle.Ref{Kind: fmt.Sprintf("Kind%02d", i%20), Name: fmt.Sprint(i)})
	}
	var changes bundle.Changes
	for i := range 100 {
		changes = append(changes, bundle.Change{Entry: bundle.KindFile.ID(fmt.Sprint(i)), Action: bundle.ActionRemove, Impact: bundle.ImpactNone, Causes: causes})
	}
	got := Page{Review: &review.Review{Groups: []review.Group{{Nodes: []string{"a"}, Impact: bundle.ImpactNone, Changes: changes}}}}.viewOf(t).Causes.Picture
	checkReadable(t, got)
	want := []string{"file 100 of them -> nodes no restart", "other kinds 80 of them -> file 100 of them"}
	for i := range mostKinds {
		want = append(want, fmt.Sprintf("Kind%02d 10 of them -> file 100 of them", i))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("arrows (-want +got):\n%s", diff)
	}
}

// An entry that is new on one node and gone on another one has changed; what no object causes is there without one.
func TestEntriesOfSeveralGroupsAreOneBox(t *testing.T) {
	proxy := []bundle.Ref{{Kind: "Proxy", Name: "cluster"}}
	change := func(action bundle.Action, causes []bundle.Ref) bundle.Change {
		return bundle.Change{Entry: bundle.KindFile.ID("a"), Action: action, Impact: bundle.ImpactNone, Causes: causes}
	}
	r := review.Review{Groups: []review.Group{
		{Nodes: []string{"x", "y"}, Impact: bundle.ImpactNone, Changes: bundle.Changes{change(bundle.ActionAdd, proxy)}},
		{Nodes: []string{"z"}, Impact: bundle.ImpactNone, Changes: bundle.Changes{change(bundle.ActionRemove, proxy), {Entry: bundle.KindFile.ID("b"), Action: bundle.ActionAdd, Impact: bundle.ImpactReboot}}},
	}}
	got := Page{Review: &r}.viewOf(t).Causes.Picture
	want := []string{"Proxy cluster -> file ~ a", "file + b -> nodes drains and reboots the node", "file ~ a -> nodes no restart"}
	if diff := cmp.Diff(want, drawn(got)); diff != "" {
		t.Errorf("arrows (-want +got):\n%s", diff)
	}
	for _, b := range got.Boxes {
		if b.Label == "~ a" && b.Title != "file a: changed on 3 nodes" || b.Label == "no restart" && b.Title != "no restart: 3 nodes" {
			t.Errorf("%s: %s", b.Label, b.Title)
		}
	}
}

func checkReadable(t *testing.T, p causesPicture) {
	t.Helper()
	rows := map[int]int{}
	for _, b := range p.Boxes {
		rows[b.column]++
		if b.X < 0 || b.Y < headHeight || b.X+b.Width > p.Width || b.Y+b.Height > p.Height {
			t.Errorf("%s is outside: %+v", b.Label, b)
		}
		for _, o := range p.Boxes {
			if o.X == b.X && o.Y > b.Y && o.Y < b.Y+b.Height {
				t.Errorf("%s is on %s", o.Label, b.Label)
			}
		}
	}
	if arrows := len(drawn(p)); arrows > mostArrows || rows[objectColumn] > mostBoxes || rows[entryColumn] > mostBoxes || rows[effectColumn] > mostBoxes {
		t.Errorf("%d arrows, %v boxes by column", arrows, rows)
	}
	if p.Width > 1300 || p.Height > 1300 {
		t.Errorf("%d wide, %d high", p.Width, p.Height)
	}
}
