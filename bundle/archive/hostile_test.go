package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// member is one member of a tar, well-formed or not.
type member struct {
	header tar.Header
	body   []byte
}

func regular(name string, body []byte) member {
	return member{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Format: tar.FormatUSTAR}, body}
}

func special(kind byte, name, target string) member {
	return member{header: tar.Header{Typeflag: kind, Name: name, Linkname: target, Format: tar.FormatUSTAR}}
}

// packed returns the members as a tar.
func packed(t testing.TB, members []member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		m.header.Size = int64(len(m.body))
		if err := w.WriteHeader(&m.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(m.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	compress(newStreamEncoder(&out), data)
	return out.Bytes()
}

// plain is a good stream, taken apart: the manifest, the list, the parts of a content of two parts and of a small one.
type plain struct {
	big, small []byte
	contents   []Content
	members    []member
}

func newPlain(t testing.TB) plain {
	t.Helper()
	p := plain{big: noise(PartSize + 100), small: []byte("small")}
	m := manifest(t, holding(p.big, p.small))
	s := newShelf(p.big, p.small)
	p.contents = everythingOf(m, s)
	encoded, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p.members = []member{regular(manifestMember, encoded), regular(indexMember, p.index(t, p.contents))}
	got := receive(bytes.NewReader(send(t, everything(m, s))))
	for _, name := range got.names {
		p.members = append(p.members, regular(partFolder+name, got.parts[name]))
	}
	return p
}

func everythingOf(m bundle.Manifest, s Source) []Content {
	return Request{Manifest: m, Source: s}.Contents()
}

func (p plain) index(t testing.TB, contents []Content) []byte {
	t.Helper()
	data, err := encodeIndex(contents)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// content returns the listed content of these bytes.
func (p plain) content(raw []byte) Content {
	return p.contents[slices.IndexFunc(p.contents, func(c Content) bool { return c.SHA256 == sum(raw) })]
}

// with returns the members with another list of contents and no parts.
func (p plain) with(index []byte) []member {
	return []member{p.members[0], regular(indexMember, index)}
}

// part returns the members with nothing but this as a part.
func (p plain) part(m member) []member { return append(slices.Clone(p.members[:2]), m) }

func TestUnexpectedMembersAreRefused(t *testing.T) {
	p := newPlain(t)
	manifest, index, big, small := p.members[0], p.members[1], p.content(p.big), p.content(p.small)
	part := partFolder + small.Part(1).Name()
	extended := member{tar.Header{Typeflag: tar.TypeReg, Name: part, Format: tar.FormatPAX, PAXRecords: map[string]string{"WMCO.x": "1"}}, []byte("x")}
	tests := map[string]struct {
		members []member
		want    string
	}{
		"nothing at all":                  {nil, "it ends before MANIFEST.json"},
		"no list":                         {[]member{manifest}, "it ends before contents.json"},
		"the list first":                  {[]member{index, manifest}, `found "contents.json" instead of MANIFEST.json`},
		"the manifest twice":              {[]member{manifest, manifest}, `found "MANIFEST.json" instead of contents.json`},
		"the list twice":                  {[]member{manifest, index, index}, `"contents.json" is no part`},
		"a member of another name":        {p.part(regular("other", nil)), `"other" is no part`},
		"a part in another folder":        {p.part(regular("other/"+small.Part(1).Name(), nil)), shownName("other/"+small.Part(1).Name()) + " is no part"},
		"a part in no folder":             {p.part(regular(small.Part(1).Name(), nil)), shownName(small.Part(1).Name()) + " is no part"},
		"a part that is no part":          {p.part(regular(partFolder+"x", nil)), `"x" is not the name of a part`},
		"a part without a name":           {p.part(regular(partFolder+"/x", nil)), `"/x" is not the name of a part`},
		"an absolute name":                {p.part(regular("/"+part, nil)), shownName("/"+part) + " is no part"},
		"a name with a drive":             {p.part(regular(`C:\k\kubelet.exe`, nil)), `"C:\\k\\kubelet.exe" is no part`},
		"a name that leads up":            {p.part(regular("../"+part, nil)), shownName("../"+part) + " is no part"},
		"a name that leads up, inside":    {p.part(regular(partFolder+"../x", nil)), `"../x" is not the name of a part`},
		"backslashes":                     {p.part(regular(`contents\x`, nil)), `"contents\\x" is no part`},
		"a folder":                        {p.part(special(tar.TypeDir, partFolder, "")), `"contents/" is not a regular file`},
		"a symbolic link":                 {p.part(special(tar.TypeSymlink, part, `C:\Windows`)), shownName(part) + " is not a regular file"},
		"a hard link":                     {p.part(special(tar.TypeLink, part, manifestMember)), shownName(part) + " is not a regular file"},
		"a character device":              {p.part(special(tar.TypeChar, part, "")), shownName(part) + " is not a regular file"},
		"a block device":                  {p.part(special(tar.TypeBlock, part, "")), shownName(part) + " is not a regular file"},
		"a pipe":                          {p.part(special(tar.TypeFifo, part, "")), shownName(part) + " is not a regular file"},
		"a manifest that is a link":       {[]member{special(tar.TypeSymlink, manifestMember, "x")}, `"MANIFEST.json" is not a regular file`},
		"an extended header":              {p.part(extended), shownName(part) + " has an extended header"},
		"a global extended header":        {p.part(member{header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "x"}}}), `"x" is not a regular file`},
		"a GNU header":                    {p.part(member{tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("x", 200), Format: tar.FormatGNU, ModTime: time.Unix(0, 0)}, nil}), `"` + strings.Repeat("x", 100) + `" has an extended header`},
		"a part of an unknown content":    {p.part(regular(partFolder+Part{strings.Repeat("0", 64), 1, 1}.Name(), nil)), "a part is of no content in the list"},
		"a part that is too many":         {p.part(regular(partFolder+Part{small.SHA256, 1, 2}.Name(), nil)), fmt.Sprintf("content %s has 1 part, there is no part 1 of 2", small.Digest)},
		"a part that is too short":        {p.part(regular(part, []byte("x"))), fmt.Sprintf("part 1 of content %s has 1 bytes, not %d", small.Digest, small.Stored)},
		"a part that is too long":         {p.part(regular(partFolder+big.Part(2).Name(), noise(PartSize))), fmt.Sprintf("part 2 of content %s has %d bytes, not %d", big.Digest, PartSize, big.PartSize(2))},
		"a part in the middle, too short": {p.part(regular(partFolder+big.Part(1).Name(), noise(10))), fmt.Sprintf("part 1 of content %s has 10 bytes, not %d", big.Digest, PartSize)},
		"a part twice":                    {slices.Insert(slices.Clone(p.members), 3, p.members[2]), "is repeated or out of order"},
		"parts out of order":              {[]member{manifest, index, p.members[4], p.members[3], p.members[2]}, "is repeated or out of order"},
		"a manifest that is no manifest":  {[]member{regular(manifestMember, []byte(`{"schema":1}`))}, "a manifest has a cluster layer and a node layer"},
		"a manifest of nothing":           {[]member{regular(manifestMember, nil)}, "reading manifest"},
		"a manifest of a newer program":   {[]member{regular(manifestMember, []byte(`{"schema":2}`))}, "use a newer wmco"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := receive(bytes.NewReader(zipped(t, packed(t, test.members))))
			if got.err == nil || errors.Is(got.err, io.EOF) || errors.Is(got.err, io.ErrUnexpectedEOF) || !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("it ends with %v, want %s", got.err, test.want)
			}
		})
	}
}

