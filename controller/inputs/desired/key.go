package desired

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"wmco/bundle"
)

// keySize is the length of the key of secret digests, in bytes.
const keySize = 32

// UserKey returns the key of this user's secret digests, which is made at its first use. With the same key, the same
// inputs are the same bundle, so a host that has it is recognized. Where no key can be kept, each run has its own:
// hosts compare secrets by the index that travels with the manifest, and only the bundle's digest differs.
func UserKey() bundle.Key {
	fresh := make(bundle.Key, keySize)
	_, _ = rand.Read(fresh) // crypto/rand documents that it never fails
	dir, err := os.UserConfigDir()
	if err != nil {
		return fresh
	}
	path := filepath.Join(dir, "wmco", "digest.key")
	kept, err := os.ReadFile(path)
	switch {
	case err == nil && len(kept) == keySize:
		return kept
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return fresh
	}
	if createKeyFile(path, fresh) != nil {
		return fresh
	}
	// Another run may have been faster.
	if kept, err := os.ReadFile(path); err == nil && len(kept) == keySize {
		return kept
	}
	return fresh
}

// createKeyFile writes a key that does not exist yet, whole or not at all.
func createKeyFile(path string, key bundle.Key) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "digest.key-*")
	if err != nil {
		return err
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // which does not replace
	}
	return errors.Join(err, os.Remove(f.Name()))
}
