// Package golden keeps previews on disk: folders that `wmco render --out` writes, and golden folders, which hold inputs
// and the preview that they are wanted to render to, for review in git.
//
//	golden.yaml  from: the --from list, relative to the folder; facts; payload; nodes (empty for all); acceptedFindings
//	want/        one folder for each group of nodes with the same cluster layer (WantFiles)
package golden

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/render"
	"wmco/render/yamltext"
)

// CaseFile is the name of the file that makes a folder a golden folder.
const CaseFile = "golden.yaml"

// Case is the content of golden.yaml.
type Case struct {
	// From lists files and folders, relative to the case's folder. A later one wins for an object of the same name.
	From []string `json:"from"`
	// Facts is a file of facts, relative to the case's folder.
	Facts string `json:"facts,omitempty"`
	// Payload is a folder that make payload wrote, relative to the case's folder. Without it, executables are named and
	// have no digest.
	Payload string `json:"payload,omitempty"`
	// Nodes are names or addresses; empty means every Windows host of the inputs.
	Nodes []string `json:"nodes,omitempty"`
	// AcceptedFindings are left as they are, beside those of the settings.
	AcceptedFindings []render.AcceptedFinding `json:"acceptedFindings,omitempty"`
	// Strict refuses documents and fields that have no effect. It is not in the file.
	Strict bool `json:"-"`
}

// WantDir returns the folder with the wanted output of a case.
func WantDir(dir string) string { return filepath.Join(dir, "want") }

// PayloadDir returns the folder of the payload; empty where the case has none.
func (c Case) PayloadDir(dir string) string {
	if c.Payload == "" {
		return ""
	}
	return filepath.Join(dir, c.Payload)
}

// ErrRefused means that the inputs have findings of severity error.
var ErrRefused = errors.New("the inputs are refused")

// Load reads golden.yaml of a folder, strictly. A link that leads out of the folder is not followed, because errors
// quote the file.
func Load(dir string) (Case, error) {
	data, err := readCase(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Case{}, fmt.Errorf(
			"%s is no golden folder: it has no %s (fix: write one with the list from, as docs/gitops/README.md shows): %w",
			dir, CaseFile, err,
		)
	}
	if err != nil {
		return Case{}, fmt.Errorf("reading case %q: %w", filepath.Join(dir, CaseFile), err)
	}
	var c Case
	if err := yamltext.UnmarshalStrict(data, &c); err != nil {
		return Case{}, fmt.Errorf("reading case %q: %w", dir, err)
	}
	if len(c.From) == 0 {
		return Case{}, fmt.Errorf("reading case %q: from is empty", dir)
	}
	for _, f := range render.CheckAccepted(c.AcceptedFindings) {
		return Case{}, fmt.Errorf("reading case %q: %s %s", dir, f.Field, f.Message)
	}
	return c, nil
}

func readCase(dir string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read from
	return root.ReadFile(CaseFile)
}

// Read reads the inputs of the case. Paths are relative to dir, and findings name them as the case does. Without a key,
// the digests of secrets are masked.
func (c Case) Read(ctx context.Context, dir string, key bundle.Key) (*desired.Hosts, error) {
	s := desired.Source{
		Objects: objects.NewPathsReaderIn(dir, c.From), Payload: c.PayloadDir(dir), Key: key, Strict: c.Strict,
		Accepted: c.AcceptedFindings, AcceptedIn: CaseFile, RefuseStops: true,
	}
	var err error
	if c.Facts != "" {
		if s.Gather.Facts, err = gather.FactsFile(filepath.Join(dir, c.Facts)); err != nil {
			return nil, err
		}
	}
	return desired.ReadHosts(ctx, s)
}

// Render renders the nodes of the case. With findings of severity error the error is ErrRefused; findings about single
// nodes are left out where those of the cluster refuse it. A node that the inputs do not have, or inputs without any,
// are an error: there is always a bundle.
func (c Case) Render(h *desired.Hosts) ([]desired.Rendered, bundle.Findings, error) {
	if h.Findings.Refused() {
		return nil, h.Findings, ErrRefused
	}
	nodes, err := c.chosen(h)
	if err != nil {
		return nil, nil, err
	}
	list, findings, err := h.RenderBundles(nodes)
	if err == nil && findings.Refused() {
		return nil, findings, ErrRefused
	}
	return list, findings, err
}

// chosen returns the hosts that the case is about.
func (c Case) chosen(h *desired.Hosts) ([]render.Node, error) {
	if len(c.Nodes) == 0 {
		return h.SelectAll()
	}
	nodes, err := h.SelectNamed(c.Nodes)
	if err != nil {
		return nil, fmt.Errorf("nodes of %s: %w", CaseFile, err)
	}
	return nodes, nil
}
