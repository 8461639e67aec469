package payload

import (
	"fmt"
	"strings"

	"wmco/bundle"
)

// Blob is a content by digest and size in bytes.
type Blob struct {
	Digest bundle.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// maxSize is the largest size of an executable, in bytes. It is six times the size of the largest that we ship.
const maxSize = 512 << 20

// CheckValues returns an error unless it is the digest and the size of an executable.
func (b Blob) CheckValues() error {
	if err := b.Digest.Validate(); err != nil {
		return err
	}
	if !strings.HasPrefix(string(b.Digest), "sha256:") {
		return fmt.Errorf("%q is not a sha256 digest", b.Digest)
	}
	if b.Size <= 0 || b.Size > maxSize {
		return fmt.Errorf("a size of %d bytes is not valid", b.Size)
	}
	return nil
}
