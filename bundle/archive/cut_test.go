package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"wmco/bundle"
)

func TestTruncatedStreamIsAnError(t *testing.T) {
	b := example()
	stream := send(t, everything(manifest(t, b), fromBundle(t, b)))
	whole := receive(bytes.NewReader(stream))
	for n := range stream {
		checkCut(t, whole, stream[:n])
	}
}

func TestTruncatedLargeStreamIsAnError(t *testing.T) {
	big, small := noise(2*PartSize+100), bytes.Repeat([]byte("compressible "), 100_000)
	stream := send(t, everything(manifest(t, holding(big, small)), newShelf(big, small)))
	whole := receive(bytes.NewReader(stream))
	chance := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		checkCut(t, whole, stream[:chance.IntN(len(stream))])
	}
	for n := range 1100 { // the last blocks of the tar and the end of the zstd frame
		if n > 0 && n < 40 || n%100 == 0 {
			checkCut(t, whole, stream[:len(stream)-n-1])
		}
	}
}

// checkCut wants an error, and everything before it as it is in the whole stream.
func checkCut(t *testing.T, whole receipt, stream []byte) {
	t.Helper()
	got := receive(bytes.NewReader(stream))
	if !errors.Is(got.err, io.ErrUnexpectedEOF) || errors.Is(got.err, ErrMalformed) {
		t.Fatalf("cut after %d bytes it ends with %v, want %v", len(stream), got.err, io.ErrUnexpectedEOF)
	}
	for i, name := range got.names {
		if name != whole.names[i] || !bytes.Equal(got.parts[name], whole.parts[name]) {
			t.Fatalf("cut after %d bytes, part %s is another one", len(stream), name)
		}
	}
}

func TestTruncatedManifestIsRefused(t *testing.T) {
	data, err := manifest(t, example()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(data) - 1 { // the line feed at the end may be missing
		if _, err := NewReader(bytes.NewReader(data[:n])); err == nil {
			t.Fatalf("cut after %d bytes it is taken", n)
		}
	}
}

func TestErrorsOfTheConnectionAreReturned(t *testing.T) {
	b := example()
	stream := send(t, everything(manifest(t, b), fromBundle(t, b)))
	lost := errors.New("connection lost")
	tests := map[string]struct{ below, want error }{
		"a connection that is lost":            {lost, lost},
		"a connection that ends, in its words": {fmt.Errorf("channel: %w", io.EOF), io.ErrUnexpectedEOF},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for n := range len(stream) + 1 {
				got := receive(io.MultiReader(bytes.NewReader(stream[:n]), iotest.ErrReader(test.below)))
				if !errors.Is(got.err, test.want) || errors.Is(got.err, io.EOF) || errors.Is(got.err, ErrMalformed) {
					t.Fatalf("after %d bytes it ends with %v, want %v", n, got.err, test.want)
				}
			}
		})
	}
}

func TestFlippedBytesAreDetected(t *testing.T) {
	b := example()
	m := manifest(t, b)
	stream := send(t, everything(m, fromBundle(t, b)))
	whole := receive(bytes.NewReader(stream)).raw(t)
	for n := range stream {
		flipped := bytes.Clone(stream)
		flipped[n] ^= 0x55
		got := receive(bytes.NewReader(flipped))
		for _, c := range got.contents {
			data, err := got.decoded(c)
			if err == nil && string(data) != whole[c.Digest] {
				t.Fatalf("with byte %d flipped, content %s is another one", n, c.Digest)
			}
		}
	}
}

func TestTruncatedStoredFormIsCorrupt(t *testing.T) {
	raw := bytes.Repeat([]byte("some text "), 50)
	stored := Compress(raw)
	c := Content{Digest: bundle.Of(raw), SHA256: sum(raw), Size: int64(len(raw)), Stored: int64(len(stored))}
	for n := range stored {
		_, err := io.ReadAll(Decode(bytes.NewReader(stored[:n]), c))
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("cut after %d bytes it ends with %v", n, err)
		}
	}
}
