package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"wmco/bundle"
)

// Content names bytes. A zero one is not known on this host.
type Content struct {
	// SHA256 is of the raw bytes, in hex.
	SHA256 string `json:"sha256,omitempty"`
	// Size is in bytes, -1 where only the digest is known.
	Size int64 `json:"size,omitempty"`
}

func ContentOf(data []byte) Content {
	sum := sha256.Sum256(data)
	return Content{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// Value is the text of a setting or variable, which may be a secret that this host has not seen.
type Value struct {
	Text string
	// Known tells that text is the value; otherwise content names it.
	Known   bool
	digest  bundle.Digest
	Content Content
}

func PlainValue(text string) Value {
	return Value{Text: text, Known: true, Content: ContentOf([]byte(text))}
}

// Is tells whether text is the value.
func (v Value) Is(text string) bool {
	if v.Known {
		return v.Text == text
	}
	return v.Content.SHA256 != "" && v.Content.SHA256 == ContentOf([]byte(text)).SHA256
}

type variable struct {
	Name  string
	Value Value
}

func SplitVariable(line string) variable {
	name, text, _ := strings.Cut(line, "=")
	return variable{Name: name, Value: PlainValue(text)}
}

// Contents is what a host knows of the contents that a manifest names: by sha256 for public ones, and for secret ones, whose
// digests are keyed, by what came with them.
type Contents map[bundle.Digest]Content

func (k Contents) Content(d bundle.Digest, size int64) Content {
	if c, ok := k[d]; ok {
		return c
	}
	if hexadecimal, ok := strings.CutPrefix(string(d), "sha256:"); ok {
		return Content{SHA256: hexadecimal, Size: cmp.Or(size, -1)}
	}
	return Content{}
}

// Value is one that travels as content.
func (k Contents) Value(d bundle.Digest) Value { return Value{digest: d, Content: k.Content(d, 0)} }
