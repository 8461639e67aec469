package bundle

import (
	"fmt"
	"strings"
)

// MaskedText is what people see in place of a secret.
const MaskedText = "<masked>"

// Secret is text that must not reach a log, an error, an event, a diff or a golden. Printing or encoding it by any
// means shows MaskedText; only Reveal returns it.
type Secret struct {
	value string
	// public reports whether it is a stand-in, which hides nothing.
	public bool
}

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: value} }

// NewStandIn returns the marked stand-in of a secret that the inputs lack, such as one that a must-gather leaves out.
// Masking leaves it readable.
func NewStandIn(what string) Secret { return Secret{value: StandIn(what), public: true} }

const standInPrefix = "<stand-in: "

// StandIn returns the text that stands for something the inputs lack.
func StandIn(what string) string { return standInPrefix + what + " is not in the inputs>" }

// IsStandIn reports whether text stands for something that the inputs lack.
func IsStandIn(text string) bool { return strings.HasPrefix(text, standInPrefix) }

// Reveal returns the value, for writing it to where it belongs and nowhere else.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret at all.
func (s Secret) IsZero() bool { return s.value == "" }

// IsStandIn reports whether it stands for a secret that the inputs lack.
func (s Secret) IsStandIn() bool { return s.public }

// Masked returns a secret whose value is MaskedText; an absent one and a stand-in stay as they are.
func (s Secret) Masked() Secret {
	if s.IsZero() || s.public {
		return s
	}
	return Secret{value: MaskedText}
}

// String returns MaskedText, or nothing where there is no secret.
func (s Secret) String() string { return s.Masked().value }

// Format implements fmt.Formatter, so that no verb (%v, %+v, %#v, %x) shows the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText shows MaskedText in JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
