package controlplane

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// snapshot is what etcd has after the start of a control plane, with the definitions and the objects that an API server
// makes at its first start: the next control plane of the same programs and definitions begins with it. The zero value
// keeps nothing.
type snapshot struct{ folder string }

// newSnapshot returns the one for programs and the files of definitions, beside the programs. It need not exist.
func newSnapshot(programs string, definitions []string) (snapshot, error) {
	digest := sha256.New()
	for _, name := range []string{Etcd, APIServer} {
		info, err := os.Stat(filepath.Join(programs, name))
		if err != nil {
			return snapshot{}, err
		}
		_, _ = fmt.Fprintln(digest, name, info.Size(), info.ModTime().UnixNano()) // a hash takes all
	}
	for _, file := range definitions {
		text, err := os.ReadFile(file)
		if err != nil {
			return snapshot{}, err
		}
		_, _ = digest.Write(text)
	}
	return snapshot{filepath.Join(programs, "snapshot-"+hex.EncodeToString(digest.Sum(nil)[:6]))}, nil
}

// copyTo copies it to the folder of an etcd, and reports whether there is one.
func (s snapshot) copyTo(data string) (bool, error) {
	_, err := os.Stat(s.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Most of it are zeros that etcd reserves for its log.
	if out, err := exec.Command("cp", "-R", "--sparse=always", s.folder+"/.", data).CombinedOutput(); err != nil { //nolint:gosec,noctx // short, and of tests
		return false, fmt.Errorf("copying %s: %w: %s", s.folder, err, out)
	}
	return true, nil
}

// keep has save write it. Of several processes that do so at the same time, one is first, and the others' are removed.
func (s snapshot) keep(save func(folder string) error) error {
	temporary, err := os.MkdirTemp(filepath.Dir(s.folder), "snapshot-*.part")
	if err != nil {
		return nil //nolint:nilerr // a folder that cannot be written, such as that of another user: the next start takes as long
	}
	copied := filepath.Join(temporary, "etcd")
	err = save(copied)
	if err == nil {
		err = os.Rename(copied, s.folder)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(temporary))
}
