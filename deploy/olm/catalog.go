package olm

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// The documents of a file-based catalog (operator-framework.github.io, reference/file-based-catalogs).
type (
	catalogPackage struct {
		Schema         string      `json:"schema"`
		Name           string      `json:"name"`
		DefaultChannel string      `json:"defaultChannel"`
		Description    string      `json:"description"`
		Icon           catalogIcon `json:"icon"`
	}
	catalogIcon struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	}
	catalogChannel struct {
		Schema  string  `json:"schema"`
		Name    string  `json:"name"`
		Package string  `json:"package"`
		Entries []entry `json:"entries"`
	}
	entry struct {
		Name      string `json:"name"`
		SkipRange string `json:"skipRange"`
	}
	catalogBundle struct {
		Schema        string         `json:"schema"`
		Name          string         `json:"name"`
		Package       string         `json:"package"`
		Image         string         `json:"image"`
		Properties    []property     `json:"properties"`
		RelatedImages []relatedImage `json:"relatedImages"`
	}
)

// Catalog returns the files of a catalog with this one bundle.
func Catalog(b Files, r Release) (Files, error) {
	var csv clusterServiceVersion
	if err := yaml.UnmarshalStrict(b["manifests/"+Package+".clusterserviceversion.yaml"], &csv); err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion of the bundle: %w", err)
	}
	documents := []any{catalogPackage{
		"olm.package", Package, channelStable, summary, catalogIcon{base64.StdEncoding.EncodeToString(iconImage), iconType},
	}}
	for _, channel := range []string{channelPreview, channelStable} {
		documents = append(documents, catalogChannel{"olm.channel", channel, Package, []entry{{r.Name(), r.skipRange()}}})
	}
	one := catalogBundle{Schema: "olm.bundle", Name: r.Name(), Package: Package, Image: r.BundleImage, Properties: properties(csv)}
	one.RelatedImages = append(csv.Spec.RelatedImages, relatedImage{"bundle", r.BundleImage})
	var text bytes.Buffer
	for _, d := range append(documents, one) {
		part, err := yaml.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("writing the catalog: %w", err)
		}
		text.WriteString("---\n")
		text.Write(part)
	}
	return Files{"catalog.yaml": text.Bytes()}, nil
}

// properties are what a resolver and a console read without the bundle.
func properties(csv clusterServiceVersion) []property {
	list := []property{{"olm.package", map[string]any{"packageName": Package, "version": csv.Spec.Version}}}
	for _, k := range csv.Spec.Owned.Owned {
		_, group, _ := strings.Cut(k.Name, ".")
		list = append(list, property{"olm.gvk", map[string]any{"group": group, "kind": k.Kind, "version": k.Version}})
	}
	s := csv.Spec
	return append(list, maxOpenShift(), property{"olm.csv.metadata", map[string]any{
		"annotations": csv.Metadata.Annotations, "labels": csv.Metadata.Labels, "apiServiceDefinitions": map[string]any{}, "crdDescriptions": s.Owned,
		"description": s.Description, "displayName": s.DisplayName, "installModes": s.InstallModes, "keywords": s.Keywords, "links": s.Links,
		"maintainers": s.Maintainers, "maturity": s.Maturity, "minKubeVersion": s.MinKubeVersion, "provider": s.Provider,
	}})
}
