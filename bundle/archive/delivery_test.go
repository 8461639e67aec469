package archive

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"wmco/bundle"
)

// TestADeliveryIsWhatAReaderOfTheStreamReturns: the same list, the same parts in the same order, and the same bytes.
func TestADeliveryIsWhatAReaderOfTheStreamReturns(t *testing.T) {
	big, small := noise(2*PartSize+100), []byte("small")
	m := manifest(t, holding(big, small))
	digest := bundle.Of(big)
	for name, source := range map[string]Source{"seekable": newShelf(big, small).memory, "not seekable": newShelf(big, small)} {
		for what, missing := range map[string]map[bundle.Digest][]int{
			"nothing":              nil,
			"everything":           {digest: nil, bundle.Of(small): nil},
			"one content":          {digest: nil},
			"the first part":       {digest: {2, 3}},
			"the part between":     {digest: {1, 3}},
			"the last part":        {digest: {1, 2}},
			"no part of a content": {digest: {1, 2, 3}},
			"impossible parts":     {digest: {4}},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				r := Request{Manifest: m, Source: source, Missing: missing}
				want, got := receive(bytes.NewReader(send(t, r))), receipt{parts: map[string][]byte{}}
				d, err := r.Deliver(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got.read(d)
				if !errors.Is(got.err, io.EOF) {
					t.Errorf("it ends with %v", got.err)
				}
				if len(want.contents) != 2 || !slices.Equal(want.contents, got.contents) || !slices.Equal(want.names, got.names) || !maps.EqualFunc(want.parts, got.parts, bytes.Equal) {
					t.Errorf("the stream has %v, the delivery %v", want.names, got.names)
				}
			})
		}
	}
}

func TestAPartOfADeliveryNeedNotBeRead(t *testing.T) {
	big, small := noise(2*PartSize+100), []byte("small")
	m := manifest(t, holding(big, small))
	for name, source := range map[string]Source{"seekable": newShelf(big, small).memory, "not seekable": newShelf(big, small)} {
		for _, most := range []int64{0, 1, PartSize} {
			want := receive(bytes.NewReader(send(t, everything(m, source))))
			d, err := everything(m, source).Deliver(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range want.names {
				p, body, err := d.Next()
				if err != nil || p.Name() != part {
					t.Fatalf("%s: part %s, %v; want %s", name, p.Name(), err, part)
				}
				begin, err := io.ReadAll(io.LimitReader(body, most))
				if err != nil || !bytes.HasPrefix(want.parts[part], begin) || int64(len(begin)) != min(most, int64(len(want.parts[part]))) {
					t.Errorf("%s: part %d begins with other bytes: %v", name, i, err)
				}
			}
			if _, _, err := d.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: it ends with %v", name, err)
			}
		}
	}
}

func TestADeliveryOfWhatTheSourceLacksIsRefused(t *testing.T) {
	m := manifest(t, holding([]byte("there"), []byte("missing")))
	r := Request{Manifest: m, Source: newShelf([]byte("there")), Missing: map[bundle.Digest][]int{bundle.Of([]byte("missing")): nil}}
	if _, err := r.Deliver(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
