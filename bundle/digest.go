package bundle

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Digest names content: "sha256:<hex>" for public content, "hmac-sha256:<hex>" for secret content, and Masked for
// secret content in a preview, where there is no key.
type Digest string

// Masked stands for the digest of a secret in a preview. It is the same for all secrets, so a preview shows nothing
// about one, not even that it changed.
const Masked Digest = "masked"

const keyedAlgorithm = "hmac-sha256"

// Key is the random key of secret digests. Without it a digest of a short secret could be guessed from an annotation.
// The operator keeps one per cluster; previews have none (nil).
type Key []byte

var keyedDigest = regexp.MustCompile(`^` + keyedAlgorithm + `:[a-f0-9]{64}$`)

// Of returns the digest of public content.
func Of(content []byte) Digest { return Digest(digest.FromBytes(content)) }

// Of returns the digest of secret content: keyed, or Masked when there is no key.
func (k Key) Of(content []byte) Digest {
	if len(k) == 0 {
		return Masked
	}
	mac := hmac.New(sha256.New, k)
	_, _ = mac.Write(content) // hash.Hash documents that Write never returns an error
	return Digest(keyedAlgorithm + ":" + hex.EncodeToString(mac.Sum(nil)))
}

// Keyed reports whether d is that of secret content, which only the holder of the key can compute.
func (d Digest) Keyed() bool { return keyedDigest.MatchString(string(d)) }

// Validate returns an error if d has none of the three forms.
func (d Digest) Validate() error {
	if d == Masked || keyedDigest.MatchString(string(d)) {
		return nil
	}
	if err := digest.Digest(d).Validate(); err != nil {
		return fmt.Errorf("checking digest %q: %w", string(d), err)
	}
	if digest.Digest(d).Algorithm() != digest.SHA256 {
		return fmt.Errorf("checking digest %q: %w", string(d), digest.ErrDigestUnsupported)
	}
	return nil
}

// Short returns the first 12 hex digits, for people and for the names of files and objects.
func (d Digest) Short() string {
	_, hexDigits, found := strings.Cut(string(d), ":")
	if !found || len(hexDigits) < 12 {
		return string(d)
	}
	return hexDigits[:12]
}
