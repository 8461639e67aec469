package desired

import (
	"slices"
	"testing"

	"wmco/bundle"
	"wmco/payload/sources"
)

// TestTheListOfExecutablesStays on a host, also where a payload is given: no command knows the image of the operator. A list that is rendered, and a bundle of
// another stage, stay as they are.
func TestTheListOfExecutablesStays(t *testing.T) {
	layer := func(stage bundle.Stage, digest string, list string) bundle.Bundle {
		l := bundle.Layer{Stage: stage, Payload: []bundle.Payload{{Path: `C:\k\kubelet.exe`, Digest: bundle.Digest(digest)}}, Files: []bundle.File{{Path: `C:\k\a`}, {Path: `C:\k\z`}}}
		if list != "" {
			l.Files = append(l.Files, bundle.File{Path: sources.File, Content: bundle.Content{Data: []byte(list)}})
			l.Normalize()
		}
		return bundle.Bundle{Cluster: l}
	}
	has := layer(bundle.StageJoined, "of the host", "the operator's")
	for name, c := range map[string]struct {
		want bundle.Bundle
		list string
	}{
		"without a payload": {layer(bundle.StageJoined, "", ""), "the operator's"},
		"with a payload":    {layer(bundle.StageJoined, "other", ""), "the operator's"},
		"with a list":       {layer(bundle.StageJoined, "", "rendered"), "rendered"},
		"a host that joins": {layer(bundle.StageJoin, "", ""), ""},
	} {
		got, list := KeepExecutables(c.want, has), ""
		var paths []string
		for _, f := range got.Cluster.Files {
			if paths = append(paths, f.Path); f.Path == sources.File {
				list = string(f.Content.Data)
			}
		}
		if list != c.list || !slices.IsSorted(paths) || len(c.want.Cluster.Files) > 3 {
			t.Errorf("%s: the list %q, files %q", name, list, paths)
		}
	}
}
