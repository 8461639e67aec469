package desired

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheKeyOfAUserIsKept(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	first := UserKey()
	if len(first) != keySize || !bytes.Equal(first, UserKey()) {
		t.Error("the key is not kept")
	}
	path := filepath.Join(home, "config", "wmco", "digest.key")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	// A truncated key is left alone and not used.
	if err := os.WriteFile(path, first[:5], 0o600); err != nil {
		t.Fatal(err)
	}
	if again := UserKey(); len(again) != keySize || bytes.Equal(again, first) {
		t.Errorf("%d bytes", len(again))
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(path, "not a folder"))
	if again := UserKey(); len(again) != keySize {
		t.Errorf("%d bytes where no key can be kept", len(again))
	}
}
