package kustomize

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestManifestsOfARelease: every object of the kustomization, and the image of the operator in place of its name.
func TestManifestsOfARelease(t *testing.T) {
	image := "registry.example.com/wmco@sha256:" + strings.Repeat("0", 64)
	data, err := Manifests("..", image)
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(bytes.TrimPrefix(data, []byte("---\n")), []byte("\n---\n"))
	if want := shipped(t); len(documents) != len(want) {
		t.Errorf("%d documents for %d objects", len(documents), len(want))
	}
	images := 0
	for _, d := range documents {
		var object struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal(d, &object); err != nil || object.Kind == "" {
			t.Fatalf("%v: %s", err, d)
		}
		for _, c := range object.Spec.Template.Spec.Containers {
			images++
			if c.Image != image {
				t.Errorf("image %q", c.Image)
			}
		}
	}
	if images != 1 {
		t.Errorf("%d containers", images)
	}
}
