package published

import (
	"errors"
	"strings"
	"testing"

	"wmco/bundle"
)

// TestAnnotationsThatNoProgramWrites are refused before anything of them is used.
func TestAnnotationsThatNoProgramWrites(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(*Desired)
	}{
		{"a negative term", "a negative counter or time", func(d *Desired) { d.Term = -1 }},
		{"a negative sequence", "a negative counter or time", func(d *Desired) { d.Sequence = -1 }},
		{"a negative time", "a negative counter or time", func(d *Desired) { d.PermitFor = -1 }},
		{"a request that is no digest", `"today"`, func(d *Desired) { d.Boot = "today" }},
		{"a masked layer", "is not the digest of a layer", func(d *Desired) { d.Cluster.Digest = bundle.Masked }},
		{"the digest of a secret", "is not the digest of a layer", func(d *Desired) { d.Cluster.Digest = key.Of([]byte("x")) }},
		{"a layer both inline and in Secrets", "is neither inline nor in Secrets alone", func(d *Desired) { d.Node.Parts = 1 }},
		{"a layer that is too large inline", "is larger than a layer can be", func(d *Desired) { d.Node.Inline = make([]byte, MaxInline+1) }},
		{"more parts than a layer can have", "is larger than a layer can be", func(d *Desired) { d.Cluster.Parts = maxParts + 1 }},
		{"another bundle than that of its layers", "the bundle of these layers is", func(d *Desired) { d.Bundle = d.Node.Digest }},
	} {
		d := desired(t)
		tt.change(&d)
		if err := d.checkValues(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if text, err := d.Encode(); err == nil {
			t.Errorf("%s is written: %s", tt.name, text)
		}
	}
}

// TestAnyLimitShortens, also one that is shorter than what marks the end.
func TestAnyLimitShortens(t *testing.T) {
	for most, want := range map[int]string{0: "...", 2: "...", 3: "...", 5: "it...", 6: "it was"} {
		if got := ShortenTo("it was", most); got != want {
			t.Errorf("%d bytes: %q, want %q", most, got, want)
		}
	}
}
