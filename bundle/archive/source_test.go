package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func TestManifestNeedsEachContentOnce(t *testing.T) {
	preview := example()
	preview.Cluster.Files[3].Digest = bundle.Masked
	tests := map[string]struct {
		bundle bundle.Bundle
		want   []string
	}{
		"nothing":                       {holding(), nil},
		"everything":                    {example(), []string{"a", "", "kubelet", "der", "node"}},
		"a preview, as far as it tells": {preview, []string{"a", "", "kubelet", "der", "node"}},
	}
	secrets := map[string][]bundle.Digest{
		"everything":                    {key.Of([]byte("a")), key.Of([]byte("http://u:p@proxy")), key.Of([]byte("https://u:p@proxy"))},
		"a preview, as far as it tells": {key.Of([]byte("http://u:p@proxy")), key.Of([]byte("https://u:p@proxy"))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := secrets[name]
			for _, text := range test.want {
				want = append(want, bundle.Of([]byte(text)))
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, Needs(manifest(t, test.bundle))); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromBundleReturnsTheContentsOfTheBundle(t *testing.T) {
	s := fromBundle(t, example())
	got := map[bundle.Digest]string{}
	for _, c := range s.Contents() {
		in, err := s.Open(c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(Decode(in, c))
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		got[c.Digest] = string(raw)
	}
	want := map[bundle.Digest]string{
		bundle.Of([]byte("a")): "a", bundle.Of([]byte{}): "", key.Of([]byte("a")): "a", bundle.Of([]byte("der")): "der",
		key.Of([]byte("http://u:p@proxy")): "http://u:p@proxy", key.Of([]byte("https://u:p@proxy")): "https://u:p@proxy",
		bundle.Of([]byte("node")): "node",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if _, err := s.Open(sum([]byte("kubelet"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what it does not carry ends with %v", err)
	}
}

func TestFromBundleRefusesInvalidBundles(t *testing.T) {
	tests := map[string]struct {
		change func(*bundle.Bundle)
		want   string
	}{
		"a masked file": {
			func(b *bundle.Bundle) { b.Cluster.Files[3].Digest = bundle.Masked },
			`taking the content of file C:\k\secret.txt: the digest of a secret is masked, as in a preview`,
		},
		"a masked file without data": {
			func(b *bundle.Bundle) {
				b.Cluster.Files[3].Digest, b.Cluster.Files[3].Content = bundle.Masked, bundle.Content{}
			},
			`taking the content of file C:\k\secret.txt: the digest of a secret is masked, as in a preview`,
		},
		"a masked variable": {
			func(b *bundle.Bundle) { b.Cluster.Variables[0].Digest = bundle.Masked },
			"taking the content of variable HTTP_PROXY: the digest of a secret is masked, as in a preview",
		},
		"a masked variable of services": {
			func(b *bundle.Bundle) { b.Cluster.Environments[0].Variables[0].Digest = bundle.Masked },
			"taking the content of environment proxy/HTTPS_PROXY: the digest of a secret is masked, as in a preview",
		},
		"a file that is longer than in its entry": {
			func(b *bundle.Bundle) { b.Cluster.Files[0].Content.Data = []byte("aa") },
			`taking the content of file C:\k\a.txt: it has 2 bytes, the entry has 1`,
		},
		"a file that is another one": {
			func(b *bundle.Bundle) { b.Cluster.Files[0].Content.Data = []byte("b") },
			`taking the content of file C:\k\a.txt: content ` + string(bundle.Of([]byte("a"))) + ": its SHA-256 does not match: " + sum([]byte("b")),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := example()
			test.change(&b)
			_, err := FromBundle(b)
			if err == nil {
				t.Fatal("taken")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// stretched has a stored form of its own, as another version of the compressor makes it.
type stretched struct{ memory }

func newStretched(raw []byte) Source {
	var out bytes.Buffer
	compress(newStreamEncoder(&out), raw)
	c := Content{Digest: key.Of(raw), SHA256: sum(raw), Size: int64(len(raw)), Stored: int64(out.Len())}
	return &stretched{memory{contents: []Content{c}, stored: map[string][]byte{c.SHA256: out.Bytes()}}}
}

func TestJoinedSourcesDescribeWhatTheyReturn(t *testing.T) {
	raw := bytes.Repeat([]byte("raw "), 100)
	shelf, other := newShelf(raw), newStretched(raw)
	tests := map[string]struct {
		sources []Source
		stored  Source
		digests []bundle.Digest
	}{
		"one":                               {[]Source{shelf}, shelf, []bundle.Digest{bundle.Of(raw)}},
		"twice the same":                    {[]Source{shelf, shelf}, shelf, []bundle.Digest{bundle.Of(raw)}},
		"two digests, the first one's form": {[]Source{shelf, other}, shelf, []bundle.Digest{key.Of(raw), bundle.Of(raw)}},
		"the other way round":               {[]Source{other, shelf}, other, []bundle.Digest{key.Of(raw), bundle.Of(raw)}},
		"joined twice":                      {[]Source{Join(other), Join(Join(), shelf)}, other, []bundle.Digest{key.Of(raw), bundle.Of(raw)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			joined := Join(test.sources...)
			var want []Content
			for _, d := range test.digests {
				want = append(want, Content{Digest: d, SHA256: sum(raw), Size: int64(len(raw)), Stored: test.stored.Contents()[0].Stored})
			}
			if diff := cmp.Diff(want, joined.Contents()); diff != "" {
				t.Errorf("contents (-want +got):\n%s", diff)
			}
			for _, c := range joined.Contents() {
				in, err := joined.Open(c.SHA256)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(Decode(in, c))
				if err != nil || !bytes.Equal(got, raw) {
					t.Errorf("content %s cannot be read: %v", c.Digest, err)
				}
			}
		})
	}
	if _, err := Join().Open(sum(raw)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what no source has ends with %v", err)
	}
}
