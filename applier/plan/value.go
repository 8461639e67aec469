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
	// Size is in bytes, -1 where only the digest is known.
	Size int64 `json:"size,omitempty"`
}

// ContentOf returns the content that data is.
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

// Contents is what a host knows of the contents that a manifest names. Public ones are known by their sha256; the
// digests of secrets are keyed, so those are known from what was sent with them.
type Contents map[bundle.Digest]Content

// ContentOf returns what the host knows of a content by its digest; size is in bytes, 0 where it is not known.
func (k Contents) ContentOf(d bundle.Digest, size int64) Content {
	if c, ok := k[d]; ok {
		return c
	}
	if hexadecimal, ok := strings.CutPrefix(string(d), "sha256:"); ok {
		return Content{SHA256: hexadecimal, Size: cmp.Or(size, -1)}
	}
	return Content{}
}

// ValueOf returns a value as a bundle has it: a secret by its digest, which is sent as content, any other as text.
func (k Contents) ValueOf(text string, d bundle.Digest) Value {
	if d == "" {
		return PlainValue(text)
	}
	return Value{Digest: d, Content: k.ContentOf(d, 0)}
}
