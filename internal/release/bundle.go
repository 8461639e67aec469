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

// Bundle is the image of an OLM bundle: the folder that make olm-bundle wrote. It runs nothing and is for any platform.
type Bundle struct {
	Labels Labels
	Dir    string
}

// Write makes the image in a folder, as an OCI layout, and returns its digest. The folder is replaced.
func (b Bundle) Write(dir string) (v1.Hash, error) {
	image, err := b.image()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("making the image of the OLM bundle: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": b.Labels.Version})
	if err := written.AppendImage(image, name); err != nil {
		return v1.Hash{}, fmt.Errorf("writing image %q: %w", dir, err)
	}
	return image.Digest()
}

func (b Bundle) image() (v1.Image, error) {
	labels, err := b.labels()
	if err != nil {
		return nil, err
	}
	files, err := filesOf(b.Dir)
	if err != nil {
		return nil, err
	}
	content, err := layer(files, b.Labels.Created, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: b.Labels.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: content, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "OLM bundle"}}); err != nil {
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

// labels are those of every image, and the annotations of the bundle: OLM reads them without the files.
func (b Bundle) labels() (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(b.Dir, "metadata", "annotations.yaml"))
	if err != nil {
		return nil, err
	}
	var bundle struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(data, &bundle); err != nil {
		return nil, fmt.Errorf("reading the annotations: %w", err)
	}
	all := b.Labels.annotations()
	for name, value := range bundle.Annotations {
		all[name] = value
	}
	return all, nil
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
