package selftest

import (
	"errors"
	"io/fs"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

var folderClauses = []Clause{
	{"MakeDirectory needs the parent folder", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		t.ok(t.host.MakeDirectory(t.Context(), t.path(`folder\in it`), bundle.AccessUsers))
		t.equal(plan.FileDirectory, t.stat(t.path(`folder\in it`)).Kind)
		t.refused(t.host.MakeDirectory(t.Context(), t.path(`none\in it`), bundle.AccessUsers), applier.FileBroken)
		t.equal([]string{"folder"}, t.list())
	}},
	{"MakeDirectory keeps the contents of an existing folder", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		t.write(t.path(`folder\file`), "text")
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessAdmins))
		t.equal("text", t.read(t.path(`folder\file`)))
	}},
	{"a folder does not replace a file", func(t *trial) {
		t.write(t.path("file"), "text")
		t.refused(t.host.MakeDirectory(t.Context(), t.path("file"), bundle.AccessUsers), applier.FileBroken)
		t.equal("text", t.read(t.path("file")))
	}},
	{"an empty folder is removed, a non-empty one is not", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		t.write(t.path(`folder\file`), "text")
		t.refused(t.host.Remove(t.Context(), t.path("folder")), applier.FileBroken)
		t.equal("text", t.read(t.path(`folder\file`)))
		t.ok(t.host.Remove(t.Context(), t.path(`folder\file`)))
		t.ok(t.host.Remove(t.Context(), t.path("folder")))
		t.equal([]string(nil), t.list())
	}},
	{"removing a path that does not exist is no error", func(t *trial) {
		t.write(t.path("file"), "text")
		for _, name := range []string{"none", `none\below`, `file\below`} {
			t.ok(t.host.Remove(t.Context(), t.path(name)))
		}
		t.equal([]string{"file"}, t.list())
	}},
}

var linkClauses = []Clause{
	{"a hard link keeps the contents when the first name is replaced or removed", func(t *trial) {
		t.write(t.path("file"), "old")
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("second")))
		t.equal(t.stat(t.path("file")).ID, t.stat(t.path("second")).ID)
		t.write(t.path("file"), "new")
		t.equal("old", t.read(t.path("second")))
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("third")))
		t.ok(t.host.Remove(t.Context(), t.path("file")))
		t.equal("new", t.read(t.path("third")))
		t.equal([]string{"second", "third"}, t.list())
	}},
	{"Link replaces an existing file", func(t *trial) {
		t.write(t.path("file"), "text")
		t.write(t.path("second"), "in the way")
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("second")))
		t.equal("text", t.read(t.path("second")))
		t.equal([]string{"file", "second"}, t.list())
	}},
	{"linking twice is no error and leaves no other file", func(t *trial) {
		t.write(t.path("file"), "text")
		for range 2 {
			t.ok(t.host.Link(t.Context(), t.path("file"), t.path("second")))
		}
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("file")))
		t.equal("text", t.read(t.path("file")))
		t.equal([]string{"file", "second"}, t.list())
	}},
	{"Link needs the file and the parent folder", func(t *trial) {
		if err := t.host.Link(t.Context(), t.path("none"), t.path("second")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		t.write(t.path("file"), "text")
		t.refused(t.host.Link(t.Context(), t.path("file"), t.path(`none\second`)), applier.FileBroken)
		t.equal([]string{"file"}, t.list())
	}},
	{"a symbolic link or junction is neither file nor folder and is not followed", func(t *trial) {
		t.linked()
		t.equal(plan.FileOther, t.stat(t.path("link")).Kind)
		t.equal([]string(nil), t.list("link"))
		if f, err := t.host.Open(t.Context(), t.path("link")); err == nil {
			t.ok(f.Close())
			t.Error("a link was opened")
		}
	}},
	{"removing a symbolic link or junction keeps its target", func(t *trial) {
		t.linked()
		t.ok(t.host.Remove(t.Context(), t.path("link")))
		t.equal([]string{"folder"}, t.list())
		t.equal("text", t.read(t.path(`folder\file`)))
	}},
	{"neither a file nor a folder replaces a symbolic link or junction", func(t *trial) {
		t.linked()
		err := t.host.Write(t.Context(), t.path("link"), bundle.AccessUsers, strings.NewReader("new"))
		t.refused(err, applier.FileBroken, applier.FileDenied)
		t.refused(t.host.MakeDirectory(t.Context(), t.path("link"), bundle.AccessAdmins), applier.FileBroken, applier.FileDenied)
		t.equal(plan.FileOther, t.stat(t.path("link")).Kind)
		t.access(bundle.AccessUsers, "folder")
		t.equal([]string{"folder", "link"}, t.list())
	}},
}