func TestInvalidContentListsAreRefused(t *testing.T) {
	p := newPlain(t)
	a, b, other := p.contents[0], p.contents[1], Content{Digest: bundle.Of([]byte("other")), SHA256: sum([]byte("other")), Size: 5, Stored: 5}
	change := func(f func(*Content)) []byte { c := a; f(&c); return p.index(t, []Content{c, b}) }
	good := string(p.index(t, []Content{a, b}))
	tests := map[string]struct {
		index []byte
		want  string
	}{
		"nothing":                      {nil, "the list of contents has no end"},
		"a list without an end":        {[]byte("[\n{"), "the list of contents has no end"},
		"no JSON":                      {[]byte("x"), "invalid character"},
		"something else":               {[]byte("null\n"), "not in its one form"},
		"a value instead of a content": {[]byte("[\n1\n]\n"), "cannot unmarshal number"},
		"an object of nothing":         {[]byte("[\n{}\n]\n"), `checking digest ""`},
		"another form":                 {[]byte(strings.ReplaceAll(good, "\n", "")), "not in its one form"},
		"something after it":           {[]byte(good + " "), "not in its one form"},
		"an unknown field":             {[]byte(strings.Replace(good, `"size"`, `"x":1,"size"`, 1)), "not in its one form"},
		"a field in capitals":          {[]byte(strings.Replace(good, `"size"`, `"SIZE"`, 1)), "not in its one form"},
		"a field twice":                {[]byte(strings.Replace(good, `"size"`, `"size":1,"size"`, 1)), "not in its one form"},
		"a content twice":              {p.index(t, []Content{a, a, b}), "is listed twice or out of order"},
		"contents out of order":        {p.index(t, []Content{b, a}), "is listed twice or out of order"},
		"a content of no entry":        {p.index(t, []Content{other}), "the manifest does not name content " + string(other.Digest)},
		"a masked content":             {change(func(c *Content) { c.Digest = bundle.Masked }), "masked"},
		"a digest of something else":   {change(func(c *Content) { c.SHA256 = b.SHA256 }), "its SHA-256 does not match"},
		"a SHA-256 that is a path":     {change(func(c *Content) { c.SHA256 = "../../x" }), "its SHA-256 is not 64 hex digits"},
		"another size":                 {change(func(c *Content) { c.Size++ }), fmt.Sprintf("has %d bytes, the manifest has %d", a.Size+1, a.Size)},
		"a stored size of nothing":     {change(func(c *Content) { c.Stored = 0 }), "its stored size is 0"},
		"a stored size of everything":  {change(func(c *Content) { c.Stored = 1<<63 - 1 }), "its stored size is 9223372036854775807"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := receive(bytes.NewReader(zipped(t, packed(t, p.with(test.index)))))
			if !errors.Is(got.err, ErrMalformed) || !strings.Contains(got.err.Error(), test.want) {
				t.Errorf("it ends with %v, want %s", got.err, test.want)
			}
		})
	}
}

