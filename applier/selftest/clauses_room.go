package selftest

import (
	"bytes"
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// roomClauses are about how much can be written.
var roomClauses = []Clause{
	{"a drive says how much room it has", func(t *trial) {
		if free := t.free(); free <= 0 {
			t.Errorf("%d bytes are free", free)
		}
	}},
	{"a file takes its room, and gives it back when it is removed", func(t *trial) {
		release := need[DiskFiller](t).FillDisk(t, 4<<20)
		defer release()
		before, size := t.free(), int64(1<<20)
		if before > 4<<20 {
			t.Errorf("%d bytes are free", before)
		}
		t.write(t.path("file"), strings.Repeat("x", int(size)))
		if now := t.free(); now > before-size {
			t.Errorf("%d bytes are free, %d before", now, before)
		}
		t.ok(t.host.Remove(t.Context(), t.path("file")))
		if now := t.free(); now <= before-size {
			t.Errorf("%d bytes are free after the removal, %d before", now, before)
		}
	}},
	{"a file for which there is no room changes nothing and leaves no file", func(t *trial) {
		t.write(t.path("old"), "old")
		release := need[DiskFiller](t).FillDisk(t, 1<<20)
		large := bytes.Repeat([]byte("x"), 2<<20)
		for _, name := range []string{"old", "new"} {
			t.refused(t.host.Write(t.Context(), t.path(name), bundle.AccessUsers, bytes.NewReader(large)), applier.FileDiskFull)
		}
		t.equal("old", t.read(t.path("old")))
		t.equal([]string{"old"}, t.list())
		release()
		t.ok(t.host.Write(t.Context(), t.path("new"), bundle.AccessUsers, bytes.NewReader(large)))
	}},
}

func (t *trial) free() int64 {
	t.Helper()
	free, err := t.host.Free(t.Context())
	t.ok(err)
	return free
}
