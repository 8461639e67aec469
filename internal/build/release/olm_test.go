package release

import (
	"archive/tar"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImagesForOLM(t *testing.T) {
	for _, c := range []struct {
		content Content
		dir     string
		// labels are those by which OLM knows the content (operator-registry, docs/design/operator-bundle.md; file-based catalogs).
		labels map[string]string
		file   string
	}{
		{ContentBundle, "bundle", map[string]string{
			"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1", "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
			"operators.operatorframework.io.bundle.metadata.v1": "metadata/", "operators.operatorframework.io.bundle.package.v1": Name,
		}, "metadata/annotations.yaml"},
		{ContentCatalog, "catalog", map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"}, "configs/catalog.yaml"},
	} {
		t.Run(string(c.content), func(t *testing.T) {
			o := OLM{Labels: example(t).Labels, Dir: filepath.Join("..", "..", "..", "deploy", "olm", "golden", c.dir), Content: c.content}
			c.labels["org.opencontainers.image.version"] = version
			testImageForOLM(t, o, c.labels, c.file)
		})
	}
}

func testImageForOLM(t *testing.T, o OLM, labels map[string]string, file string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	digest, err := o.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := o.Write(dir); again != digest || err != nil {
		t.Errorf("%s, then %s, %v", digest, again, err)
	}
	read, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	image, err := read.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range labels {
		if got := config.Config.Labels[name]; got != want {
			t.Errorf("label %s is %q", name, got)
		}
	}
	files := mutate.Extract(image)
	defer files.Close()
	for in := tar.NewReader(files); ; {
		header, err := in.Next()
		if err != nil {
			t.Fatalf("no %s: %v", file, err)
		}
		if header.Name == file {
			return
		}
	}
}
