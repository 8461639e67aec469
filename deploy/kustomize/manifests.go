package kustomize

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// imageName is the name of the operator's image in deploy.
const imageName = "operator"

// errNoImage is the error for manifests without a container of the operator.
var errNoImage = errors.New("no container has the image " + imageName)

// Manifests returns the objects of a folder as one file for kubectl apply -f, with the image of the operator and the
// addresses of runbooks (SetRunbooks).
func Manifests(folder, image, sources string) ([]byte, error) {
	objects, err := Build(folder)
	if err == nil {
		err = SetRunbooks(objects, sources)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	found := false
	for _, o := range objects {
		set, err := setImage(o, image)
		if err != nil {
			return nil, err
		}
		found = found || set
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	if !found {
		return nil, fmt.Errorf("reading %s: %w", folder, errNoImage)
	}
	return out.Bytes(), nil
}

// setImage gives containers of the operator its image, and reports whether there is one.
func setImage(o *unstructured.Unstructured, image string) (bool, error) {
	path := []string{"spec", "template", "spec", "containers"}
	containers, ok, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !ok || o.GetKind() != "Deployment" {
		return false, err
	}
	set := false
	for _, c := range containers {
		if container, ok := c.(map[string]any); ok && container["image"] == imageName {
			container["image"], set = image, true
		}
	}
	return set, unstructured.SetNestedSlice(o.Object, containers, path...)
}
