package olm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Write makes a folder hold exactly these files.
func (f Files) Write(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("emptying %s: %w", folder, err)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		if err := os.WriteFile(path, f[name], 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}
