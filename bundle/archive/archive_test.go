package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func TestHostReceivesEveryContentOfTheBundle(t *testing.T) {
	b := example()
	m := manifest(t, b)
	source := Join(fromBundle(t, b), newShelf([]byte("kubelet"), []byte("not in the bundle")))
	stream := send(t, everything(m, source))
	got := receive(bytes.NewReader(stream))
	if !errors.Is(got.err, io.EOF) {
		t.Fatal(got.err)
	}
	want := map[bundle.Digest]string{
		bundle.Of([]byte("a")):              "a",
		bundle.Of([]byte{}):                 "",
		key.Of([]byte("a")):                 "a",
		bundle.Of([]byte("kubelet")):        "kubelet",
		bundle.Of([]byte("der")):            "der",
		key.Of([]byte("http://u:p@proxy")):  "http://u:p@proxy",
		key.Of([]byte("https://u:p@proxy")): "https://u:p@proxy",
		bundle.Of([]byte("node")):           "node",
	}
	if diff := cmp.Diff(want, got.raw(t)); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if len(got.names) != 7 {
		t.Errorf("%d parts came, want 7: a content with two digests travels once", len(got.names))
	}
	if again := send(t, everything(m, source)); !bytes.Equal(stream, again) {
		t.Error("the same request gives other bytes")
	}
}

func TestReaderReturnsTheManifest(t *testing.T) {
	b := example()
	m := manifest(t, b)
	alone, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := bundle.DecodeManifest(alone)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		stream   []byte
		contents int
	}{
		"an archive with parts":                   {send(t, everything(m, fromBundle(t, b))), 7},
		"an archive without parts":                {send(t, Request{Manifest: m, Source: fromBundle(t, b)}), 7},
		"an archive of a sender that has nothing": {send(t, Request{Manifest: m, Source: Join()}), 0},
		"a manifest alone":                        {alone, 0},
		"a manifest alone, and no line feed":      {bytes.TrimSpace(alone), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := NewReader(bytes.NewReader(test.stream))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, r.Manifest); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
			if len(r.Contents()) != test.contents {
				t.Errorf("%d contents are listed, want %d", len(r.Contents()), test.contents)
			}
			// Parts need not be read, and the end stays the end.
			for err == nil {
				_, _, err = r.Next()
			}
			if _, _, again := r.Next(); err != io.EOF || again != io.EOF { //nolint:errorlint // the contract is io.EOF itself
				t.Errorf("it ends with %v and then %v, want %v", err, again, io.EOF)
			}
		})
	}
}

