package simulation

import (
	"context"
	"io"

	"wmco/applier/plan"
)

// plenty is the room of a drive whose size the Script does not limit, in bytes.
const plenty = 64 << 30

// Free implements applier.Reader.
func (h *Host) Free(ctx context.Context) (int64, error) {
	s, err := h.state(ctx)
	if err != nil {
		return 0, err
	}
	return h.free(s)
}

// free returns the room that is left on the drive: its size without all files, of which one with several names counts
// once. What other programs wrote may exceed the size.
func (h *Host) free(s *State) (int64, error) {
	if s.Script.DiskBytes == 0 {
		return plenty, nil
	}
	used, err := h.used(Drive, map[string]bool{})
	return max(s.Script.DiskBytes-used, 0), err
}

// used returns the size of the files below a folder that are not in seen, by their IDs.
func (h *Host) used(folder string, seen map[string]bool) (int64, error) {
	infos, err := h.Own.Files.List(folder)
	var sum int64
	for _, f := range infos {
		switch {
		case f.Kind == plan.FileDirectory:
			below, failed := h.used(f.Path, seen)
			if failed != nil {
				return 0, failed
			}
			sum += below
		case f.Kind == plan.FileRegular && !seen[f.ID]:
			seen[f.ID] = true
			sum += f.Size
		}
	}
	return sum, err
}

// limited is content for a drive with so much room: a write beyond it is ERROR_DISK_FULL
// (learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-).
type limited struct {
	io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrDiskFull
	}
	return n, err
}
