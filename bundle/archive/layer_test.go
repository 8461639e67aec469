package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

func pack(t testing.TB, l bundle.Layer) (bundle.Digest, []byte) {
	t.Helper()
	data, err := PackLayer(l)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d, data
}

func TestPackedLayersHaveAllContentsButExecutables(t *testing.T) {
	for _, l := range example().Layers() {
		digest, data := pack(t, l)
		if _, again := pack(t, l); !bytes.Equal(data, again) {
			t.Error("the same layer gives other bytes")
		}
		got, err := UnpackLayer(data, digest)
		if err != nil {
			t.Fatal(err)
		}
		want, have := map[bundle.Digest]string{}, map[bundle.Digest]string{}
		for _, n := range inLayer(l) {
			want[n.digest] = string(n.content.Data)
		}
		for _, n := range inLayer(got) {
			have[n.digest] = string(n.content.Data)
			if n.content.Data == nil {
				t.Errorf("%s has no content: an empty one is not nil", n.entry)
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("contents of layer %s (-want +got):\n%s", l.Kind, diff)
		}
		if again, err := got.Digest(); err != nil || again != digest {
			t.Errorf("layer %s has digest %s, want %s: %v", l.Kind, again, digest, err)
		}
	}
}

// TestAPackerIsReused: what it has packed before changes nothing.
func TestAPackerIsReused(t *testing.T) {
	var p Packer
	for i := range 200 {
		l := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined}
		for k := range i % 7 {
			data := bytes.Repeat([]byte(strings.Repeat("a line of text\n", i%11)+string(rune('a'+k))), 1+i*i%400)
			l.Files = append(l.Files, bundle.File{
				Path: `C:\k\` + string(rune('a'+k)), Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: data},
			})
		}
		want, err := PackLayer(l)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Layer(l); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("layer %d: %d bytes, %d with a new packer: %v", i, len(got), len(want), err)
		}
	}
}

func TestLayersThatCannotBePacked(t *testing.T) {
	masked := example().Cluster
	masked.Files = []bundle.File{{Path: `C:\k\s`, Digest: bundle.Masked, Secret: true, Access: bundle.AccessAdmins, Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte("x")}}}
	if _, err := PackLayer(masked); !errors.Is(err, ErrMasked) {
		t.Errorf("a preview: %v", err)
	}
	bare := example().Cluster
	bare.Files = []bundle.File{file(`C:\k\a.txt`, []byte("a"))}
	bare.Files[0].Content.Data = nil
	if _, err := PackLayer(bare); err == nil {
		t.Error("a file without its content is packed")
	}
	for name, data := range map[string][]byte{"compressed": noise(MaxLayer + 1), "with its contents": make([]byte, maxUnpacked)} {
		large := example().Cluster
		large.Files = []bundle.File{file(`C:\k\a.txt`, data)}
		if _, err := PackLayer(large); !errors.Is(err, ErrTooLarge) {
			t.Errorf("a layer that is too large %s: %v", name, err)
		}
	}
}

// repacked returns a packed layer with other members.
func repacked(t testing.TB, names []string, contents []string) []byte {
	t.Helper()
	var raw bytes.Buffer
	out := tar.NewWriter(&raw)
	for i, name := range names {
		if err := writeMember(out, name, []byte(contents[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return Compress(raw.Bytes())
}

func TestForeignLayersAreRefused(t *testing.T) {
	l := example().Node
	digest, data := pack(t, l)
	index, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	node := string(bundle.Of([]byte("node")))
	for name, data := range map[string][]byte{
		"nothing":                      {},
		"no zstd":                      []byte("layer"),
		"truncated":                    data[:len(data)/2],
		"a changed byte":               flipped(data),
		"no members":                   repacked(t, nil, nil),
		"another first member":         repacked(t, []string{"manifest.json"}, []string{string(index)}),
		"another layer":                repacked(t, []string{layerMember, node}, []string{strings.Replace(string(index), "node.txt", "else.txt", 1), "node"}),
		"a missing content":            repacked(t, []string{layerMember}, []string{string(index)}),
		"a changed content":            repacked(t, []string{layerMember, node}, []string{string(index), "nod3"}),
		"a longer content":             repacked(t, []string{layerMember, node}, []string{string(index), "node "}),
		"a content that is not named":  repacked(t, []string{layerMember, node, "sha256:0"}, []string{string(index), "node", "x"}),
		"a content under another name": repacked(t, []string{layerMember, "node"}, []string{string(index), "node"}),
		"a content twice":              repacked(t, []string{layerMember, node, node}, []string{string(index), "node", "node"}),
		"a bomb":                       Compress(make([]byte, maxUnpacked+1)),
		"too long":                     make([]byte, MaxLayer+1),
	} {
		if _, err := UnpackLayer(data, digest); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func flipped(data []byte) []byte {
	out := bytes.Clone(data)
	out[len(out)/2] ^= 1
	return out
}

func FuzzUnpackLayer(f *testing.F) {
	digest, data := pack(f, example().Cluster)
	raw, err := decompressLayer(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := allocated()
		l, err := UnpackLayer(framed(raw), digest)
		if err == nil {
			if again, err := l.Digest(); err != nil || again != digest {
				t.Errorf("an accepted layer has digest %s: %v", again, err)
			}
			for _, n := range inLayer(l) {
				if err := n.checkDigest(n.content.Data); err != nil {
					t.Error(err)
				}
			}
		}
		if n := allocated() - before; n > readerMemory {
			t.Errorf("%d bytes made it allocate %d", len(raw), n)
		}
	})
}

// TestASmallBufferWritesTheSame: stored bytes must not depend on how much memory the compressor has, also beyond a window.
func TestASmallBufferWritesTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() []byte {
		w := make([]byte, 1+random.IntN(4000))
		for i := range w {
			w[i] = byte(random.Uint32())
		}
		return w
	}
	words := make([][]byte, 300)
	for i := range words {
		words[i] = word()
	}
	for _, size := range []int{1000, 200_000, 2*maxWindow + 1} {
		var raw []byte
		for len(raw) < size {
			raw = append(raw, words[random.IntN(len(words))]...)
		}
		var large bytes.Buffer
		compress(newEncoder(&large, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(maxWindow), zstd.WithEncoderCRC(false)), raw)
		if !bytes.Equal(Compress(raw), large.Bytes()) {
			t.Errorf("%d bytes are stored in another form", size)
		}
	}
}
