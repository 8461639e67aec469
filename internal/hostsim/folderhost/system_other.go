//go:build !unix

package folderhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"wmco/bundle"
)

// fileID is made of modification time and size, which another file may share.
func fileID(info fs.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.ModTime().UnixNano(), info.Size())
}

// accessOf returns the access that stands for unknown.
func accessOf(fs.FileInfo) bundle.Access { return "" }

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
