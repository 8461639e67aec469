package release

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// OLM is the image of an OLM bundle or of a file-based catalog: the folder that make olm-bundle wrote. It runs nothing
// and is for any platform.
type OLM struct {
	Labels  Labels
	Dir     string
	Content Content
}

// Content is what an image for OLM holds.
type Content string

// The contents. OLM knows a bundle by labels that repeat its annotations, and finds a catalog by CatalogLabel.
const (
	ContentBundle  Content = "bundle"
	ContentCatalog Content = "catalog"
)

// CatalogLabel names the folder of a catalog in its image
// (olm.operatorframework.io/docs/reference/file-based-catalogs), and CatalogDir is that folder.
const (
	CatalogLabel = "operators.operatorframework.io.index.configs.v1"
	CatalogDir   = "/configs"
)

// Write makes the image in a folder, as an OCI layout, and returns its digest. The folder is replaced.
func (o OLM) Write(dir string) (v1.Hash, error) {
	image, err := o.image()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making the image of the OLM %s: %w", o.Content, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	if err := written.AppendImage(image, layout.WithAnnotations(names(Name+"-"+string(o.Content), o.Labels.Version))); err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	return image.Digest()
}

func (o OLM) image() (v1.Image, error) {
	labels, err := o.labels()
	if err != nil {
		return nil, err
	}
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	content, err := layer(files, o.Labels.Created, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: o.Labels.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: content, MediaType: types.OCILayer, History: v1.History{
		Created: created, CreatedBy: "OLM " + string(o.Content),
	}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created, config.Config = "linux", "amd64", created, v1.Config{Labels: labels}
	return mutate.ConfigFile(image, config)
}

// labels are those of every image, and those that OLM reads without the files.
func (o OLM) labels() (map[string]string, error) {
	all := o.Labels.annotations()
	if o.Content == ContentCatalog {
		all[CatalogLabel] = CatalogDir
		return all, nil
	}
	data, err := os.ReadFile(filepath.Join(o.Dir, "metadata", "annotations.yaml"))
	if err != nil {
		return nil, err
	}
	var bundle struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(data, &bundle); err != nil {
		return nil, fmt.Errorf("reading the annotations: %w", err)
	}
	for name, value := range bundle.Annotations {
		all[name] = value
	}
	return all, nil
}

// files returns the files below the folder, by their paths in the image.
func (o OLM) files() ([]file, error) {
	files, err := filesOf(o.Dir)
	if err != nil || o.Content != ContentCatalog {
		return files, err
	}
	for i := range files {
		files[i].name = inImage(CatalogDir, files[i].name)
	}
	return files, nil
}

// filesOf returns the files below a folder.
func filesOf(dir string) ([]file, error) {
	names, err := namesIn(dir)
	if err != nil {
		return nil, err
	}
	files := make([]file, 0, len(names))
	for _, name := range names {
		files = append(files, file{name: name, mode: modeFile, from: filepath.Join(dir, filepath.FromSlash(name))})
	}
	return files, nil
}
