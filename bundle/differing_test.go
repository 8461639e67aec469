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
