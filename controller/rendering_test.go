package controller

import (
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/controller/desired"
	"wmco/render"
	"wmco/render/reason"
)

// A layer that is too large is that node's alone: the bundles of the others are published.
func TestABundleThatIsTooLargeConcernsOneNode(t *testing.T) {
	node := func(name string, size int) desired.Rendered {
		layer := func(kind bundle.LayerKind, size int) bundle.Layer {
			data := make([]byte, size)
			return bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: []bundle.File{{
				Path: `C:\k\` + name, Digest: bundle.Of(data), Size: int64(size), Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: data},
			}}}
		}
		return desired.Rendered{Node: render.Node{Name: name}, Bundle: render.Bundle{Bundle: bundle.Bundle{Cluster: layer(bundle.LayerCluster, 1), Node: layer(bundle.LayerNode, size)}}}
	}
	var r rendering
	if err := r.pack([]desired.Rendered{node("win-a", 1), node("win-b", 64<<20), node("win-c", 2)}); err != nil {
		t.Fatal(err)
	}
	if len(r.wanted) != 2 || r.wanted[0].Node != "win-a" || r.wanted[1].Node != "win-c" {
		t.Errorf("%d bundles are published", len(r.wanted))
	}
	if len(r.refused) != 1 || r.refused[0].name != "win-b" || r.refused[0].Reason != reason.BundleTooLarge || !strings.Contains(sentence(r.refused[0].Finding), "fix: ") {
		t.Errorf("refused: %+v", r.refused)
	}
}
