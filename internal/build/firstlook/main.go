// Firstlook is the first part of the demonstration: it renders a node of the example cluster and prints what two changes
// of the cluster change on it, as wmco does. It links no client of Kubernetes, so that it is compiled within a minute
// where nothing was compiled before. Its inputs are what wmco reads from golden/clusters (example.json, kept by its
// test).
//
//	go run ./internal/build/firstlook
package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"wmco/bundle"
	"wmco/render"
	"wmco/render/review"
)

func main() {
	if err := showChange(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "firstlook:", err)
		os.Exit(1)
	}
}

// showChange writes the node of the example, and what each change does to it.
func showChange(out io.Writer) error {
	e, err := readExample(exampleJSON)
	if err != nil {
		return err
	}
	before, err := renderNode(e.Cluster.clusterInputs(), e.Node)
	if err != nil {
		return err
	}
	b := before.Bundle
	files := b.Files()
	_, _ = fmt.Fprintf(out, "Node %s of the example cluster is to have %s, %s and %s.\n", before.Name,
		bundle.Count(len(files), "file"), bundle.Count(len(b.Services()), "service"), bundle.Count(len(b.Payload()), "executable"))
	if i := slices.IndexFunc(files, func(f bundle.File) bool { return f.Path == shownFile }); i >= 0 {
		_, _ = fmt.Fprintf(out, "\n# %s\n%s\n", shownFile, files[i].Content.Shown())
	}
	for _, c := range e.Changes {
		after, err := e.changedNode(c)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "\n%s:\n\n%s", c.Title, review.Compare([]review.Node{before}, []review.Node{after}).Text())
	}
	return nil
}

// shownFile is the file of the node that is shown.
const shownFile = `C:\k\containerd\containerd_conf.toml`

// renderNode renders one node. The inputs of the example are accepted.
func renderNode(c render.Cluster, n render.Node) (review.Node, error) {
	b, findings, err := render.Render(render.Inputs{Cluster: c, Node: n}, render.Options{})
	if err != nil {
		return review.Node{}, err
	}
	if findings.Refused() {
		return review.Node{}, fmt.Errorf("rendering the example: %v", findings)
	}
	return review.Node{Name: n.ID(), Address: n.Address, Bundle: b.Bundle, Findings: findings}, nil
}
