package mirrors

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlaces(t *testing.T) {
	set := func(kind SetKind, policy Policy) Inputs {
		return Inputs{Sets: []Set{{Kind: kind, Source: "mcr.microsoft.com", Mirrors: []string{"mirror.example.com:5000/mcr"}, Policy: policy}}}
	}
	const (
		byTag    = "mcr.microsoft.com/oss/kubernetes/pause:3.9"
		digest   = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
		byDigest = "mcr.microsoft.com/oss/kubernetes/pause@" + digest
		mirror   = "https://mirror.example.com:5000/v2/mcr/oss/kubernetes/pause/manifests/"
		source   = "https://mcr.microsoft.com/v2/oss/kubernetes/pause/manifests/"
	)
	for name, tt := range map[string]struct {
		in    Inputs
		image string
		want  []string
	}{
		"no mirrors":                          {Inputs{}, byTag, []string{source + "3.9"}},
		"a mirror for tags":                   {set(TagSet, ""), byTag, []string{mirror + "3.9", source + "3.9"}},
		"a mirror for tags alone":             {set(TagSet, NeverContactSource), byTag, []string{mirror + "3.9"}},
		"a mirror for digests and a tag":      {set(DigestSet, ""), byTag, []string{source + "3.9"}},
		"a mirror for digests":                {set(DigestSet, ""), byDigest, []string{mirror + digest, source + digest}},
		"a tag beside the digest is not used": {Inputs{}, "mcr.microsoft.com/pause:3.9@" + digest, []string{"https://mcr.microsoft.com/v2/pause/manifests/" + digest}},
		"Docker Hub":                          {Inputs{}, "docker.io/library/pause:1", []string{"https://registry-1.docker.io/v2/library/pause/manifests/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range Build(tt.in, Options{}).Places(tt.image) {
				got = append(got, p.Manifest)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
