package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"wmco/controller/inputs/desired"
	"wmco/internal/cli"
	"wmco/internal/golden"
	"wmco/render/review"
	"wmco/report/fleet"
	"wmco/report/page"
)

// writePage writes a page. Control characters are escaped as in other answers: a name cannot show itself in another order.
func writePage(w io.Writer, p page.Page) error {
	text, err := p.HTML()
	if err != nil {
		return err
	}
	return cli.PrintText(w, text)
}

// isPage reports whether a name of --out is that of a page.
func isPage(name string) bool {
	end := strings.ToLower(filepath.Ext(name))
	return end == ".html" || end == ".htm"
}

// reviewPage is a review as a page.
func reviewPage(r reviewed, nodes []review.Node) page.Page {
	return page.Page{Title: "Changes of Windows nodes", Review: &r.Review, Forecast: r.Rollout, Nodes: nodes}
}

// statusPage is the fleet as a page.
func (f *statusFlags) statusPage(a app, now fleet.Fleet) page.Page {
	return page.Page{Title: "Windows nodes", At: f.at(a), Fleet: &now}
}

// writePage writes what nodes should have as a page.
func (f *renderFlags) writePage(a app, bundles []desired.Rendered, nodes page.Page) error {
	out, err := os.OpenFile(f.out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	nodes.Title, nodes.Nodes = "What Windows nodes should have", golden.Reviewed(bundles)
	err = writePage(out, nodes)
	if closing := out.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	wrote(a, len(bundles), f.out)
	return nil
}