func TestContentsWithTheSameHashAreSentOnce(t *testing.T) {
	b := example()
	m, s := manifest(t, b), fromBundle(t, b)
	contents := s.Contents()
	i := slices.IndexFunc(contents, func(c Content) bool { return c.Digest == key.Of([]byte("a")) })
	contents[i].Stored++
	_, err := NewWriter(io.Discard, m, contents)
	if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "have the same SHA-256 and other sizes") {
		t.Errorf("it ends with %v", err)
	}
}

func TestForeignTarsAreRefused(t *testing.T) {
	good := packed(t, newPlain(t).members[:2])
	open := good[:len(good)-2*tarBlock]
	blocks := func(n int) []byte { return make([]byte, n*tarBlock) }
	claims := slices.Clone(good)
	claim(claims, "77777777777") // 8 GiB
	negative := slices.Clone(good)
	claim(negative, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	tests := map[string]struct {
		tar  []byte
		want error
	}{
		"no end":                       {open, io.ErrUnexpectedEOF},
		"half an end":                  {slices.Concat(open, blocks(1)), io.ErrUnexpectedEOF},
		"a third block at the end":     {slices.Concat(open, blocks(3)), ErrMalformed},
		"something after the end":      {slices.Concat(good, good), ErrMalformed},
		"something in the end":         {slices.Concat(open, blocks(1), []byte(strings.Repeat("x", tarBlock))), ErrMalformed},
		"half a block":                 {slices.Concat(open, blocks(1)[:100]), io.ErrUnexpectedEOF},
		"no tar":                       {[]byte(strings.Repeat("x", 2*tarBlock)), ErrMalformed},
		"a manifest that claims 8 GiB": {claims, ErrMalformed},
		"a manifest that claims less than nothing": {negative, ErrMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := receive(bytes.NewReader(zipped(t, test.tar)))
			if !errors.Is(got.err, test.want) {
				t.Errorf("it ends with %v, want %v", got.err, test.want)
			}
		})
	}
}

// claim writes another size into the first header of a tar, and its checksum (POSIX pax, ustar Interchange Format).
func claim(data []byte, size string) {
	copy(data[124:136], size)
	copy(data[148:156], "        ")
	sum := 0
	for _, b := range data[:tarBlock] {
		sum += int(b)
	}
	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

func TestForeignStreamsAreRefused(t *testing.T) {
	good := zipped(t, packed(t, newPlain(t).members))
	var wide bytes.Buffer
	compress(newEncoder(&wide, zstd.WithWindowSize(2*maxWindow)), noise(1<<20))
	tests := map[string]struct {
		stream []byte
		want   error
	}{
		"nothing":                      {nil, io.ErrUnexpectedEOF},
		"neither zstd nor JSON":        {[]byte("PK"), ErrMalformed},
		"a begin of zstd":              {[]byte("(nothing more"), ErrMalformed},
		"garbage behind it":            {slices.Concat(good, []byte("garbage")), ErrMalformed},
		"itself behind it":             {slices.Concat(good, good), ErrMalformed},
		"another checksum":             {append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), ErrMalformed},
		"a window that is too large":   {wide.Bytes(), ErrMalformed},
		"a manifest larger than any":   {slices.Concat([]byte("{"), make([]byte, maxManifest)), ErrMalformed},
		"a bomb instead of a manifest": {bomb(t, regular(manifestMember, nil), maxManifest+1), ErrMalformed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := receive(bytes.NewReader(test.stream))
			if !errors.Is(got.err, test.want) {
				t.Errorf("it ends with %v, want %v", got.err, test.want)
			}
		})
	}
}

