package folderhost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"wmco/applier"
)

// errContent marks errors of contents.
var errContent = errors.New("the contents broke off")

// source remembers why contents broke off, which is nothing that the machine did.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// failed marks the error of a copy if it came from here.
func (s *source) failed() error {
	if s.err == nil {
		return nil
	}
	return errContent
}

// fileError tells why a file could not be written, as far as the system says. What has a reason already keeps it.
func fileError(name string, err error) error {
	var known *applier.FileError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errContent), errors.As(err, &known):
		return fmt.Errorf("changing %s: %w", name, err)
	case errors.Is(err, syscall.ENOSPC):
		return &applier.FileError{Path: name, Reason: applier.FileDiskFull, Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &applier.FileError{Path: name, Reason: applier.FileDenied, Err: err}
	}
	return &applier.FileError{Path: name, Reason: applier.FileBroken, Err: err}
}
