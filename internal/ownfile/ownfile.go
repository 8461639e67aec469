// Package ownfile checks whether the file of the running program has the contents that its name promises: whoever uploads a program
// under a name with its digest need not read it back before each run.
//
// It finds damage, such as a file that a power cut has left half written. It does not find a program that somebody planted: such a
// program would not ask.
package ownfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// named is the name of a program with the beginning of its SHA-256.
var named = regexp.MustCompile(`^[a-z0-9-]+-([0-9a-f]{12})(\.exe)?$`)

// DamagedError says that a file has other contents than its name says.
type DamagedError struct {
	Path string
	// Digest is the SHA-256 of the file, Named the beginning that its name has.
	Digest, Named string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: its digest begins with %s; fix: upload it again", e.Path, e.Digest[:len(e.Named)])
}

// Check compares the file of this program with its name. A name without a digest promises nothing.
//
// On Windows, os.Executable is GetModuleFileNameW: the path that this process was started from, also after the file was renamed
// (learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-getmodulefilenamew). The file of a program that runs can be opened
// to be read: the image of a process denies writing and deleting alone.
func Check() error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the file of this program: %w", err)
	}
	return check(path)
}

func check(path string) error {
	name := named.FindStringSubmatch(strings.ToLower(filepath.Base(path))) // Windows ignores case
	if name == nil {
		return nil
	}
	digest, err := Digest(path)
	if err != nil {
		return fmt.Errorf("reading the file of this program: %w", err)
	}
	if !strings.HasPrefix(digest, name[1]) {
		return &DamagedError{Path: path, Digest: digest, Named: name[1]}
	}
	return nil
}

// Digest returns the SHA-256 of a file, in hex.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	// Large reads: each one is a system call, and a file system filter of a scanner may look at each.
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}
