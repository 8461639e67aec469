package olm

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"wmco/deploy/kustomize"
)

var update = flag.Bool("update", false, "rewrite golden/ and fail")

// digest is that of an example.
const digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

func example() Release {
	return Release{
		Version: "0.1.0", Image: "registry.example.com/wmco/operator@" + digest, BundleImage: "registry.example.com/wmco/operator-bundle:v0.1.0",
		PauseImage: "mcr.microsoft.com/oss/kubernetes/pause@" + digest, Repository: "https://wmco.example/wmco",
		Maintainer: "Example maintainers <maintainers@wmco.example>", Created: time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC),
	}
}

func shipped(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	list, err := kustomize.Build("..")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func exampleBundle(t *testing.T) Files {
	t.Helper()
	b, err := Bundle(shipped(t), example())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readFiles returns the files below a folder.
func readFiles(t *testing.T, folder string) Files {
	t.Helper()
	all := Files{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err == nil {
			all[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestGolden(t *testing.T) {
	b := exampleBundle(t)
	c, err := Catalog(b, example())
	if err != nil {
		t.Fatal(err)
	}
	community, err := Community(b, example())
	if err != nil {
		t.Fatal(err)
	}
	for name := range community { // the golden has what differs from the bundle
		if _, same := b[strings.TrimPrefix(name, "operators/"+communityPackage+"/0.1.0/")]; same && !strings.HasSuffix(name, "annotations.yaml") {
			delete(community, name)
		}
	}
	for folder, got := range map[string]Files{"bundle": b, "catalog": c, "community": community} {
		want := filepath.Join("golden", folder)
		if *update {
			if err := got.Write(want); err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s is rewritten; review it and run the test again without -update", want)
			continue
		}
		if diff := cmp.Diff(texts(readFiles(t, want)), texts(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nmake golden rewrites it", want, diff)
		}
	}
}

func texts(f Files) map[string]string {
	all := map[string]string{}
	for name, content := range f {
		all[name] = string(content)
	}
	return all
}

// TestTheCommunityBundleInstallsTheSame: it has other names, and the same objects.
func TestTheCommunityBundleInstallsTheSame(t *testing.T) {
	b := exampleBundle(t)
	community, err := Community(b, example())
	if err != nil {
		t.Fatal(err)
	}
	const folder = "operators/community-windows-machine-config-operator/0.1.0/"
	for name, content := range b {
		if strings.Contains(name, "clusterserviceversion") || strings.HasSuffix(name, "annotations.yaml") {
			continue
		}
		if string(community[folder+name]) != string(content) {
			t.Errorf("%s differs", name)
		}
	}
	var ours, theirs clusterServiceVersion
	for name, into := range map[string]*clusterServiceVersion{Package: &ours, communityPackage: &theirs} {
		files, in := b, "manifests/"
		if name == communityPackage {
			files, in = community, folder+in
		}
		if err := yaml.UnmarshalStrict(files[in+name+".clusterserviceversion.yaml"], into); err != nil {
			t.Fatal(err)
		}
	}
	if theirs.Metadata.Name != "community-windows-machine-config-operator.v0.1.0" || theirs.Spec.DisplayName != "Community Windows Machine Config Operator" || theirs.Metadata.Annotations["olm.skipRange"] != "<0.1.0" {
		t.Errorf("%+v, %s", theirs.Metadata, theirs.Spec.DisplayName)
	}
	if diff := cmp.Diff(ours.Spec.Install, theirs.Spec.Install); diff != "" {
		t.Errorf("what is installed (-ours +community):\n%s", diff)
	}
}

func TestReleasesThatAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Release){
		"an image by tag":             func(r *Release) { r.Image = "registry.example.com/wmco/operator:v0.1.0" },
		"an image without a registry": func(r *Release) { r.Image = "operator@" + digest },
		"a pause image by tag":        func(r *Release) { r.PauseImage = "mcr.microsoft.com/oss/kubernetes/pause:3.9" },
		"a version with a v":          func(r *Release) { r.Version = "v0.1.0" },
		"a maintainer without mail":   func(r *Release) { r.Maintainer = "somebody" },
	} {
		r := example()
		change(&r)
		if _, err := Bundle(shipped(t), r); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A console shows the bundle to users of disconnected clusters by this annotation.
func TestABundleWithoutAPauseImageIsNotForDisconnectedClusters(t *testing.T) {
	for _, pause := range []string{"", example().PauseImage} {
		r := example()
		r.PauseImage = pause
		got := annotations(r, nil, "")["features.operators.openshift.io/disconnected"]
		if want := strconv.FormatBool(pause != ""); got != want {
			t.Errorf("with the pause image %q the annotation is %s, not %s", pause, got, want)
		}
		if got := len(relatedImages(r)) == 3; got != (pause != "") {
			t.Errorf("with the pause image %q the relatedImages are %v", pause, relatedImages(r))
		}
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	policy := &unstructured.Unstructured{}
	policy.SetKind("ValidatingAdmissionPolicy")
	policy.SetName("a")
	if _, err := Bundle(append(shipped(t), policy), example()); !errors.Is(err, ErrKind) {
		t.Errorf("a kind that OLM refuses: %v", err)
	}
	if _, err := Bundle(shipped(t)[:2], example()); err == nil || !strings.Contains(err.Error(), "lack") {
		t.Errorf("manifests without an operator: %v", err)
	}
}

func TestWriteLeavesNothingElse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "bundle")
	for _, f := range []Files{{"a/old.yaml": []byte("1")}, {"b/new.yaml": []byte("2")}} {
		if err := f.Write(folder); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(texts(f), texts(readFiles(t, folder))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
