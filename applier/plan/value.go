package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"wmco/bundle"
)

// Content names bytes by their digest. A zero Content is not known on this host.
type Content struct {
	// SHA256 is of the raw bytes, in hex.
	SHA256 string `json:"sha256,omitempty"`
	// Size is in bytes, -1 if only the digest is known.
	Size int64 `json:"size,omitempty"`
}

// ContentOf returns the Content of data.
func ContentOf(data []byte) Content {
	sum := sha256.Sum256(data)
	return Content{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// Value is the text of a setting or variable. It may be a secret that this host does not have yet.
type Value struct {
	Text string
	// Known reports whether Text is the value; otherwise Content names it.
	Known   bool
	Digest  bundle.Digest
	Content Content
}

// PlainValue returns a value that is known.
func PlainValue(text string) Value {
	return Value{Text: text, Known: true, Content: ContentOf([]byte(text))}
}

// EqualsText reports whether text is the value.
func (v Value) EqualsText(text string) bool {
	if v.Known {
		return v.Text == text
	}
	return v.Content.SHA256 != "" && v.Content.SHA256 == ContentOf([]byte(text)).SHA256
}

// Variable is an environment variable of a service as it should be.
type Variable struct {
	Name  string
	Value Value
}

// SplitVariable splits a line NAME=value.
func SplitVariable(text string) Variable {
	name, value, _ := strings.Cut(text, "=")
	return Variable{Name: name, Value: PlainValue(value)}
}

// Contents are the contents that a host knows, by their digests in a manifest. The digest of a public content is its
// SHA-256. The digest of a secret is keyed, so a host knows a secret only if it was sent along.
type Contents map[bundle.Digest]Content

// ContentOf returns the Content with a digest; size is in bytes, 0 if it is not known.
func (k Contents) ContentOf(d bundle.Digest, size int64) Content {
	if c, ok := k[d]; ok {
		return c
	}
	if hexadecimal, ok := strings.CutPrefix(string(d), "sha256:"); ok {
		return Content{SHA256: hexadecimal, Size: cmp.Or(size, -1)}
	}
	return Content{}
}

// ValueOf returns a value of a bundle. Without a digest, text is the value. With a digest, the value is a secret whose text
// is sent separately.
func (k Contents) ValueOf(text string, d bundle.Digest) Value {
	if d == "" {
		return PlainValue(text)
	}
	return Value{Digest: d, Content: k.ContentOf(d, 0)}
}
