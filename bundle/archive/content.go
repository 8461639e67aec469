package archive

import (
	"fmt"
	"regexp"

	"github.com/opencontainers/go-digest"

	"wmco/bundle"
)

const (
	// PartSize is the size in bytes of one part of a content's stored form. The last part has the rest.
	PartSize = 4 << 20
	// MaxParts is the largest number of parts of a content, because the names of parts have three digits. That is 4.1
	// GB, stored.
	MaxParts = 999
)

// Content is one content of a bundle: a file, an executable, the DER bytes of a certificate, the value of a secret
// variable.
type Content struct {
	// Digest is the bundle's name for the content, keyed for a secret.
	Digest bundle.Digest `json:"digest"`
	// SHA256 is of the raw bytes, in hex.
	SHA256 string `json:"sha256"`
	// Size is the number of raw bytes.
	Size int64 `json:"size"`
	// Stored is the number of bytes as zstd. It is never 0: a frame without contents has bytes too.
	Stored int64 `json:"stored"`
}

// Parts returns the number of parts of the content.
func (c Content) Parts() int {
	if c.Stored <= 0 {
		return 0
	}
	return int((c.Stored-1)/PartSize + 1)
}

// Part returns the part with this number, from 1 to Parts.
func (c Content) Part(index int) Part { return Part{SHA256: c.SHA256, Index: index, Of: c.Parts()} }

// PartSize returns the size in bytes of the part with this number.
func (c Content) PartSize(index int) int64 {
	return min(PartSize, c.Stored-int64(index-1)*PartSize)
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Validate returns an error for the first thing that makes the content invalid.
func (c Content) Validate() error {
	if c.Digest == bundle.Masked {
		return ErrMasked
	}
	if err := c.Digest.Validate(); err != nil {
		return err
	}
	if !hexSHA256.MatchString(c.SHA256) {
		return fmt.Errorf("content %s: its SHA-256 is not 64 hex digits", c.Digest)
	}
	if d := digest.Digest(c.Digest); d.Algorithm() == digest.SHA256 && d.Encoded() != c.SHA256 {
		return fmt.Errorf("content %s: its SHA-256 does not match: %s", c.Digest, c.SHA256)
	}
	if c.Size < 0 {
		return fmt.Errorf("content %s: its size is %d", c.Digest, c.Size)
	}
	if c.Stored < 1 || c.Stored > MaxParts*PartSize {
		return fmt.Errorf("content %s: its stored size is %d, not 1 to %d", c.Digest, c.Stored, MaxParts*PartSize)
	}
	return nil
}
