package golden

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/controller/inputs/desired"
	"wmco/internal/golden"
)

// key makes the digests of secrets where a case is applied to a host: the same in every run, so that they can be kept.
var key = bundle.Key("the key of no cluster, for tests")

// shipment is the bundle of one node, with all contents that a host may need.
type shipment struct {
	desired.Rendered
	archive.Request
}

// ship renders the one node of a case for a host, once for all cases with the same inputs.
func ship(t testing.TB, dir string, c golden.Case, change change) shipment {
	t.Helper()
	return shipped.get(t, fmt.Sprint(inputsName(dir, c), change == nil), func() shipment { return renderShipment(t, dir, c, change) })
}

// inputsName is the same for cases with the same inputs, also in other folders.
func inputsName(dir string, c golden.Case) string {
	name := fmt.Sprintf("%+v", c)
	for _, path := range append(slices.Clone(c.From), c.Facts, c.Payload) {
		name += " " + filepath.Join(dir, path)
	}
	return name
}

// shipped are shipments by their inputs.
var shipped memo[shipment]

func renderShipment(t testing.TB, dir string, c golden.Case, change change) shipment {
	t.Helper()
	inputs, err := c.Read(t.Context(), dir, key)
	must(t, err)
	list, findings, err := c.Render(inputs)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d nodes, want 1: %v %+v", dir, len(list), err, findings)
	}
	list = change.to(t, list)
	contents, err := desired.PayloadContents(c.PayloadDir(dir))
	must(t, err)
	r, err := list[0].ArchiveRequest(contents)
	must(t, err)
	return shipment{Rendered: list[0], Request: r}
}

// content returns the bytes of a file of the bundle, or of an executable.
func (s shipment) content(path string) ([]byte, error) {
	d := s.digest(path)
	for _, c := range s.Source.Contents() {
		if c.Digest != d {
			continue
		}
		stored, err := s.Source.Open(c.SHA256)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(archive.Decode(stored, c))
		if err != nil {
			return nil, fmt.Errorf("reading content of %s: %w", path, err)
		}
		return data, stored.Close()
	}
	return nil, fmt.Errorf("reading content of %s: the bundle has no such file", path)
}

func (s shipment) digest(path string) bundle.Digest {
	key := bundle.FoldPath(path)
	for _, f := range s.Bundle.Files() {
		if bundle.FoldPath(f.Path) == key {
			return f.Digest
		}
	}
	for _, p := range s.Bundle.Payload() {
		if bundle.FoldPath(p.Path) == key {
			return p.Digest
		}
	}
	return ""
}
