package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"wmco/bundle"
)

// Program is the node program as it goes onto machines. Its path there tells its content, so a newer one never replaces an
// older one that runs.
type Program struct {
	// Path is where it lies on the machine, such as C:\k\agent\wmco-node-<digest12>.exe.
	Path   string
	Digest bundle.Digest
	// Size is in bytes.
	Size int64
	// Open reads it. Many machines may get it at once.
	Open func() (io.ReadCloser, error)
}

// FileProgram is the program in a file. pathOf tells its path on machines.
func FileProgram(file string, pathOf func(bundle.Digest) string) (Program, error) {
	f, err := os.Open(file)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node program: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return Program{}, fmt.Errorf("reading the node program: %w", err)
	}
	digest := bundle.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil)))
	open := func() (io.ReadCloser, error) { return os.Open(file) }
	return Program{Path: pathOf(digest), Digest: digest, Size: size, Open: open}, nil
}
