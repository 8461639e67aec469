package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

func contentOf(raw, stored []byte) Content {
	return Content{Digest: bundle.Of(raw), SHA256: sum(raw), Size: int64(len(raw)), Stored: int64(len(stored))}
}

func TestContentsRoundTripThroughCompression(t *testing.T) {
	tests := map[string][]byte{
		"nothing":            {},
		"a byte":             {0},
		"text":               []byte("text"),
		"a block":            make([]byte, 128<<10),
		"a block and a byte": noise(128<<10 + 1),
		"noise":              noise(1 << 20),
		"more than a window": slices.Concat(noise(5<<20), noise(5<<20)),
		"zeros":              make([]byte, 20<<20),
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			stored := Compress(raw)
			c := contentOf(raw, stored)
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			for kind, in := range map[string]io.Reader{"whole": bytes.NewReader(stored), "in memory": bytes.NewBuffer(stored), "in halves": iotest.HalfReader(bytes.NewReader(stored))} {
				got, err := io.ReadAll(Decode(in, c))
				if err != nil {
					t.Fatalf("read %s: %v", kind, err)
				}
				if !bytes.Equal(got, raw) {
					t.Errorf("read %s it is another one", kind)
				}
			}
		})
	}
}

func TestStoredFormDependsOnTheBytesAlone(t *testing.T) {
	raw := slices.Concat(bytes.Repeat([]byte("text that repeats itself "), 20_000), noise(300<<10), make([]byte, 100<<10))
	want := Compress(raw)
	used := newStoredEncoder(io.Discard)
	compress(used, raw[1000:])
	tests := map[string]func(io.Writer) error{
		"written again": func(w io.Writer) error { _, err := w.Write(Compress(raw)); return err },
		"written in pieces": func(w io.Writer) error {
			e := Encode(w)
			for piece := range slices.Chunk(raw, 777) {
				if _, err := e.Write(piece); err != nil {
					return err
				}
			}
			return e.Close()
		},
		"copied": func(w io.Writer) error {
			e := Encode(w)
			_, err := io.Copy(e, iotest.HalfReader(bytes.NewReader(raw)))
			return errors.Join(err, e.Close())
		},
		"written by an encoder that was used before": func(w io.Writer) error { used.Reset(w); compress(used, raw); return nil },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := write(&out); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), want) {
				t.Error("it has another stored form")
			}
		})
	}
}

func TestStoredBytesOfAnotherContentAreCorrupt(t *testing.T) {
	raw := bytes.Repeat([]byte("raw "), 1000)
	good := Compress(raw)
	var wide bytes.Buffer
	e := newEncoder(&wide, zstd.WithWindowSize(2*maxWindow))
	compress(e, noise(1<<20))
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}
	as := func(c Content, stored []byte) Content { c.Stored = int64(len(stored)); return c }
	c := contentOf(raw, good)
	tests := map[string]struct {
		stored  []byte
		content Content
		want    string
	}{
		"nothing":                        {nil, c, "it has 0 bytes, not 4000"},
		"no zstd":                        {[]byte("no zstd at all"), c, "after 0 bytes: invalid input: magic number mismatch"},
		"other bytes, as many":           {Compress(otherEnd(raw)), as(c, Compress(otherEnd(raw))), "it has another SHA-256"},
		"more bytes":                     {Compress(append(raw[:4000:4000], 'x')), as(c, Compress(append(raw[:4000:4000], 'x'))), "it has more than 4000 bytes"},
		"fewer bytes":                    {Compress(raw[:3999]), as(c, Compress(raw[:3999])), "it has 3999 bytes, not 4000"},
		"a bomb":                         {Compress(make([]byte, 100<<20)), as(c, Compress(make([]byte, 100<<20))), "it has more than 4000 bytes"},
		"a window that is too large":     {wide.Bytes(), as(c, wide.Bytes()), "after 0 bytes: window size exceeded"},
		"something after it":             {append(slices.Clone(good), 'x'), c, "after 4000 bytes: unexpected EOF"},
		"a frame of nothing after it":    {slices.Concat(good, skippable), c, "after 4000 bytes: unexpected EOF"},
		"the same twice":                 {slices.Concat(good, good), as(c, slices.Concat(good, good)), "it has more than 4000 bytes"},
		"fewer stored bytes than listed": {good, as(c, append(slices.Clone(good), 'x')), fmt.Sprintf("it is stored in %d bytes, not %d", len(good), len(good)+1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(Decode(bytes.NewReader(test.stored), test.content))
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("it ends with %v", err)
			}
			if diff := cmp.Diff(CorruptError{c.Digest, test.want}, *corrupt); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if len(got) > len(raw) {
				t.Errorf("%d bytes came out, want %d at most", len(got), len(raw))
			}
		})
	}
}

// otherEnd changes the last byte.
func otherEnd(raw []byte) []byte { return append(slices.Clone(raw[:len(raw)-1]), 'x') }

func TestErrorsOfTheStoredReaderAreReturned(t *testing.T) {
	raw := []byte("raw")
	stored := Compress(raw)
	for n := range len(stored) + 1 {
		in := Decode(io.MultiReader(bytes.NewReader(stored[:n]), iotest.ErrReader(fs.ErrPermission)), contentOf(raw, stored))
		_, err := io.ReadAll(in)
		var corrupt *CorruptError
		if !errors.Is(err, fs.ErrPermission) || errors.As(err, &corrupt) {
			t.Errorf("after %d bytes it ends with %v, want %v", n, err, fs.ErrPermission)
		}
	}
}

func TestReadAfterCloseFails(t *testing.T) {
	raw := []byte("raw")
	in := Decode(bytes.NewReader(Compress(raw)), contentOf(raw, Compress(raw)))
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("reading ends with %v, want %v", err, fs.ErrClosed)
	}
	if err := in.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
