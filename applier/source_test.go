package applier_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// largeProgram is one whose only part is written while others are read.
const largeProgram = `C:\k\large.exe`

// withLargeProgram returns a node of which some parts are small and one is large.
func withLargeProgram() node {
	return newNode().Changed(func(n *node) {
		data := make([]byte, 2<<20)
		_, _ = rand.NewChaCha8([32]byte{3}).Read(data) // documented to return no error
		n.Programs[largeProgram] = string(data)
	})
}

// delivery has all contents of the node, in this process.
func delivery(t testing.TB, n node) *archive.Delivery {
	t.Helper()
	d, err := archive.All(n.Contents(t)).Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAStreamAndADeliveryMakeTheSameHost: it does not matter to the engine whether contents were packed.
func TestAStreamAndADeliveryMakeTheSameHost(t *testing.T) {
	t.Parallel()
	n := withLargeProgram()
	streamed, delivered := newMachine(), newMachine()
	if _, err := streamed.engine().Apply(t.Context(), n.Manifest(t), reader(t, n, n.Needs(t)), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	o, err := delivered.engine().Apply(t.Context(), n.Manifest(t), delivery(t, n), applier.Options{})
	if err != nil || o.Result != protocol.ResultApplied {
		t.Fatalf("%v, %+v", err, o)
	}
	if diff := differs(streamed.Snapshot(), delivered.Snapshot()); diff != "" {
		t.Errorf("(-stream +delivery):\n%s", diff)
	}
	stream := streamed.observe(t, n)
	here, err := delivered.engine().Observe(t.Context(), n.Manifest(t), delivery(t, n).Contents(), false)
	if err != nil || !here.InSync || !stream.InSync {
		t.Errorf("%v, %+v, %+v", err, stream, here)
	}
}

// liar is a ContentSource that returns whatever a test makes of the contents of a node.
type liar struct {
	contents []archive.Content
	parts    []liarPart
	// end is what Next returns after the parts; nil is io.EOF.
	end error
}

type liarPart struct {
	archive.Part

	data io.Reader
}

func newLiar(t testing.TB, n node) *liar {
	t.Helper()
	d := delivery(t, n)
	l := &liar{contents: slices.Clone(d.Contents())}
	for {
		part, data, err := d.Next()
		if errors.Is(err, io.EOF) {
			return l
		}
		stored, err := io.ReadAll(errorReader{data, err})
		if err != nil {
			t.Fatal(err)
		}
		l.parts = append(l.parts, liarPart{part, bytes.NewReader(stored)})
	}
}

// errorReader reads nothing if there is an error.
type errorReader struct {
	io.Reader
	err error
}

func (r errorReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.Reader.Read(p)
}

// Contents implements applier.ContentSource.
func (l *liar) Contents() []archive.Content { return l.contents }

// Next implements applier.ContentSource.
func (l *liar) Next() (archive.Part, io.Reader, error) {
	if len(l.parts) > 0 {
		p := l.parts[0]
		l.parts = l.parts[1:]
		return p.Part, p.data, nil
	}
	if l.end != nil {
		return archive.Part{}, nil, l.end
	}
	return archive.Part{}, nil, io.EOF
}

// of returns the index of the part of a program in the list.
func (l *liar) of(text string) int {
	sum := strings.TrimPrefix(string(bundle.Of([]byte(text))), "sha256:")
	return slices.IndexFunc(l.parts, func(p liarPart) bool { return p.SHA256 == sum })
}

// zeros is a part that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// TestAListOfContentsThatLiesIsRefused: no run and no question begins with it.
func TestAListOfContentsThatLiesIsRefused(t *testing.T) {
	t.Parallel()
	program := newNode().Programs[`C:\k\kubelet.exe`]
	at := func(l *liar) *archive.Content {
		return &l.contents[slices.IndexFunc(l.contents, func(c archive.Content) bool { return c.Digest == bundle.Of([]byte(program)) })]
	}
	for name, test := range map[string]struct {
		lie  func(*liar)
		want string
	}{
		"a content that the manifest does not name": {func(l *liar) {
			*at(l) = archive.Content{Digest: bundle.Of([]byte("other")), SHA256: strings.TrimPrefix(string(bundle.Of([]byte("other"))), "sha256:"), Size: 5, Stored: 5}
			slices.SortFunc(l.contents, func(a, b archive.Content) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
		}, "the manifest does not name content"},
		"a content twice":       {func(l *liar) { l.contents = slices.Insert(l.contents, 0, l.contents[0]) }, "listed twice or out of order"},
		"contents out of order": {func(l *liar) { slices.Reverse(l.contents) }, "listed twice or out of order"},
		"another size":          {func(l *liar) { at(l).Size++ }, "the manifest has"},
		"another SHA-256":       {func(l *liar) { at(l).SHA256 = strings.Repeat("0", 64) }, "its SHA-256 does not match"},
		"a SHA-256 with a path": {func(l *liar) { at(l).SHA256 = `..\..\x` }, "its SHA-256 is not 64 hex digits"},
		"a content of 8 EiB":    {func(l *liar) { at(l).Stored = 1<<63 - 1 }, "its stored size is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, n, ctx := newMachine(), newNode(), t.Context()
			lying := newLiar(t, n)
			test.lie(lying)
			before, e, manifest := m.Snapshot(), m.engine(), n.Manifest(t)
			_, applied := e.Apply(ctx, manifest, lying, applier.Options{})
			_, planned := e.Apply(ctx, manifest, lying, applier.Options{DryRun: true})
			_, staged := e.Stage(ctx, manifest, lying, time.Minute)
			_, observed := e.Observe(ctx, manifest, lying.Contents(), false)
			_, changes := e.ObserveChanges(ctx, manifest, lying.Contents())
			_, verified := e.Verify(ctx, manifest, lying.Contents())
			for what, err := range map[string]error{"apply": applied, "dry run": planned, "stage": staged, "observe": observed, "observe changes": changes, "verify": verified} {
				if !errors.Is(err, archive.ErrMalformed) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: error %v, want %q", what, err, test.want)
				}
			}
			if diff := differs(before, m.Snapshot()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPartsThatAreNotWhatTheListSaysAreRefused: before anything on the host changes.
func TestPartsThatAreNotWhatTheListSaysAreRefused(t *testing.T) {
	t.Parallel()
	n := withLargeProgram()
	small, large := n.Programs[`C:\k\kubelet.exe`], n.Programs[largeProgram]
	replace := func(l *liar, text string, change func([]byte) io.Reader) {
		p := &l.parts[l.of(text)]
		data, _ := io.ReadAll(p.data) // of memory
		p.data = change(data)
	}
	short := func(data []byte) io.Reader { return bytes.NewReader(data[:len(data)-1]) }
	long := func(data []byte) io.Reader { return io.MultiReader(bytes.NewReader(data), zeros{}) }
	broken := func(data []byte) io.Reader {
		return io.MultiReader(bytes.NewReader(data[:len(data)/2]), errorReader{err: errors.New("the source is broken")})
	}
	other := func(data []byte) io.Reader {
		data[len(data)-1] ^= 1
		return bytes.NewReader(data)
	}
	for name, test := range map[string]struct {
		lie  func(*liar)
		want string
	}{
		"a part of no content":      {func(l *liar) { l.parts[0].SHA256 = strings.Repeat("0", 64) }, "a part is of no content in the list"},
		"a part twice":              {func(l *liar) { l.parts = slices.Insert(l.parts, 1, l.parts[0]) }, "is repeated or out of order"},
		"parts out of order":        {func(l *liar) { slices.Reverse(l.parts) }, "is repeated or out of order"},
		"a part that is too many":   {func(l *liar) { l.parts[0].Index = 2 }, "there is no part 2 of 1"},
		"a part of another number":  {func(l *liar) { l.parts[0].Of = 2 }, "there is no part 1 of 2"},
		"a part with a path":        {func(l *liar) { l.parts[0].SHA256 = `..\..\x` }, "a part is of no content in the list"},
		"a small part, too short":   {func(l *liar) { replace(l, small, short) }, io.ErrUnexpectedEOF.Error()},
		"a large part, too short":   {func(l *liar) { replace(l, large, short) }, io.ErrUnexpectedEOF.Error()},
		"a small part, endless":     {func(l *liar) { replace(l, small, long) }, "more bytes than listed"},
		"a large part, endless":     {func(l *liar) { replace(l, large, long) }, "more bytes than listed"},
		"a small part that breaks":  {func(l *liar) { replace(l, small, broken) }, "the source is broken"},
		"a large part that breaks":  {func(l *liar) { replace(l, large, broken) }, "the source is broken"},
		"a small part, other bytes": {func(l *liar) { replace(l, small, other) }, "corrupt"},
		"a large part, other bytes": {func(l *liar) { replace(l, large, other) }, "corrupt"},
		"a source that breaks":      {func(l *liar) { l.end = errors.New("the source is broken") }, "the source is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			lying := newLiar(t, n)
			test.lie(lying)
			before := m.place()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			o, err := m.engine().Apply(ctx, n.Manifest(t), lying, applier.Options{})
			if err == nil || o.Result != protocol.ResultRefused || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, result %s; want a refusal with %q", err, o.Result, test.want)
			}
			if diff := differs(before, m.place()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			m.mustApply(t, n) // what it has kept does not stand in the way of a source that does not lie
		})
	}
}

// TestAManifestThatDoesNotMatchItsDigestsIsRefused: one that was not read from a stream is checked as one that was.
func TestAManifestThatDoesNotMatchItsDigestsIsRefused(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(*bundle.Manifest){
		"an entry that its digest is not of": func(m *bundle.Manifest) { m.Layers[0].Layer.Files[0].Impact = bundle.ImpactReboot },
		"a layer of another digest": func(m *bundle.Manifest) {
			m.Layers[0].Digest = bundle.Of([]byte("other"))
		},
		"another digest": func(m *bundle.Manifest) { m.Digest = bundle.Of([]byte("other")) },
		"one layer":      func(m *bundle.Manifest) { m.Layers = m.Layers[:1] },
		"no schema":      func(m *bundle.Manifest) { m.Schema = 0 },
		"a newer schema": func(m *bundle.Manifest) { m.Schema = bundle.Schema + 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, n := newMachine(), newNode()
			source, manifest := delivery(t, n), n.Manifest(t)
			lie(&manifest)
			before := m.Snapshot()
			if o, err := m.engine().Apply(t.Context(), manifest, source, applier.Options{}); err == nil {
				t.Errorf("applied: %+v", o)
			}
			if _, err := m.engine().Observe(t.Context(), manifest, source.Contents(), false); err == nil {
				t.Error("observed")
			}
			if diff := differs(before, m.Snapshot()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
