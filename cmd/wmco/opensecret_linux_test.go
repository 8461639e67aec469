package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAnArchiveIsForItsOwner: it has secrets in clear, also where a file of its name was there for others to read. Modes of files do nothing on Windows.
func TestAnArchiveIsForItsOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, os.Chmod(name, 0o644))
	out, err := openSecret(name)
	must(t, err)
	must(t, out.Close())
	info, err := os.Stat(name)
	must(t, err)
	if info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%s, %d bytes", info.Mode(), info.Size())
	}
}