// bomb is a member of so many zeros.
func bomb(t testing.TB, m member, size int) []byte {
	t.Helper()
	m.body = make([]byte, size)
	return zipped(t, packed(t, []member{m}))
}

func TestErrorsDoNotShowTheHashOfASecret(t *testing.T) {
	b := example()
	m, s := manifest(t, b), fromBundle(t, b)
	contents := s.Contents()
	c := contents[slices.IndexFunc(contents, func(c Content) bool { return c.Digest == key.Of([]byte("http://u:p@proxy")) })]
	w, err := NewWriter(io.Discard, m, contents)
	if err != nil {
		t.Fatal(err)
	}
	unopened := Delivery{ctx: t.Context(), source: broken{open: func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }}, rest: []lacking{{content: c}}}
	_, decoding := io.ReadAll(Decode(strings.NewReader("x"), c))
	tests := map[string]error{
		"a part that is short":     w.WritePart(c.Part(1), strings.NewReader("x")),
		"a part that comes twice":  w.WritePart(c.Part(1), strings.NewReader("x")),
		"a part that is not there": w.WritePart(Part{c.SHA256, 2, 2}, strings.NewReader("x")),
		"a source that is broken":  unopened.openNext(),
		"a content that is broken": decoding,
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			if err == nil || strings.Contains(err.Error(), c.SHA256) || !strings.Contains(err.Error(), string(c.Digest)) {
				t.Errorf("want an error with %s and without %s:\n%v", c.Digest, c.SHA256, err)
			}
		})
	}
}

// The names of parts have the plain SHA-256 of contents, and a part may come where none is expected.
func TestAForeignStreamDoesNotMakeErrorsShowTheHashOfASecret(t *testing.T) {
	b := example()
	encoded, err := manifest(t, b).Encode()
	if err != nil {
		t.Fatal(err)
	}
	secret := sum([]byte("http://u:p@proxy"))
	name := Part{secret, 1, 1}.Name()
	first := regular(manifestMember, encoded)
	head := []member{first, regular(indexMember, []byte("[\n]\n"))}
	for what, members := range map[string][]member{
		"in place of the manifest": {regular(partFolder+name, nil)},
		"in place of the list":     {first, regular(partFolder+name, nil)},
		"of no content":            append(slices.Clone(head), regular(partFolder+name, nil)),
		"in another folder":        append(slices.Clone(head), regular("other/"+name, nil)),
		"that is none of so many":  append(slices.Clone(head), regular(partFolder+secret+"-002of001", nil)),
		"that has another end":     append(slices.Clone(head), regular(partFolder+name+".old", nil)),
		"in capitals":              append(slices.Clone(head), regular(partFolder+strings.ToUpper(name), nil)),
		"that is a link":           append(slices.Clone(head), special(tar.TypeSymlink, partFolder+name, "x")),
	} {
		got := receive(bytes.NewReader(zipped(t, packed(t, members))))
		if !errors.Is(got.err, ErrMalformed) || strings.Contains(strings.ToLower(got.err.Error()), secret) {
			t.Errorf("a part %s: %v", what, got.err)
		}
	}
}

func TestMembersHaveOneHeader(t *testing.T) {
	var got []tar.Header
	in := tar.NewReader(newUnzipped(bytes.NewReader(send(t, Request{Manifest: manifest(t, example()), Source: Join()}))))
	for h, err := in.Next(); err == nil; h, err = in.Next() {
		got = append(got, tar.Header{Typeflag: h.Typeflag, Name: h.Name, Mode: h.Mode, ModTime: h.ModTime.UTC(), Format: h.Format})
	}
	want := []tar.Header{
		{Typeflag: tar.TypeReg, Name: manifestMember, Mode: 0o600, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR},
		{Typeflag: tar.TypeReg, Name: indexMember, Mode: 0o600, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatUSTAR},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// An archive of a few kB holds a manifest of millions of empty entries.
func TestAnArchiveThatUnpacksToManyEntriesIsRefused(t *testing.T) {
	for _, entries := range []int{4 << 20, 20 << 20} {
		manifest := `{"schema":1,"layers":[{"layer":{"schema":1,"services":[{}` + strings.Repeat(",{}", entries) + `]}}]}`
		archive := zipped(t, packed(t, []member{regular("MANIFEST.json", []byte(manifest))}))
		if len(archive) > 100<<10 {
			t.Fatalf("the archive has %d bytes", len(archive))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := NewReader(bytes.NewReader(archive))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrMalformed) && !errors.Is(err, bundle.ErrTooLarge) {
			t.Errorf("%d entries: %v", entries, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
			t.Errorf("%d entries: %d MB were allocated", entries, used>>20)
		}
	}
}
