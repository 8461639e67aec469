package archive

import (
	"bytes"
	"errors"
	"io"
	"runtime/metrics"
	"testing"
)

// allocated is how many bytes the process has ever asked the heap for.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// readerMemory bounds what a Reader may ask for on a short input: the window of zstd, the documents and the JSON in them.
const readerMemory = 128 << 20

func FuzzReader(f *testing.F) {
	raw := []byte("raw")
	m, shelf := manifest(f, holding(raw)), newShelf(raw)
	alone, err := m.Encode()
	if err != nil {
		f.Fatal(err)
	}
	stream := send(f, everything(m, shelf))
	tarred, err := io.ReadAll(newUnzipped(bytes.NewReader(stream)))
	if err != nil {
		f.Fatal(err)
	}
	if got := receive(bytes.NewReader(framed(tarred))); !atEnd(got.err) || len(got.names) != 1 {
		f.Fatalf("the frame of this test is not read: %v", got.err)
	}
	f.Add(stream, false)
	f.Add(stream[:len(stream)/2], false)
	f.Add(alone, false)
	f.Add(tarred, true)
	f.Add(packed(f, []member{regular(manifestMember, alone), regular(indexMember, []byte("[\n{}\n]\n"))}), true)
	f.Add(packed(f, []member{special('2', manifestMember, "x")}), true)
	f.Fuzz(func(t *testing.T, data []byte, tarred bool) {
		if tarred { // mutations of zstd seldom get through to the tar
			data = framed(data)
		}
		before := allocated()
		checkReader(t, data)
		if n := allocated() - before; n > readerMemory {
			t.Errorf("%d bytes made it allocate %d", len(data), n)
		}
	})
}

// framed puts data into a zstd frame as it is (RFC 8878, 3.1.1), which is quicker than compressing it: a header with a
// window of 128 KiB and no checksum, and raw blocks.
func framed(data []byte) []byte {
	const block = 128 << 10
	out := []byte{beginsZstd, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3}
	for ; len(data) > block; data = data[block:] {
		header := block << 3
		out = append(append(out, byte(header), byte(header>>8), byte(header>>16)), data[:block]...)
	}
	header := len(data)<<3 | 1
	return append(append(out, byte(header), byte(header>>8), byte(header>>16)), data...)
}

// checkReader wants every part to be one of the list, of its size, once, and in order.
func checkReader(t *testing.T, data []byte) {
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return
	}
	sizes := map[string]int64{}
	for _, c := range r.Contents() {
		for i := range c.Parts() {
			sizes[c.Part(i+1).Name()] = c.PartSize(i + 1)
		}
	}
	last := ""
	for {
		p, body, err := r.Next()
		if err != nil {
			return
		}
		want, ok := sizes[p.Name()]
		if !ok || p.Name() <= last {
			t.Fatalf("part %s is not in the list, or comes after %s", p.Name(), last)
		}
		last = p.Name()
		if n, err := io.Copy(io.Discard, body); n > want || err == nil && n != want {
			t.Fatalf("part %s has %d bytes, want %d", last, n, want)
		}
	}
}

func FuzzParsePart(f *testing.F) {
	f.Add(Part{sum(nil), 1, 1}.Name())
	f.Add(Part{sum(nil), 3, 6}.Name())
	f.Add("../" + Part{sum(nil), 3, 6}.Name())
	f.Add("")
	f.Fuzz(func(t *testing.T, name string) {
		p, err := ParsePart(name)
		if err != nil {
			return
		}
		if p.Name() != name || p.Index < 1 || p.Index > p.Of || p.Of > MaxParts || !hexSHA256.MatchString(p.SHA256) {
			t.Errorf("%q is taken for %+v", name, p)
		}
	})
}

func FuzzDecode(f *testing.F) {
	raw := bytes.Repeat([]byte("some text that repeats itself "), 100)
	stored := Compress(raw)
	f.Add(stored, int64(len(raw)), int64(len(stored)))
	f.Add(stored[:20], int64(len(raw)), int64(len(stored)))
	f.Add(Compress(nil), int64(0), int64(len(Compress(nil))))
	f.Add(Compress(make([]byte, 1<<20)), int64(1), int64(100))
	f.Add(stored, int64(-1), int64(-1))
	f.Add(stored, int64(1<<63-1), int64(1<<63-1))
	f.Fuzz(func(t *testing.T, stored []byte, size, storedSize int64) {
		c := contentOf(raw, nil)
		c.Size, c.Stored = size, storedSize
		in := Decode(bytes.NewReader(stored), c)
		var got bytes.Buffer
		n, err := io.Copy(&got, io.LimitReader(in, 64<<20))
		if n > max(size, 0) {
			t.Errorf("%d bytes came out, want %d at most", n, size)
		}
		var corrupt *CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			t.Errorf("it ends with %v", err)
		}
		if err == nil && n < 64<<20 && !bytes.Equal(got.Bytes(), raw) {
			t.Errorf("another content of %d bytes is taken", n)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	})
}
