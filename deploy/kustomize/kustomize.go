// Package kustomize renders the manifests of a folder as `kubectl apply -k` does, with the library that kubectl links.
package kustomize

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the objects in the order in which they are applied: namespaces and definitions first.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(o).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering the kustomization %s: %w", folder, err)
	}
	var list []*unstructured.Unstructured
	for _, r := range built.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", r.CurId(), err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.CurId(), err)
		}
		list = append(list, u)
	}
	return list, nil
}
