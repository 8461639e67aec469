package render

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// TestPinnedImages are a file of the joined stage, and what cannot be pulled is left out with a finding.
func TestPinnedImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	image := func(name string, field int) PinnedImage {
		return PinnedImage{Name: name, Ref: bundle.Ref{Kind: "PinnedImageSet", Name: "base"}, Field: fmt.Sprintf("spec.pinnedImages[%d].name", field)}
	}
	var many []PinnedImage
	for i := range bundle.MaxPinnedImages + 1 {
		many = append(many, image(fmt.Sprintf("a.example.com/x%03d%s", i, digest), i))
	}
	for name, c := range map[string]struct {
		images   []PinnedImage
		want     []string
		findings []string
	}{
		"none":                   {},
		"sorted, each once":      {images: []PinnedImage{image("b.example.com/x"+digest, 0), image("a.example.com/x"+digest, 1), image("b.example.com/x"+digest, 2)}, want: []string{"a.example.com/x" + digest, "b.example.com/x" + digest}},
		"one by tag":             {images: []PinnedImage{image("a.example.com/x:1", 0), image("a.example.com/x"+digest, 1)}, want: []string{"a.example.com/x" + digest}, findings: []string{"warning PinnedImageLeftOut spec.pinnedImages[0].name"}},
		"only one by tag":        {images: []PinnedImage{image("a.example.com/x:1", 0)}, findings: []string{"warning PinnedImageLeftOut spec.pinnedImages[0].name"}},
		"more than a node takes": {images: many, want: names(many[:bundle.MaxPinnedImages]), findings: []string{fmt.Sprintf("warning PinnedImageLeftOut spec.pinnedImages[%d].name", bundle.MaxPinnedImages)}},
	} {
		cluster := testCluster(bundle.PlatformNone)
		cluster.PinnedImages = c.images
		fleet, findings, err := NewFleet(cluster, Options{})
		if err != nil || fleet == nil {
			t.Fatalf("%s: %v %+v", name, err, findings)
		}
		var texts []string
		for _, f := range findings {
			if f.Object.Kind == "PinnedImageSet" {
				texts = append(texts, strings.Join([]string{string(f.Severity), f.Reason, f.Field}, " "))
			}
		}
		if diff := cmp.Diff(c.findings, texts); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
		b, _, err := fleet.Node(testNode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, imagesIn(t, b.Cluster)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		joining := testNode()
		joining.Name = ""
		if b, _, err = fleet.Node(joining); err != nil || imagesIn(t, b.Cluster) != nil {
			t.Errorf("%s: a host that has no agent yet has images (%v)", name, err)
		}
	}
}

// TestCredentialsOfPinnedImages are those of the pull secret for the longest part of a name, of images whose registries are asked, and masked where people
// look.
func TestCredentialsOfPinnedImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	whole, team, hub := encode("whole:secret-1"), encode("team:secret-2"), encode("hub:secret-3")
	cluster := testCluster(bundle.PlatformNone)
	cluster.Mirrors.PullSecretRef = bundle.Ref{Kind: "Secret", Namespace: "openshift-config", Name: "pull-secret"}
	for _, name := range []string{"a.example.com/x", "a.example.com/team/x", "a.example.com/teams/x", "b.example.com/x", "closed.example.com/x", "docker.io/library/x"} {
		cluster.PinnedImages = append(cluster.PinnedImages, PinnedImage{Name: name + digest, Ref: bundle.Ref{Kind: "PinnedImageSet", Name: "base"}})
	}
	cluster.Mirrors.Sets = []mirrors.Set{{Kind: mirrors.DigestSet, Source: "closed.example.com", Mirrors: []string{"mirror.example.com"}, Policy: mirrors.NeverContactSource}}
	render := func() Bundle {
		t.Helper()
		fleet, findings, err := NewFleet(cluster, Options{Key: bundle.Key("key")})
		if err != nil || fleet == nil {
			t.Fatalf("%v %+v", err, findings)
		}
		b, _, err := fleet.Node(testNode())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	find := func(b Bundle) (bundle.File, bool) {
		i := slices.IndexFunc(b.Cluster.Files, func(f bundle.File) bool { return f.Path == bundle.PinnedCredentialsFile })
		if i < 0 {
			return bundle.File{}, false
		}
		return b.Cluster.Files[i], true
	}
	if _, ok := find(render()); ok {
		t.Error("there are credentials, and the cluster has none")
	}
	cluster.Mirrors.PullSecret = bundle.NewSecret(fmt.Sprintf(`{"auths":{"a.example.com":{"auth":%q},"a.example.com/team":{"auth":%q},"https://index.docker.io/v1/":{"auth":%q},"closed.example.com":{"auth":%q},"b.example.com":{"auth":"%%"}}}`,
		whole, team, hub, whole))
	f, ok := find(render())
	if !ok || !f.Secret || f.Access != bundle.AccessAdmins || f.Impact != bundle.ImpactNone {
		t.Fatalf("%t, secret %t, access %q, impact %q", ok, f.Secret, f.Access, f.Impact)
	}
	got, err := bundle.DecodePinnedCredentials(f.Content.Data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.example.com/x": whole, "a.example.com/team/x": team, "a.example.com/teams/x": whole, "docker.io/library/x": hub}
	for name, auth := range want {
		if got[name+digest].Reveal() != auth {
			t.Errorf("%s has not its own credentials", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d images have credentials, want %d", len(got), len(want))
	}
	for _, secret := range []string{whole, team, hub} {
		if strings.Contains(string(f.Content.Preview), secret) || !strings.Contains(string(f.Content.Data), secret) {
			t.Error("a secret is in the preview, or not in the file")
		}
	}
	if f.Digest == bundle.Of(f.Content.Data) {
		t.Error("the digest of a secret can be guessed")
	}
}

func names(list []PinnedImage) []string {
	var all []string
	for _, p := range list {
		all = append(all, p.Name)
	}
	return all
}

// imagesIn returns the images of the list in a layer.
func imagesIn(t *testing.T, l bundle.Layer) []string {
	t.Helper()
	for _, f := range l.Files {
		if f.Path != bundle.PinnedImagesFile {
			continue
		}
		images, err := bundle.DecodePinnedImages(f.Content.Data)
		if err != nil || f.Impact != bundle.ImpactNone || f.Secret {
			t.Fatalf("%v, impact %q, secret %t", err, f.Impact, f.Secret)
		}
		return images
	}
	return nil
}
