package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"wmco/bundle"
)

// A file that has the same size twice, growPause apart, is of an upload that was interrupted. One that has grown
// growLooks times is of an upload that runs. That alone is no proof: on Windows the size in a listing may be behind
// while a file is open (Microsoft, FindFirstFileW, remarks). So the file is renamed as well, which Windows refuses
// while another program has it open without FILE_SHARE_DELETE.
const (
	growPause = 2 * time.Second
	growLooks = 3
)

// ErrOtherUpload means that another process uploads the same program to the host at the same time.
var ErrOtherUpload = errors.New("another upload to the host goes on with the file")

// waitFor waits, unless the context ends.
func waitFor(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// claimInterrupted renames the file with the most bytes that an interrupted upload of the program has left, and returns
// its new name and where to go on; empty if there is none. Of two uploads that find it, one can rename it. A file that
// grows is left to the upload that writes it, and if one that was frozen writes on after all, it writes the same bytes
// to the same places, and finds at its end that its file does not exist.
func (u upload) claimInterrupted(entries []fs.FileInfo) (name string, at int64, err error) {
	left := u.largestInterrupted(entries)
	for range growLooks {
		if left == nil {
			return "", 0, nil
		}
		if err := u.pause(); err != nil {
			return "", 0, err
		}
		if entries, err = u.Folder(path.Dir(u.target)); err != nil {
			return "", 0, fmt.Errorf("opening folder %s: %w", path.Dir(u.target), err)
		}
		before := left
		if left = findFile(entries, before.Name()); left != nil && left.Size() == before.Size() {
			return u.takeOver(left)
		}
	}
	return "", 0, nil
}

// takeOver gives a file another name, which no other upload knows; empty if that fails.
func (u upload) takeOver(left fs.FileInfo) (name string, at int64, err error) {
	if name, err = temporaryName(u.target); err != nil {
		return "", 0, err
	}
	if err := u.Replace(path.Join(path.Dir(u.target), left.Name()), name); err != nil {
		return "", 0, nil //nolint:nilerr // another upload was faster, or a program of the host holds it: it is left alone
	}
	return name, max(0, left.Size()-InFlight), nil
}

// largestInterrupted returns the file with the most bytes that an interrupted upload of the program may have left, nil
// if there is none.
func (u upload) largestInterrupted(entries []fs.FileInfo) fs.FileInfo {
	var most fs.FileInfo
	for _, e := range entries {
		mine := bundle.Temporary(e.Name()) && strings.HasPrefix(e.Name(), path.Base(u.target)+".")
		if size := e.Size(); mine && size <= u.program.Size && (most == nil || size > most.Size()) {
			most = e
		}
	}
	return most
}
