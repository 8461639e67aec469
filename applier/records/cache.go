package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Cache holds the digests of files, so that a host whose files were not touched need not read 400 MB of them. A digest
// is used as long as size, modification time and identity of the file are the same. A full observation reads the files.
type Cache struct {
	Schema int                   `json:"schema"`
	Files  map[string]cachedFile `json:"files"`
	// dirty reports whether it has entries that its file lacks. Entries that only the file has are never used, and go
	// when it is written.
	dirty bool
}

type cachedFile struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	ID       string    `json:"id"`
	SHA256   string    `json:"sha256"`
}

// settled is how long a file must not have been written before its digest is kept: one that is written again within the
// resolution of the file system's clock would keep its time. FAT resolves 2 s, NTFS 100 ns
// (learn.microsoft.com/windows/win32/sysinfo/file-times); the margin also covers clocks that step.
const settled = 3 * time.Second

func readCache(ctx context.Context, host Files) *Cache {
	c := &Cache{Schema: sharedSchema}
	// Where it is damaged, newer or absent, everything is read once.
	if err := DecodeFile(ctx, host, FileCache, "cache", c); err != nil || c.Schema != sharedSchema || c.Files == nil {
		return &Cache{Schema: sharedSchema, Files: map[string]cachedFile{}}
	}
	return c
}

// LookupSum returns the sha256 of a file, empty if it is not known.
func (c *Cache) LookupSum(f plan.FileInfo) string {
	have, ok := c.Files[bundle.FoldPath(f.Path)]
	if !ok || f.ID == "" || have.Size != f.Size || have.ID != f.ID || !have.Modified.Equal(f.Modified) {
		return ""
	}
	return have.SHA256
}

// StoreSum keeps the digest of a file that was not written lately; now is the time of the host.
func (c *Cache) StoreSum(f plan.FileInfo, sum string, now time.Time) {
	key := bundle.FoldPath(f.Path)
	if f.ID == "" || now.Sub(f.Modified) < settled {
		delete(c.Files, key)
		return
	}
	entry := cachedFile{Size: f.Size, Modified: f.Modified, ID: f.ID, SHA256: sum}
	if c.LookupSum(f) != sum {
		c.Files[key] = entry
		c.dirty = true
	}
}

// KeepPaths removes the entries of all other files.
func (c *Cache) KeepPaths(paths map[string]bool) {
	maps.DeleteFunc(c.Files, func(path string, _ cachedFile) bool { return !paths[path] })
}

// SumFile returns the sha256 of a file in hex, empty for one that does not exist.
func SumFile(ctx context.Context, host Reader, path string) (string, error) {
	f, err := host.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	h := sha256.New()
	_, err = io.CopyBuffer(onlyWriter{h}, contextReader{ctx, f}, make([]byte, 256<<10))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// onlyWriter hides other methods, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
