package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"wmco/bundle"
)

// repeat yields the same bytes again and again.
type repeat struct {
	data []byte
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

// TestLargePayloadTakesLittleMemory sends and reads a content as large as a whole payload. What the heap was asked for in
// all is more than what was in use at any time.
func TestLargePayloadTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("420 MB are not for a short run")
	}
	const size, limit = 420 << 20, 20 << 20
	c, stored := large(t, size)
	m := manifest(t, holding())
	m.Layers[0].Layer.Payload = []bundle.Payload{{Path: `C:\k\x.exe`, Component: "x", Version: "v1", Digest: c.Digest, Size: c.Size, Impact: bundle.ImpactDrain}}
	m = manifest(t, bundle.Bundle{Cluster: m.Layers[0].Layer, Node: m.Layers[1].Layer})
	source := &memory{contents: []Content{c}, stored: map[string][]byte{c.SHA256: stored}}
	in, out := io.Pipe()
	before := allocated()
	go func() { _ = out.CloseWithError(Send(context.Background(), out, everything(m, source))) }()
	discard(t, in)
	sent := allocated()
	if n, err := io.Copy(io.Discard, Decode(bytes.NewReader(stored), c)); n != size || err != nil {
		t.Fatalf("%d bytes came out: %v", n, err)
	}
	decoded := allocated()
	t.Logf("%d MB, %d MB stored: sending and reading asked for %.1f MB, decoding for %.1f MB", size>>20, len(stored)>>20,
		float64(sent-before)/(1<<20), float64(decoded-sent)/(1<<20))
	if sent-before > limit || decoded-sent > limit {
		t.Errorf("want %d MB each at most", limit>>20)
	}
}

// large returns a content of so many bytes and its stored form, a quarter of them noise.
func large(t testing.TB, size int64) (Content, []byte) {
	t.Helper()
	data := append(noise(3<<20), bytes.Repeat([]byte("compressible "), 500_000)...)
	data = append(data, make([]byte, 12<<20-len(data))...)
	raw := func() io.Reader { return io.LimitReader(&repeat{data: data}, size) }
	var stored bytes.Buffer
	e := Encode(&stored)
	if _, err := io.Copy(e, raw()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return contentOfStream(t, raw(), size, int64(stored.Len())), stored.Bytes()
}

func discard(t testing.TB, stream io.Reader) {
	t.Helper()
	r, err := NewReader(stream)
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, body, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			t.Fatal(err)
		}
	}
}

const benchSize = 64 << 20

// workload is a bundle with one content of benchSize, sent whole.
type workload struct {
	request Request
	content Content
	stored  []byte
	stream  []byte
}

func newWorkload(b *testing.B, raw []byte) workload {
	b.Helper()
	m, s := manifest(b, holding(raw)), newShelf(raw)
	w := workload{request: everything(m, s.memory), content: s.contents[0]}
	w.stored, w.stream = s.stored[w.content.SHA256], send(b, w.request)
	return w
}

func eachWorkload(b *testing.B, run func(*testing.B, workload)) {
	text := make([]byte, 0, benchSize+100)
	for i := 0; len(text) < benchSize; i++ {
		text = fmt.Appendf(text, "%d lines of text that is much the same each time; %d\n", i, i%977)
	}
	for name, raw := range map[string][]byte{"incompressible": noise(benchSize), "compressible": text[:benchSize]} {
		b.Run(name, func(b *testing.B) {
			w := newWorkload(b, raw)
			b.SetBytes(benchSize)
			b.ReportAllocs()
			run(b, w)
		})
	}
}

func BenchmarkSend(b *testing.B) {
	eachWorkload(b, func(b *testing.B, w workload) {
		for b.Loop() {
			if err := Send(context.Background(), io.Discard, w.request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	eachWorkload(b, func(b *testing.B, w workload) {
		for b.Loop() {
			discard(b, bytes.NewReader(w.stream))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	eachWorkload(b, func(b *testing.B, w workload) {
		for b.Loop() {
			if _, err := io.Copy(io.Discard, Decode(bytes.NewReader(w.stored), w.content)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFromBundle takes a bundle of a thousand small files, as many mirrors make.
func BenchmarkFromBundle(b *testing.B) {
	bundle := holding()
	for i := range 1000 {
		bundle.Cluster.Files = append(bundle.Cluster.Files, file(fmt.Sprintf(`C:\k\%04d.toml`, i), fmt.Appendf(nil, "server = %q\n", fmt.Sprint("https://registry.example/", i))))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromBundle(bundle); err != nil {
			b.Fatal(err)
		}
	}
}
