// Package erofs stands in for github.com/erofs/go-erofs in the containerd that checks rendered files in tests.
// containerd reads images of that file system with it, which no test and no Windows node needs. With the stand-in,
// containerd can be built where that module cannot be downloaded.
package erofs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrNotImplemented is what Open returns.
var ErrNotImplemented = errors.New("this stand-in reads no images")

// OpenOpt is an option of Open.
type OpenOpt func()

// Stat is what an image records about a file.
type Stat struct {
	Xattrs map[string]string
	Rdev   uint64
}

// WithExtraDevices changes nothing.
func WithExtraDevices(...io.ReaderAt) OpenOpt { return func() {} }

// Open always fails.
func Open(io.ReaderAt, ...OpenOpt) (fs.FS, error) { return nil, ErrNotImplemented }
