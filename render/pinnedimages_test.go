package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestPinnedImages are a file of the joined stage, and what cannot be pulled is left out with a finding.
func TestPinnedImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	image := func(name string, field int) PinnedImage {
		return PinnedImage{Name: name, Ref: bundle.Ref{Kind: "PinnedImageSet", Name: "base"}, Field: fmt.Sprintf("spec.pinnedImages[%d].name", field)}
	}
	var many []PinnedImage
	for i := range bundle.MaxPinnedImages + 1 {
		many = append(many, image(fmt.Sprintf("a.example.com/x%03d%s", i, digest), i))
	}
	for name, c := range map[string]struct {
		images   []PinnedImage
		want     []string
		findings []string
	}{
		"none":                   {},
		"sorted, each once":      {images: []PinnedImage{image("b.example.com/x"+digest, 0), image("a.example.com/x"+digest, 1), image("b.example.com/x"+digest, 2)}, want: []string{"a.example.com/x" + digest, "b.example.com/x" + digest}},
		"one by tag":             {images: []PinnedImage{image("a.example.com/x:1", 0), image("a.example.com/x"+digest, 1)}, want: []string{"a.example.com/x" + digest}, findings: []string{"warning PinnedImageLeftOut spec.pinnedImages[0].name"}},
		"only one by tag":        {images: []PinnedImage{image("a.example.com/x:1", 0)}, findings: []string{"warning PinnedImageLeftOut spec.pinnedImages[0].name"}},
		"more than a node takes": {images: many, want: names(many[:bundle.MaxPinnedImages]), findings: []string{fmt.Sprintf("warning PinnedImageLeftOut spec.pinnedImages[%d].name", bundle.MaxPinnedImages)}},
	} {
		cluster := testCluster(bundle.PlatformNone)
		cluster.PinnedImages = c.images
		fleet, findings, err := NewFleet(cluster, Options{})
		if err != nil || fleet == nil {
			t.Fatalf("%s: %v %+v", name, err, findings)
		}
		var texts []string
		for _, f := range findings {
			if f.Object.Kind == "PinnedImageSet" {
				texts = append(texts, strings.Join([]string{string(f.Severity), f.Reason, f.Field}, " "))
			}
		}
		if diff := cmp.Diff(c.findings, texts); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
		b, _, err := fleet.Node(testNode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, imagesIn(t, b.Cluster)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		joining := testNode()
		joining.Name = ""
		if b, _, err = fleet.Node(joining); err != nil || imagesIn(t, b.Cluster) != nil {
			t.Errorf("%s: a host that has no agent yet has images (%v)", name, err)
		}
	}
}

func names(list []PinnedImage) []string {
	var all []string
	for _, p := range list {
		all = append(all, p.Name)
	}
	return all
}

// imagesIn returns the images of the list in a layer.
func imagesIn(t *testing.T, l bundle.Layer) []string {
	t.Helper()
	for _, f := range l.Files {
		if f.Path != bundle.PinnedImagesFile {
			continue
		}
		images, err := bundle.DecodePinnedImages(f.Content.Data)
		if err != nil || f.Impact != bundle.ImpactNone || f.Secret {
			t.Fatalf("%v, impact %q, secret %t", err, f.Impact, f.Secret)
		}
		return images
	}
	return nil
}
