package ignition

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxContents is the largest size of a file, in bytes, uncompressed.
const maxContents = 4 << 20

// Resource is the source of a file's contents.
type Resource struct {
	// Source is a URL; empty for an empty file.
	Source string
	// Compression is empty or "gzip".
	Compression string
	// Hash is empty, or sha512-<hex> or sha256-<hex> of the uncompressed contents.
	Hash string
}

// DecodeContents returns the contents. Only data URLs are read: rendered MachineConfigs have no others. Errors do not
// quote the source or the contents, which may be secret.
func (r Resource) DecodeContents() ([]byte, error) {
	if r.Source == "" {
		return nil, nil
	}
	data, err := decodeDataURL(r.Source)
	if err != nil {
		return nil, err
	}
	switch r.Compression {
	case "":
	case "gzip":
		if data, err = gunzipContents(data); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("compression %q is not supported", r.Compression)
	}
	if len(data) > maxContents {
		return nil, fmt.Errorf("the contents have more than %d bytes", maxContents)
	}
	return data, r.verifyHash(data)
}

func (r Resource) verifyHash(data []byte) error {
	if r.Hash == "" {
		return nil
	}
	function, want, _ := strings.Cut(r.Hash, "-")
	var got string
	switch function {
	case "sha256":
		sum := sha256.Sum256(data)
		got = hex.EncodeToString(sum[:])
	case "sha512":
		sum := sha512.Sum512(data)
		got = hex.EncodeToString(sum[:])
	default:
		return errors.New("verification.hash is neither sha512-<hex> nor sha256-<hex>")
	}
	if !strings.EqualFold(got, want) {
		return errors.New("the contents do not match verification.hash")
	}
	return nil
}

func gunzipContents(data []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the contents are not gzip: %w", err)
	}
	out, err := io.ReadAll(io.LimitReader(zr, maxContents+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing the contents: %w", err)
	}
	return out, nil
}
