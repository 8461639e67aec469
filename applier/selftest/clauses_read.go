package selftest

import (
	"errors"
	"io/fs"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

var readClauses = []Clause{
	{"a path that does not exist is absent to Stat and fs.ErrNotExist to Open", func(t *trial) {
		t.write(t.path("file"), "text")
		for _, path := range []string{t.path("none"), t.path(`none\below`), t.path(`file\below`)} {
			t.equal(plan.FileInfo{Path: path}, t.stat(path))
			t.equal("(absent)", t.read(path))
		}
	}},
	{"Stat keeps the order of the paths", func(t *trial) {
		t.write(t.path("b"), "1")
		t.ok(t.host.MakeDirectory(t.Context(), t.path("a"), bundle.AccessUsers))
		paths := []string{t.path("b"), t.path("none"), t.path("a"), t.path("B")}
		infos, err := t.host.Stat(t.Context(), paths)
		t.ok(err)
		var got []string
		for _, i := range infos {
			got = append(got, i.Path+" "+string(i.Kind))
		}
		t.equal([]string{paths[0] + " file", paths[1] + " ", paths[2] + " directory", paths[3] + " file"}, got)
	}},
	{"Stat of no paths returns nothing", func(t *trial) {
		infos, err := t.host.Stat(t.Context(), nil)
		t.ok(err)
		t.equal(0, len(infos))
	}},
	{"a file has a size and a modification time", func(t *trial) {
		t.write(t.path("file"), "12345")
		got := t.stat(t.path("file"))
		t.equal(int64(5), got.Size)
		t.equal(false, got.Modified.IsZero())
	}},
	{"a file keeps its ID until another file replaces it", func(t *trial) {
		t.write(t.path("file"), "old")
		old := t.stat(t.path("file"))
		t.write(t.path("other"), "other")
		t.equal(old.ID, t.stat(t.path("FILE")).ID)
		t.equal(false, old.ID == t.stat(t.path("other")).ID)
		// A second name keeps the old file, so that its ID is not given to the new one.
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("kept")))
		t.write(t.path("file"), "new")
		t.equal(false, old.ID == t.stat(t.path("file")).ID)
	}},
	{"List is sorted by name and does not descend", func(t *trial) {
		for _, name := range []string{"b", "A", "c", "10", "9", "a b"} {
			t.write(t.path(name), name)
		}
		t.ok(t.host.MakeDirectory(t.Context(), t.path("Bd"), bundle.AccessUsers))
		t.write(t.path(`Bd\deep`), "deep")
		t.equal([]string{"10", "9", "A", "a b", "b", "Bd", "c"}, t.list())
		t.equal([]string{"deep"}, t.list("Bd"))
	}},
	{"List and Stat return the same", func(t *trial) {
		t.write(t.path("file"), "text")
		infos, err := t.host.List(t.Context(), t.fixture.Folder())
		t.ok(err)
		t.equal([]plan.FileInfo{t.stat(t.path("file"))}, infos)
	}},
	{"List of a missing folder or of a file is empty", func(t *trial) {
		t.write(t.path("file"), "text")
		t.equal([]string(nil), t.list("none"))
		t.equal([]string(nil), t.list("none", "below"))
		t.equal([]string(nil), t.list("file"))
	}},
	{"a folder cannot be opened", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		f, err := t.host.Open(t.Context(), t.path("folder"))
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			t.ok(f.Close())
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}},
	{"file names are case-insensitive and keep their case", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("Folder"), bundle.AccessUsers))
		t.write(t.path(`FOLDER\Kubelet.conf`), "old")
		t.write(t.path(`folder\kubelet.CONF`), "new")
		t.ok(t.host.MakeDirectory(t.Context(), t.path("FOLDER"), bundle.AccessUsers))
		t.equal("new", t.read(t.path(`folder\KUBELET.conf`)))
		t.equal([]string{"Folder"}, t.list())
		got := t.list("folder")
		if len(got) != 1 || !strings.EqualFold(got[0], "kubelet.conf") {
			t.Errorf("got %q", got)
		}
		t.ok(t.host.Remove(t.Context(), t.path(`FOLDER\KUBELET.CONF`)))
		t.equal([]string(nil), t.list("Folder"))
	}},
}
