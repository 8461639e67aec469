package bundle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffering(t *testing.T) {
	file := func(path, digest string) File {
		return File{Path: path, Digest: Of([]byte(digest)), Access: AccessUsers, Impact: ImpactNone}
	}
	before := Bundle{
		Cluster: Layer{Files: []File{file(`C:\a`, "1"), file(`C:\b`, "1"), file(`C:\c`, "1")}},
		Node:    Layer{Services: []Service{{Name: "kubelet", Argv: []string{"kubelet"}}, {Name: "proxy"}}},
	}
	after := Bundle{
		Cluster: Layer{Files: []File{file(`C:\b`, "2"), file(`C:\c`, "1"), file(`C:\d`, "1")}},
		Node:    Layer{Services: []Service{{Name: "kubelet", Argv: []string{"kubelet", "--v=2"}}, {Name: "proxy"}}},
	}
	after.Cluster.Files[1].Content.Data = []byte("1") // one side has its contents
	want := []EntryID{`file C:\a`, `file C:\b`, `file C:\d`, "service kubelet"}
	if diff := cmp.Diff(want, Differing(before, after)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Differing(after, after); len(got) > 0 {
		t.Errorf("a bundle differs from itself: %v", got)
	}
}

// TestAReferenceWithoutADigest does not hide which object has changed.
func TestAReferenceWithoutADigest(t *testing.T) {
	settings, operator := Ref{Kind: "ConfigMap", Name: "settings"}, Ref{Kind: "Deployment", Name: "operator", Digest: Of([]byte("c"))}
	side := func(text string) Bundle {
		known := settings
		known.Digest = Of([]byte(text))
		b := Bundle{Cluster: Layer{Variables: []Variable{{Name: "A", Value: text}}}, Provenance: Provenance{KindVariable.ID("A"): {known, operator}}}
		for i := range 20 {
			b.Provenance[KindFile.ID(`C:\`+string(rune('a'+i)))] = []Ref{settings}
		}
		return b
	}
	changes := Diff(side("a"), side("b"))
	if len(changes) != 1 || len(changes[0].Causes) != 1 || changes[0].Causes[0].Name != settings.Name {
		t.Errorf("%+v", changes)
	}
}
