package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"wmco/bundle"
)

var key = bundle.Key("key")

// file returns a public file of the bundle with this content.
func file(path string, data []byte) bundle.File {
	return bundle.File{
		Path: path, Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone,
		Content: bundle.Content{Data: data},
	}
}

func secretFile(path, text string) bundle.File {
	return bundle.File{
		Path: path, Digest: key.Of([]byte(text)), Size: int64(len(text)), Secret: true, Access: bundle.AccessAdmins,
		Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte(text), Preview: []byte("<masked>")},
	}
}

func secretVariable(name, value string) bundle.Variable {
	return bundle.Variable{
		Name: name, Digest: key.Of([]byte(value)), Impact: bundle.ImpactRestart,
		Content: bundle.Content{Data: []byte(value), Preview: []byte("<masked>")},
	}
}

// payload is an executable of the bundle, whose bytes come from elsewhere.
func payload(path string, data []byte) bundle.Payload {
	return bundle.Payload{Path: path, Component: "kubelet", Version: "v1", Digest: bundle.Of(data), Size: int64(len(data)), Impact: bundle.ImpactDrain}
}

// example has every kind of entry that has a content: some contents twice, one empty, one secret that is also public.
func example() bundle.Bundle {
	return bundle.Bundle{
		Cluster: bundle.Layer{
			Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined,
			Files: []bundle.File{
				file(`C:\k\a.txt`, []byte("a")), file(`C:\k\again.txt`, []byte("a")), file(`C:\k\empty.txt`, []byte{}),
				secretFile(`C:\k\secret.txt`, "a"),
			},
			Payload: []bundle.Payload{
				payload(`C:\k\kubelet.exe`, []byte("kubelet")),
				{Path: `C:\k\unknown.exe`, Component: "x", Version: "v1", Impact: bundle.ImpactDrain},
			},
			TrustedCAs: []bundle.TrustedCA{{
				Digest: bundle.Of([]byte("der")), Impact: bundle.ImpactNone, Content: bundle.Content{Data: []byte("der")},
			}},
			Variables: []bundle.Variable{
				secretVariable("HTTP_PROXY", "http://u:p@proxy"), {Name: "NO_PROXY", Value: "x", Impact: bundle.ImpactNone},
			},
			Environments: []bundle.Environment{{Name: "proxy", Variables: []bundle.Variable{
				secretVariable("HTTPS_PROXY", "https://u:p@proxy"), secretVariable("HTTP_PROXY", "http://u:p@proxy"),
			}}},
		},
		Node: bundle.Layer{
			Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined,
			Files: []bundle.File{file(`C:\k\node.txt`, []byte("node"))},
		},
	}
}

// holding returns a bundle with nothing but these executables.
func holding(contents ...[]byte) bundle.Bundle {
	b := bundle.Bundle{
		Cluster: bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined},
		Node:    bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined},
	}
	for i, data := range contents {
		b.Cluster.Payload = append(b.Cluster.Payload, payload(fmt.Sprintf(`C:\k\%03d.exe`, i), data))
	}
	return b
}

// shelf is a Source of raw contents. Its readers cannot seek.
type shelf struct{ *memory }

func newShelf(contents ...[]byte) shelf {
	m := &memory{stored: map[string][]byte{}, seen: map[bundle.Digest]bool{}, encoder: newStoredEncoder(nil)}
	for _, data := range contents {
		if err := m.addContent(named{digest: bundle.Of(data), content: &bundle.Content{Data: data}}); err != nil {
			panic(err)
		}
	}
	return shelf{m}
}

func (s shelf) Open(sha256 string) (io.ReadCloser, error) {
	in, err := s.memory.Open(sha256)
	return struct{ io.ReadCloser }{in}, err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// noise returns bytes that do not compress, the same ones each time.
func noise(size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // documented to return no error
	return data
}

func manifest(t testing.TB, b bundle.Bundle) bundle.Manifest {
	t.Helper()
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fromBundle(t testing.TB, b bundle.Bundle) Source {
	t.Helper()
	s, err := FromBundle(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// everything asks for all contents that the source has of the manifest.
func everything(m bundle.Manifest, s Source) Request {
	r := Request{Manifest: m, Source: s, Missing: map[bundle.Digest][]int{}}
	for _, c := range r.Contents() {
		r.Missing[c.Digest] = nil
	}
	return r
}

func send(t testing.TB, r Request) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Send(context.Background(), &out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// receipt is what came out of a stream: parts that were whole, in order, and how it ended.
type receipt struct {
	contents []Content
	names    []string
	parts    map[string][]byte
	err      error
}

func receive(stream io.Reader) receipt {
	got := receipt{parts: map[string][]byte{}}
	r, err := NewReader(stream)
	if err != nil {
		got.err = err
		return got
	}
	got.read(r)
	return got
}

// read reads all parts, in order.
func (r *receipt) read(from interface {
	Contents() []Content
	Next() (Part, io.Reader, error)
}) {
	r.contents = from.Contents()
	for {
		p, body, err := from.Next()
		if err != nil {
			r.err = err
			return
		}
		data, err := io.ReadAll(body)
		if err != nil {
			r.err = err
			return
		}
		r.names = append(r.names, p.Name())
		r.parts[p.Name()] = data
	}
}

// decoded puts a content together from its parts.
func (r receipt) decoded(c Content) ([]byte, error) {
	var parts []io.Reader
	for i := range c.Parts() {
		parts = append(parts, bytes.NewReader(r.parts[c.Part(i+1).Name()]))
	}
	in := Decode(io.MultiReader(parts...), c)
	data, err := io.ReadAll(in)
	return data, errors.Join(err, in.Close())
}

// raw returns the contents whose parts are all there.
func (r receipt) raw(t testing.TB) map[bundle.Digest]string {
	t.Helper()
	all := map[bundle.Digest]string{}
	for _, c := range r.contents {
		complete := func(i int) bool { return r.parts[c.Part(i+1).Name()] != nil }
		if !slices.ContainsFunc(indices(c), func(i int) bool { return !complete(i) }) {
			data, err := r.decoded(c)
			if err != nil {
				t.Fatal(err)
			}
			all[c.Digest] = string(data)
		}
	}
	return all
}

func indices(c Content) []int {
	var all []int
	for i := range c.Parts() {
		all = append(all, i)
	}
	return all
}

// contentOfStream describes a content that is not in memory.
func contentOfStream(t testing.TB, raw io.Reader, size, stored int64) Content {
	t.Helper()
	h := sha256.New()
	if _, err := io.Copy(h, raw); err != nil {
		t.Fatal(err)
	}
	name := hex.EncodeToString(h.Sum(nil))
	return Content{Digest: bundle.Digest("sha256:" + name), SHA256: name, Size: size, Stored: stored}
}
