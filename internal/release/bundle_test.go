package release

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestImageOfTheOLMBundle(t *testing.T) {
	b := Bundle{Labels: example(t).Labels, Dir: "../../deploy/olm/golden/bundle"}
	dir := filepath.Join(t.TempDir(), "image")
	digest, err := b.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Write(dir); again != digest || err != nil {
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
	// OLM knows a bundle by these labels (operator-registry, docs/design/operator-bundle.md).
	for name, want := range map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1": "registry+v1", "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1": "metadata/", "operators.operatorframework.io.bundle.package.v1": Name,
		"org.opencontainers.image.version": version,
	} {
		if got := config.Config.Labels[name]; got != want {
			t.Errorf("label %s is %q", name, got)
		}
	}
}
