package records

import (
	"fmt"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// BundleRecord is a bundle as a host keeps it: its manifest and what its contents are.
type BundleRecord struct {
	Manifest bundle.Manifest   `json:"manifest"`
	Contents []archive.Content `json:"contents,omitempty"`
}

// ManifestBundle returns the layers of the manifest; a zero bundle where there is none.
func (r BundleRecord) ManifestBundle() bundle.Bundle {
	if len(r.Manifest.Layers) != 2 {
		return bundle.Bundle{}
	}
	return bundle.Bundle{Cluster: r.Manifest.Layers[0].Layer, Node: r.Manifest.Layers[1].Layer}
}

// KnownContents returns its contents by digest.
func (r BundleRecord) KnownContents() plan.Contents {
	k := plan.Contents{}
	for _, c := range r.Contents {
		k[c.Digest] = plan.Content{SHA256: c.SHA256, Size: c.Size}
	}
	return k
}

func (r BundleRecord) checkRecord() error {
	if r.Manifest.Schema == 0 {
		return nil // nothing was applied
	}
	if r.Manifest.Schema > bundle.Schema {
		return &bundle.SchemaError{What: "manifest", Have: r.Manifest.Schema, Want: bundle.Schema}
	}
	if err := r.Manifest.Check(); err != nil {
		return err
	}
	for _, c := range r.Contents {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("%w: %w", bundle.ErrInconsistent, err)
		}
	}
	return plan.CheckRoots(r.ManifestBundle())
}
