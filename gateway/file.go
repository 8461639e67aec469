package gateway

import (
	"io/fs"
	"sync"
	"time"

	"wmco/gateway/places"
)

// File reads the table. On a node, Stat and Read are os.Stat and os.ReadFile for the path places.File.
type File struct {
	Stat func() (fs.FileInfo, error)
	Read func() ([]byte, error)
}

// follower has the table of the file as it is now. The engine replaces the file as a whole, with another time (NTFS counts in 100 ns:
// learn.microsoft.com/windows/win32/sysinfo/file-times).
type follower struct {
	file File

	mu       sync.Mutex
	modified time.Time
	size     int64
	failed   string
}

// refreshTable reads the file again if it has changed. A file that cannot be used changes nothing.
func (h *Handler) refreshTable() {
	f := &h.follower
	if f.file.Stat == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.file.Stat()
	if err == nil && info.ModTime().Equal(f.modified) && info.Size() == f.size {
		return
	}
	var t places.Table
	if err == nil {
		var data []byte
		if data, err = f.file.Read(); err == nil {
			t, err = places.Decode(data)
		}
		f.modified, f.size = info.ModTime(), info.Size()
	}
	if err != nil {
		if text := err.Error(); text != f.failed {
			h.log.Error("the places of images cannot be read; the last ones stay in force", "error", err)
			f.failed = text
		}
		return
	}
	f.failed = ""
	h.SetTable(t)
	h.log.Info("the places of images have changed", "registries", len(t.Registries), "routed", t.Routed)
}
