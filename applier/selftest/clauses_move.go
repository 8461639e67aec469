package selftest

import (
	"context"
	"errors"
	"io/fs"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

var moveClauses = []Clause{
	{"a folder is moved with everything in it, and keeps its access", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessAdmins))
		t.ok(t.host.MakeDirectory(t.Context(), t.path("other"), bundle.AccessUsers))
		t.ok(t.host.MakeDirectory(t.Context(), t.path(`folder\in it`), bundle.AccessUsers))
		t.write(t.path(`folder\in it\file`), "text")
		t.ok(t.host.Move(t.Context(), t.path("FOLDER"), t.path(`other\Moved`)))
		t.equal([]string{"other"}, t.list())
		t.equal([]string{"Moved"}, t.list("other"))
		t.equal("text", t.read(t.path(`other\moved\in it\file`)))
		t.access(bundle.AccessAdmins, `other\moved`)
		t.access(bundle.AccessUsers, `other\moved\in it`)
	}},
	{"a file is moved", func(t *trial) {
		t.write(t.path("file"), "text")
		t.ok(t.host.Move(t.Context(), t.path("file"), t.path("moved")))
		t.equal([]string{"moved"}, t.list())
		t.equal("text", t.read(t.path("moved")))
	}},
	{"Move replaces nothing", func(t *trial) {
		t.write(t.path("file"), "text")
		t.write(t.path("there"), "old")
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		for _, to := range []string{"there", "folder"} {
			t.refused(t.host.Move(t.Context(), t.path("file"), t.path(to)), applier.FileBroken, applier.FileDenied)
		}
		t.equal("old", t.read(t.path("there")))
		t.equal([]string{"file", "folder", "there"}, t.list())
	}},
	{"Move needs what it moves, and the parent folder", func(t *trial) {
		if err := t.host.Move(t.Context(), t.path("none"), t.path("moved")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		t.write(t.path("file"), "text")
		t.refused(t.host.Move(t.Context(), t.path("file"), t.path(`none\moved`)), applier.FileBroken)
		t.equal([]string{"file"}, t.list())
	}},
	{"a folder in which a program runs is not moved", func(t *trial) {
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessUsers))
		end := need[OtherPrograms](t).RunProgram(t, t.path(`folder\program.exe`))
		t.refused(t.host.Move(t.Context(), t.path("folder"), t.path("moved")), applier.FileDenied, applier.FileLocked)
		end()
		t.equal([]string{"folder"}, t.list())
	}},
}

// A clause about owners passes where the host does not know them. A file gets the default owner of the token of who
// makes it (learn.microsoft.com/windows/win32/secauthz/owner-of-a-new-object), which for administrators is the group
// Administrators (learn.microsoft.com/windows/win32/ad/how-security-descriptors-are-set-on-new-directory-objects).
var ownerClauses = []Clause{
	{"administrators own what the host makes, and it can be trusted if they alone have access", func(t *trial) {
		for _, access := range []bundle.Access{bundle.AccessUsers, bundle.AccessAdmins} {
			t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), access))
			t.ok(t.host.Write(t.Context(), t.path("file"), access, emptyReader{}))
			for _, name := range []string{"folder", "file"} {
				info := t.stat(t.path(name))
				if info.Owner != plan.OwnerAdmins && info.Owner != "" {
					t.Errorf("%s is owned by %q", name, info.Owner)
				}
				t.equal(access == bundle.AccessAdmins || info.Access == "", info.IsTrusted())
			}
		}
	}},
	{"what another user made is that user's until MakeDirectory takes it", func(t *trial) {
		need[Planter](t).PlantFolder(t, t.path("folder"))
		info := t.stat(t.path("folder"))
		t.equal(plan.OwnerOther, info.Owner)
		t.equal(plan.AccessOther, info.Access)
		t.equal(false, info.IsTrusted())
		t.ok(t.host.MakeDirectory(t.Context(), t.path("folder"), bundle.AccessAdmins))
		t.equal(true, t.stat(t.path("folder")).IsTrusted())
	}},
	{"the folder of the lock is refused while another user owns it", func(t *trial) {
		if t.stat(plan.StateFolder).Kind != plan.FileAbsent {
			t.Skip(plan.StateFolder + " exists already, and it is not given to another user")
		}
		need[Planter](t).PlantFolder(t, plan.StateFolder)
		t.cleanup(func(ctx context.Context, h applier.Host) error { return h.Remove(ctx, plan.StateFolder) })
		_, err := t.host.Lock(t.soon(), "too early")
		var refusal *applier.FileError
		if !errors.As(err, &refusal) {
			t.Errorf("got %v, want a *applier.FileError", err)
		}
		t.equal(plan.OwnerOther, t.stat(plan.StateFolder).Owner)
		t.ok(t.host.MakeDirectory(t.Context(), plan.StateFolder, bundle.AccessAdmins))
		release, err := t.host.Lock(t.soon(), "owner")
		t.ok(err)
		t.ok(release())
	}},
	{"what another user made stays that user's when it is moved", func(t *trial) {
		need[Planter](t).PlantFolder(t, t.path("folder"))
		t.ok(t.host.Move(t.Context(), t.path("folder"), t.path("moved")))
		t.equal(plan.OwnerOther, t.stat(t.path("moved")).Owner)
	}},
}
