//go:build !unix

package folderhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"wmco/bundle"
)

// fileID is made of what the standard library tells: another file with the same time and size has the same.
func fileID(info fs.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.ModTime().UnixNano(), info.Size())
}

// accessOf cannot tell.
func accessOf(fs.FileInfo) bundle.Access { return "" }

// syncFolder does nothing: names are flushed with the journal of the file system.
func syncFolder(*os.Root, string) error { return nil }

func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
