package kustomize

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestManifestsOfARelease: every object of the kustomization, and the image of the operator in place of its name.
func TestManifestsOfARelease(t *testing.T) {
	image := "registry.example.com/wmco@sha256:" + strings.Repeat("0", 64)
	data, err := Manifests("..", image, "https://git.example.com/wmco/blob/0.1.0")
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

// TestRunbooksOfARelease: without a place every alert has the path of its page, and with one its address at the release.
func TestRunbooksOfARelease(t *testing.T) {
	image := "registry.example.com/wmco@sha256:" + strings.Repeat("0", 64)
	for sources, want := range map[string]string{"": "runbook_url: ", "https://git.example.com/wmco/blob/0.1.0": "runbook_url: https://git.example.com/wmco/blob/0.1.0/"} {
		data, err := Manifests("..", image, sources)
		if err != nil {
			t.Fatal(err)
		}
		all, right := bytes.Count(data, []byte("runbook_url:")), bytes.Count(data, []byte(want+"docs/runbooks/Windows"))
		if all < 10 || right != all {
			t.Errorf("%q: %d of %d alerts have %s...", sources, right, all, want)
		}
	}
	for _, bad := range []string{"git@git.example.com:wmco", "docs", "http://git.example.com/wmco", "https://"} {
		if _, err := Manifests("..", image, bad); !errors.Is(err, ErrRunbooks) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