func TestOnlyMissingPartsAreSent(t *testing.T) {
	big, small := noise(2*PartSize+100), []byte("small")
	b := holding(big, small)
	m, shelf := manifest(t, b), newShelf(big, small)
	name := func(index int) string { return Part{SHA256: sum(big), Index: index, Of: 3}.Name() }
	one := Part{SHA256: sum(small), Index: 1, Of: 1}.Name()
	tests := map[string]struct {
		missing map[bundle.Digest][]int
		want    []string
	}{
		"nothing is missing":                         {nil, nil},
		"all of one content":                         {map[bundle.Digest][]int{bundle.Of(big): nil}, []string{name(1), name(2), name(3)}},
		"the node has the first part":                {map[bundle.Digest][]int{bundle.Of(big): {1}}, []string{name(2), name(3)}},
		"the node has the middle":                    {map[bundle.Digest][]int{bundle.Of(big): {2}}, []string{name(1), name(3)}},
		"the node has the end and the beginning":     {map[bundle.Digest][]int{bundle.Of(big): {3, 1}}, []string{name(2)}},
		"the node has all parts":                     {map[bundle.Digest][]int{bundle.Of(big): {1, 2, 3}}, nil},
		"the node has a part of another stored form": {map[bundle.Digest][]int{bundle.Of(big): {1, 4}}, []string{name(1), name(2), name(3)}},
		"the node has a part that never was":         {map[bundle.Digest][]int{bundle.Of(big): {0}}, []string{name(1), name(2), name(3)}},
		"several contents":                           {map[bundle.Digest][]int{bundle.Of(big): {1, 2}, bundle.Of(small): nil}, sorted(name(3), one)},
	}
	for name, test := range tests {
		for kind, source := range map[string]Source{"seekable": shelf.memory, "not seekable": shelf} {
			t.Run(name+", the source is "+kind, func(t *testing.T) {
				got := receive(bytes.NewReader(send(t, Request{Manifest: m, Source: source, Missing: test.missing})))
				if !errors.Is(got.err, io.EOF) {
					t.Fatal(got.err)
				}
				if diff := cmp.Diff(test.want, got.names); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func sorted(a, b string) []string {
	if a > b {
		return []string{b, a}
	}
	return []string{a, b}
}

func TestInterruptedUploadIsCompletedByASecond(t *testing.T) {
	big := noise(3*PartSize - 1000)
	m, shelf := manifest(t, holding(big)), newShelf(big)
	r := everything(m, shelf)
	whole := send(t, r)
	first := receive(bytes.NewReader(whole[:2*len(whole)/3]))
	if !errors.Is(first.err, io.ErrUnexpectedEOF) || len(first.names) == 0 {
		t.Fatalf("the first upload brought %d parts and ended with %v", len(first.names), first.err)
	}
	for i := range first.names {
		r.Missing[bundle.Of(big)] = append(r.Missing[bundle.Of(big)], i+1)
	}
	second := receive(bytes.NewReader(send(t, r)))
	for name, part := range first.parts {
		second.parts[name] = part
	}
	data, err := second.decoded(second.contents[0])
	if err != nil || !bytes.Equal(data, big) {
		t.Errorf("the content is not the one that was sent: %v", err)
	}
}

// broken is a source whose readers do not match its list.
type broken struct {
	shelf
	open func() (io.ReadCloser, error)
}

func (b broken) Open(string) (io.ReadCloser, error) { return b.open() }

func TestSendRefuses(t *testing.T) {
	data := []byte("data")
	m, shelf, stored := manifest(t, holding(data)), newShelf(data), Compress(data)
	reader := func(r io.Reader) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(r), nil }
	}
	missing := func(d string) map[bundle.Digest][]int { return map[bundle.Digest][]int{bundle.Of([]byte(d)): nil} }
	all := missing("data")
	tests := map[string]struct {
		request Request
		want    string
	}{
		"a content that no source has": {
			Request{m, Join(), all},
			"looking for content " + string(bundle.Of(data)) + ": file does not exist",
		},
		"a content that the manifest does not name": {
			Request{m, newShelf(data, []byte("other")), missing("other")},
			"looking for content " + string(bundle.Of([]byte("other"))) + ": file does not exist",
		},
		"a content that the source lists and lacks": {
			Request{m, broken{shelf, func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }}, all},
			"opening content " + string(bundle.Of(data)) + ": file does not exist",
		},
		"a stored form that is shorter than in the source": {
			Request{m, broken{shelf, reader(bytes.NewReader(stored[1:]))}, all},
			"content " + string(bundle.Of(data)) + ": writing the archive: the stored form ends 1 bytes early",
		},
		"a stored form that is longer than in the source": {
			Request{m, broken{shelf, reader(strings.NewReader(string(stored) + "x"))}, all},
			fmt.Sprintf("content %s: the source has more than the %d stored bytes that it lists", bundle.Of(data), len(stored)),
		},
		"a stored form that cannot be read": {
			Request{m, broken{shelf, reader(failing{fs.ErrPermission})}, all},
			"content " + string(bundle.Of(data)) + ": writing the archive: permission denied",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Send(context.Background(), &out, test.request)
			if err == nil {
				t.Fatal("sent")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if got := receive(&out); !errors.Is(got.err, io.ErrUnexpectedEOF) {
				t.Errorf("what was written ends with %v, want %v", got.err, io.ErrUnexpectedEOF)
			}
		})
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestSendStopsWhenCancelled(t *testing.T) {
	data := noise(PartSize)
	stopped := errors.New("stopped")
	for _, when := range []string{"before the first byte", "after the first byte"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if when == "before the first byte" {
			cancel(stopped)
		}
		var out bytes.Buffer
		err := Send(ctx, writerFunc(func(p []byte) (int, error) { cancel(stopped); return out.Write(p) }), everything(manifest(t, holding(data)), newShelf(data)))
		if !errors.Is(err, stopped) {
			t.Errorf("%s: it ends with %v, want the cause of the end", when, err)
		}
		if out.Len() > PartSize/2 {
			t.Errorf("%s: it wrote %d bytes after that", when, out.Len())
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWriterReturnsEveryErrorBelow(t *testing.T) {
	b := example()
	r := everything(manifest(t, b), fromBundle(t, b))
	size := len(send(t, r))
	for limit := range size {
		left := limit
		w := writerFunc(func(p []byte) (int, error) {
			if len(p) > left {
				return 0, fs.ErrClosed
			}
			left -= len(p)
			return len(p), nil
		})
		if err := Send(context.Background(), w, r); !errors.Is(err, fs.ErrClosed) {
			t.Fatalf("with room for %d of %d bytes it ends with %v", limit, size, err)
		}
	}
}

func TestPartsHaveNames(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	tests := map[string]Part{
		hash + "-001of001": {hash, 1, 1},
		hash + "-003of006": {hash, 3, 6},
		hash + "-999of999": {hash, 999, 999},
	}
	for name, want := range tests {
		t.Run(name[64:], func(t *testing.T) {
			got, err := ParsePart(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("part (-want +got):\n%s", diff)
			}
			if got.Name() != name {
				t.Errorf("its name is %s", got.Name())
			}
		})
	}
}

func TestInvalidPartNamesAreRefused(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	tests := map[string]string{
		"nothing":            "",
		"no number":          hash,
		"number 0":           hash + "-000of001",
		"number over all":    hash + "-002of001",
		"two digits":         hash + "-01of01",
		"four digits":        hash + "-0001of0001",
		"a sign":             hash + "-+01of+02",
		"upper case":         strings.ToUpper(hash) + "-001of001",
		"a shorter hash":     hash[1:] + "-001of001",
		"a folder before it": "x/" + hash + "-001of001",
		"a line feed":        hash + "-001of001\n",
		"other digits":       hash + "-00١of001",
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if p, err := ParsePart(test); err == nil {
				t.Errorf("taken for %v", p)
			}
		})
	}
}

func TestPartsOfAContent(t *testing.T) {
	tests := map[string]struct {
		stored int64
		want   []int64
	}{
		"one byte":          {1, []int64{1}},
		"a whole part":      {PartSize, []int64{PartSize}},
		"a part and a byte": {PartSize + 1, []int64{PartSize, 1}},
		"two whole parts":   {2 * PartSize, []int64{PartSize, PartSize}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := Content{Stored: test.stored}
			var got []int64
			for i := range c.Parts() {
				got = append(got, c.PartSize(i+1))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInvalidContentsAreRefused(t *testing.T) {
	good := Content{Digest: bundle.Of([]byte("x")), SHA256: sum([]byte("x")), Size: 1, Stored: 10}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*Content){
		"masked":                        func(c *Content) { c.Digest = bundle.Masked },
		"no digest":                     func(c *Content) { c.Digest = "" },
		"another algorithm":             func(c *Content) { c.Digest = bundle.Digest("sha512:" + strings.Repeat("00", 64)) },
		"no SHA-256":                    func(c *Content) { c.SHA256 = "" },
		"the SHA-256 of something else": func(c *Content) { c.SHA256 = sum([]byte("y")) },
		"upper case":                    func(c *Content) { c.Digest, c.SHA256 = key.Of(nil), strings.ToUpper(c.SHA256) },
		"a size below zero":             func(c *Content) { c.Size = -1 },
		"stored in nothing":             func(c *Content) { c.Stored = 0 },
		"stored in less than nothing":   func(c *Content) { c.Stored = -1 },
		"more parts than names":         func(c *Content) { c.Stored = MaxParts*PartSize + 1 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := good
			change(&c)
			if err := c.Validate(); err == nil {
				t.Errorf("%+v is taken", c)
			}
		})
	}
}
