package golden

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"wmco/render"
)

func benchInputs(b *testing.B) (render.Cluster, render.Node) {
	b.Helper()
	h := readAll(b, filepath.Join("cases", "aws"))
	i := slices.IndexFunc(h.All, func(n render.Node) bool { return n.Stage() == "joined" })
	return h.Cluster, h.All[i]
}

// BenchmarkNodeCold renders one node from scratch: both cluster layers and its own. Wanted: at most 5 ms.
func BenchmarkNodeCold(b *testing.B) {
	cluster, node := benchInputs(b)
	for b.Loop() {
		if _, _, err := render.Render(render.Inputs{Cluster: cluster, Node: node}, render.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNodeWarm renders one node when the cluster layer is rendered already. Wanted: at most 1 ms.
func BenchmarkNodeWarm(b *testing.B) {
	cluster, node := benchInputs(b)
	fleet, _, err := render.NewFleet(cluster, render.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := fleet.Node(node); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkThousandNodes renders a cluster of 1,000 Windows nodes. Wanted: at most 0.5 s on one core.
func BenchmarkThousandNodes(b *testing.B) {
	cluster, node := benchInputs(b)
	nodes := make([]render.Node, 1000)
	for i := range nodes {
		n := node
		n.Name = fmt.Sprintf("winworker-%04d", i)
		nodes[i] = n
	}
	for b.Loop() {
		fleet, _, err := render.NewFleet(cluster, render.Options{Key: []byte("bench")})
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range nodes {
			if _, _, err := fleet.Node(n); err != nil {
				b.Fatal(err)
			}
		}
	}
}
