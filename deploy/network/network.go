// Package network is the NetworkPolicy of the operator: a manifest, and what the operator creates under OLM.
package network

import (
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed policy.yaml
var manifest []byte

// Policy returns the NetworkPolicy of the operator for the namespace in which it runs.
func Policy(namespace string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON(manifest)
	if err == nil {
		err = u.UnmarshalJSON(text)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the NetworkPolicy of the operator: %w", err)
	}
	u.SetNamespace(namespace)
	return u, nil
}
