package resolvers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"wmco/internal/test/registrytest/distribution"
	"wmco/render"
)

// A cluster whose only registry has copies of the relatedImages of the OLM bundle, and the mirror sets for digests that oc-mirror writes with
// them, starts Pods: a node finds its pause image there, and asks no other registry. The image in the registry is one of this test: its digest
// takes the place of the one in the bundle.
func TestRelatedImagesAreAllThatANodePulls(t *testing.T) {
	distribution.NeedRegistry(t)
	pause, err := NewImage("pause")
	if err != nil {
		t.Fatal(err)
	}
	only, n := newStorage(t), newNetwork(t)
	n.registry("mirror.test:5000", trusted, only.plain)
	in, settings := inputs(), render.DefaultSettings()
	for name, image := range relatedImages(t) {
		repository, digest, byDigest := strings.Cut(image, "@")
		if !byDigest || !strings.HasPrefix(digest, "sha256:") {
			t.Errorf("%s is %s: oc-mirror writes mirror sets for digests only for images by digest", name, image)
		}
		_, path, _ := strings.Cut(repository, "/")
		only.push(t, path, name)
		// oc-mirror writes one entry for all images of a folder.
		source := repository[:strings.LastIndex(repository, "/")]
		in.Sets = append(in.Sets, set(idms, source, "", "mirror.test:5000/"+path[:strings.LastIndex(path, "/")]))
		if name == "pause" {
			settings.PauseImage = repository + "@" + pause.Digest().String()
		}
	}
	if settings.PauseImage == render.DefaultPauseImage {
		t.Fatal("the pause image is not one of the relatedImages")
	}
	c := cluster(in, settings.Mirrors)
	c.Settings = settings
	fleet, findings, err := render.NewFleet(c, render.Options{})
	if err != nil || findings.Refused() {
		t.Fatalf("%v %+v", err, findings)
	}
	for _, f := range findings {
		if strings.HasPrefix(f.Reason, "NodeImage") {
			t.Errorf("%s: %s", f.Reason, f.Message)
		}
	}
	b, _, err := fleet.Node(someNode())
	if err != nil {
		t.Fatal(err)
	}
	files, sandbox := Files{}, ""
	for _, f := range b.Files() {
		if rest, ok := strings.CutPrefix(f.Path, registries); ok {
			files[strings.TrimSuffix(rest, `\hosts.toml`)] = string(f.Content.Data)
		}
		if strings.HasSuffix(f.Path, `\containerd_conf.toml`) {
			_, after, _ := strings.Cut(string(f.Content.Data), `sandbox = "`)
			sandbox, _, _ = strings.Cut(after, `"`)
		}
	}
	if sandbox != settings.PauseImage {
		t.Fatalf("containerd's sandbox image is %q, not %q", sandbox, settings.PauseImage)
	}
	for _, e := range Engines() {
		pulled, err := e.Pull(t.Context(), n.client(files), sandbox)
		r := n.take()
		if err != nil || pulled.Digest != pause.Digest() {
			t.Errorf("%s: pulling %s: %v, digest %s", e.Version, sandbox, err, pulled.Digest)
		}
		if r.contacted() != "mirror.test:5000" {
			t.Errorf("%s: asked %s; the cluster has mirror.test:5000 only", e.Version, r.contacted())
		}
	}
}

// relatedImages are those of the reviewed OLM bundle, by name.
func relatedImages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "olm", "golden", "bundle", "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(names) != 1 {
		t.Fatalf("ClusterServiceVersions of the bundle: %v, %v", names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	var csv struct {
		Spec struct {
			RelatedImages []struct{ Name, Image string }
		}
	}
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, i := range csv.Spec.RelatedImages {
		images[i.Name] = i.Image
	}
	return images
}