// linked makes a folder with a file, and a link to the folder.
func (t *trial) linked() {
	t.Helper()
	maker := need[LinkMaker](t)
	t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
	t.write(t.path(`folder\file`), "text")
	maker.MakeLink(t, t.path("link"), t.path("folder"))
}

var otherProgramClauses = []Clause{
	{"a read-only file is replaced and removed", func(t *trial) {
		others := need[OtherPrograms](t)
		t.write(t.path("file"), "old")
		others.MakeReadOnly(t, t.path("file"))
		t.write(t.path("file"), "new")
		t.equal("new", t.read(t.path("file")))
		others.MakeReadOnly(t, t.path("file"))
		t.ok(t.host.Remove(t.Context(), t.path("file")))
		t.equal([]string(nil), t.list())
	}},
	{"a read-only second name is replaced", func(t *trial) {
		others := need[OtherPrograms](t)
		t.write(t.path("file"), "text")
		t.write(t.path("second"), "in the way")
		others.MakeReadOnly(t, t.path("second"))
		t.ok(t.host.Link(t.Context(), t.path("file"), t.path("second")))
		t.equal("text", t.read(t.path("second")))
	}},
	{"a file that is open without sharing is neither read, replaced nor removed, and no other file stays", func(t *trial) {
		t.write(t.path("file"), "old")
		release := need[OtherPrograms](t).HoldOpen(t, t.path("file"))
		t.refused(t.host.Write(t.soon(), t.path("file"), bundle.AccessUsers, strings.NewReader("new")), applier.FileLocked)
		t.refused(t.host.Remove(t.soon(), t.path("file")), applier.FileLocked)
		_, err := t.host.Open(t.soon(), t.path("file"))
		t.refused(err, applier.FileLocked)
		t.equal(plan.FileRegular, t.stat(t.path("file")).Kind)
		t.equal([]string{"file"}, t.list())
		release()
		t.equal("old", t.read(t.path("file")))
		t.write(t.path("file"), "new")
		t.equal("new", t.read(t.path("file")))
	}},
	{"a running program is replaced, and the old one is moved aside until it ends", func(t *trial) {
		end := need[OtherPrograms](t).RunProgram(t, t.path("program.exe"))
		t.write(t.path("program.exe"), "new")
		t.equal("new", t.read(t.path("program.exe")))
		aside := t.aside("program.exe")
		t.refused(t.host.Remove(t.Context(), aside), applier.FileLocked, applier.FileDenied)
		t.write(t.path("program.exe"), "newer")
		t.equal("newer", t.read(t.path("program.exe")))
		end()
		t.ok(t.host.Remove(t.Context(), aside))
		t.equal([]string{"program.exe"}, t.list())
	}},
	{"a running program is removed by moving it aside until it ends", func(t *trial) {
		end := need[OtherPrograms](t).RunProgram(t, t.path("program.exe"))
		t.ok(t.host.Remove(t.Context(), t.path("program.exe")))
		aside := t.aside()
		end()
		t.ok(t.host.Remove(t.Context(), aside))
		t.equal([]string(nil), t.list())
	}},
	{"a running program is replaced while an older one is still aside", func(t *trial) {
		others := need[OtherPrograms](t)
		end := others.RunProgram(t, t.path("program.exe"))
		t.ok(t.host.Remove(t.Context(), t.path("program.exe")))
		endSecond := others.RunProgram(t, t.path("program.exe"))
		t.write(t.path("program.exe"), "new")
		leftovers, rest := t.leftovers()
		t.equal(2, len(leftovers))
		t.equal([]string{"program.exe"}, rest)
		end()
		endSecond()
	}},
}

// aside returns the one path that a host left in the folder of the fixture beside the names.
func (t *trial) aside(names ...string) string {
	t.Helper()
	leftovers, others := t.leftovers()
	t.equal(names, others)
	if len(leftovers) != 1 {
		t.Fatalf("%q are left, want one", leftovers)
	}
	return t.path(leftovers[0])
}

var lockClauses = []Clause{
	{"the error of a second lock names the owner of the first", func(t *trial) {
		release, err := t.host.Lock(t.Context(), "first owner")
		t.ok(err)
		second := t.fixture.Host(t)
		_, err = second.Lock(t.soon(), "second owner")
		var locked *applier.LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("got %v, want a *applier.LockedError", err)
		}
		t.equal("first owner", locked.Owner)
		t.ok(release())
		release, err = second.Lock(t.Context(), "second owner")
		t.ok(err)
		t.ok(release())
	}},
	{"the lock of a process that has ended is free", func(t *trial) {
		need[LockAbandoner](t).AbandonLock(t, "killed process")
		release, err := t.host.Lock(t.soon(), "next process")
		t.ok(err)
		t.ok(release())
	}},
}
