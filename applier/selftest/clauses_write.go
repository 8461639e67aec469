package selftest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// errContent is the error in which contents end.
var errContent = errors.New("contents ended early")

var writeClauses = []Clause{
	{"a file has the contents that were written, from 0 bytes to 5 MiB", func(t *trial) {
		for _, size := range []int{0, 1, 4096, 5<<20 + 7} {
			want := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
			content := halfReader{bytes.NewReader(want)}
			t.ok(t.host.Write(t.Context(), t.path("file"), bundle.AccessUsers, content))
			if got := t.read(t.path("file")); got != string(want) {
				t.Errorf("%d bytes were written, %d other bytes were read", size, len(got))
			}
			t.equal(int64(size), t.stat(t.path("file")).Size)
		}
		t.equal([]string{"file"}, t.list())
	}},
	{"a file is replaced while it is read, and the reader keeps the old contents", func(t *trial) {
		t.write(t.path("file"), "old text")
		t.equal("old text", t.readAcross("file", func() { t.write(t.path("file"), "new") }))
		t.equal("new", t.read(t.path("file")))
		t.equal([]string{"file"}, t.list())
	}},
	{"a file is removed while it is read, and its name is free", func(t *trial) {
		t.write(t.path("file"), "old text")
		t.equal("old text", t.readAcross("file", func() {
			t.ok(t.host.Remove(t.Context(), t.path("file")))
			t.write(t.path("file"), "new")
		}))
		t.equal("new", t.read(t.path("file")))
	}},
	{"contents that end in an error change nothing and leave no file", func(t *trial) {
		t.write(t.path("old"), "old")
		for _, name := range []string{"old", "new"} {
			content := io.MultiReader(strings.NewReader("half"), failingReader{})
			err := t.host.Write(t.Context(), t.path(name), bundle.AccessUsers, content)
			if !errors.Is(err, errContent) {
				t.Errorf("%s: got %v, want the error of the contents", name, err)
			}
			var refusal *applier.FileError
			if errors.As(err, &refusal) {
				t.Errorf("%s: got %v, which is no error of the host", name, err)
			}
		}
		t.equal("old", t.read(t.path("old")))
		t.equal([]string{"old"}, t.list())
	}},
	{"a leftover under NewName is replaced", func(t *trial) {
		t.write(plan.NewName(t.path("FILE")), "a leftover that is longer than the text")
		t.write(t.path("file"), "text")
		t.equal("text", t.read(t.path("file")))
		t.equal([]string{"file"}, t.list())
	}},
	{"Write needs the parent folder", func(t *trial) {
		t.refused(t.host.Write(t.Context(), t.path(`none\file`), bundle.AccessUsers, strings.NewReader("text")), applier.FileBroken)
		t.write(t.path("file"), "text")
		t.refused(t.host.Write(t.Context(), t.path(`file\below`), bundle.AccessUsers, strings.NewReader("text")), applier.FileBroken)
		t.equal([]string{"file"}, t.list())
	}},
	{"a file does not replace a folder", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		err := t.host.Write(t.Context(), t.path("folder"), bundle.AccessUsers, strings.NewReader("text"))
		t.refused(err, applier.FileBroken, applier.FileDenied)
		t.equal(plan.FileDirectory, t.stat(t.path("folder")).Kind)
		t.equal([]string{"folder"}, t.list())
	}},
	{"names may have spaces, dots, any letters and the greatest length of a bundle", func(t *trial) {
		long := strings.Repeat("l", bundle.MaxPath-len(t.path("")))
		if len(long) > 200 {
			t.ok(t.host.MakeDirectory(t.Context(), t.path(long[:100]), bundle.AccessUsers))
			long = long[:100] + `\` + long[101:]
		}
		for _, name := range []string{"a b.txt", "a..b", ".hidden", "größe-日本", "%PATH%", "a'b", "[x]", "$(x)", long} {
			t.write(t.path(name), name)
			t.equal(name, t.read(t.path(name)))
			t.equal(plan.FileRegular, t.stat(t.path(name)).Kind)
		}
	}},
	{"CopyTruncate copies a file and empties it in place", func(t *trial) {
		t.write(t.path("log"), "old lines")
		before := t.stat(t.path("log"))
		t.write(t.path("log.1"), "older lines, which are more")
		t.ok(t.host.CopyTruncate(t.Context(), t.path("log"), t.path("log.1")))
		t.equal("", t.read(t.path("log")))
		t.equal("old lines", t.read(t.path("log.1")))
		t.equal(before.ID, t.stat(t.path("log")).ID)
		t.equal(before.Access, t.stat(t.path("log.1")).Access)
	}},
	{"CopyTruncate needs the file", func(t *trial) {
		if err := t.host.CopyTruncate(t.Context(), t.path("log"), t.path("log.1")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		t.equal([]string(nil), t.list())
	}},
}

// readAcross reads one byte of a file, calls between, and reads the rest.
func (t *trial) readAcross(name string, between func()) string {
	t.Helper()
	f, err := t.host.Open(t.Context(), t.path(name))
	t.ok(err)
	first := make([]byte, 1)
	_, err = io.ReadFull(f, first)
	t.ok(err)
	between()
	rest, err := io.ReadAll(f)
	t.ok(err)
	t.ok(f.Close())
	return string(first) + string(rest)
}

var accessClauses = []Clause{
	{"a file has the access of the last Write", func(t *trial) {
		for _, access := range []bundle.Access{bundle.AccessUsers, bundle.AccessAdmins, bundle.AccessUsers} {
			t.ok(t.host.Write(t.Context(), t.path("file"), access, strings.NewReader("text")))
			t.access(access, "file")
		}
	}},
	{"a folder has the access of the last MakeDirectory", func(t *trial) {
		for _, access := range []bundle.Access{bundle.AccessAdmins, bundle.AccessUsers, bundle.AccessAdmins} {
			t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), access))
			t.access(access, "folder")
		}
	}},
	{"users read files for users and not those for administrators", func(t *trial) {
		reader := need[AccessReader](t)
		t.ok(t.host.Write(t.Context(), t.path("users"), bundle.AccessUsers, strings.NewReader("text")))
		t.ok(t.host.Write(t.Context(), t.path("admins"), bundle.AccessAdmins, strings.NewReader("text")))
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessAdmins))
		t.equal(true, reader.UsersRead(t, t.path("users")))
		t.equal(false, reader.UsersRead(t, t.path("admins")))
		t.equal(false, reader.UsersRead(t, t.path("folder")))
	}},
	{"users never read a secret, not even while it replaces a public file", func(t *trial) {
		reader := need[AccessReader](t)
		t.write(t.path("file"), "public")
		beside := plan.NewName(t.path("file"))
		content := readerFunc(func(b []byte) (int, error) {
			if t.stat(beside).Kind == plan.FileRegular && reader.UsersRead(t, beside) {
				t.Error("users can read the secret while it is written")
			}
			return copy(b, "secret"), io.EOF
		})
		t.ok(t.host.Write(t.Context(), t.path("file"), bundle.AccessAdmins, content))
		t.equal(false, reader.UsersRead(t, t.path("file")))
	}},
	// Entries with the flags OI and CI are inherited
	// (learn.microsoft.com/windows/win32/secauthz/ace-inheritance-rules).
	{"what a program makes in a folder has the access of the folder", func(t *trial) {
		reader, maker := need[AccessReader](t), need[FileMaker](t)
		for access, users := range map[bundle.Access]bool{bundle.AccessUsers: true, bundle.AccessAdmins: false} {
			folder := t.path(string(access))
			t.ok(t.host.MakeDirectory(t.Context(), folder, access))
			maker.MakeFile(t, folder+`\file`)
			t.equal(users, reader.UsersRead(t, folder+`\file`))
		}
	}},
	{"a file that everybody may write to has access other", func(t *trial) {
		need[AccessOpener](t).OpenToAll(t, t.path("file"))
		t.equal(plan.AccessOther, t.stat(t.path("file")).Access)
		t.write(t.path("file"), "text")
		t.access(bundle.AccessUsers, "file")
	}},
}

func (t *trial) access(want bundle.Access, name string) {
	t.Helper()
	if got := t.stat(t.path(name)).Access; got != "" && got != want {
		t.Errorf("%s has access %q, want %q", name, got, want)
	}
}

// emptyReader has no contents.
type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// halfReader reads half of the requested bytes.
type halfReader struct{ from io.Reader }

func (h halfReader) Read(b []byte) (int, error) { return h.from.Read(b[:(len(b)+1)/2]) }

// failingReader has contents that end in an error.
type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errContent }
