package records

import (
	"context"
	"maps"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Cache remembers what files held, so that a host whose files have not been touched need not read 400 MB of them. It is
// believed as long as size, time of writing and identity of the file are the same; a full observation asks the files.
type Cache struct {
	Schema int                   `json:"schema"`
	Files  map[string]cachedFile `json:"files"`
	// dirty tells that it knows more than its file. What the file knows too much is never believed, and goes when it is next
	// written.
	dirty bool
}

type cachedFile struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	ID       string    `json:"id"`
	SHA256   string    `json:"sha256"`
}

// settled is how long before it was hashed a file must have been written for the hash to be remembered: one written again
// within the resolution of the file system's clock would keep its time. FAT resolves 2 s, NTFS 100 ns
// (learn.microsoft.com/windows/win32/sysinfo/file-times); the margin also covers clocks that step.
const settled = 3 * time.Second

func readCache(ctx context.Context, host Files) *Cache {
	c := &Cache{Schema: Schema}
	// Damaged, newer or not there: everything is read once.
	if err := Read(ctx, host, FileCache, "cache", c); err != nil || c.Schema != Schema || c.Files == nil {
		return &Cache{Schema: Schema, Files: map[string]cachedFile{}}
	}
	return c
}

// Lookup returns the sha256 of a file, empty if it is not known.
func (c *Cache) Lookup(f plan.FileInfo) string {
	have, ok := c.Files[bundle.FoldPath(f.Path)]
	if !ok || f.ID == "" || have.Size != f.Size || have.ID != f.ID || !have.Modified.Equal(f.Modified) {
		return ""
	}
	return have.SHA256
}

func (c *Cache) Store(f plan.FileInfo, sum string, now time.Time) {
	key := bundle.FoldPath(f.Path)
	if f.ID == "" || now.Sub(f.Modified) < settled {
		delete(c.Files, key)
		return
	}
	entry := cachedFile{Size: f.Size, Modified: f.Modified, ID: f.ID, SHA256: sum}
	if c.Lookup(f) != sum {
		c.Files[key] = entry
		c.dirty = true
	}
}

// Keep forgets all files but these.
func (c *Cache) Keep(paths map[string]bool) {
	maps.DeleteFunc(c.Files, func(path string, _ cachedFile) bool { return !paths[path] })
}
