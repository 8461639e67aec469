package records

import "regexp"

// unnamedError is an error about a stored content without the content's name, which is its plain SHA-256: with that of
// a secret, everyone who reads the error could try passwords until one fits.
type unnamedError struct{ err error }

var sha256Name = regexp.MustCompile(`[0-9a-fA-F]{64}`)

// HideContentName returns the error of a call for the file of a content without the content's name.
func HideContentName(err error) error {
	if err == nil || !sha256Name.MatchString(err.Error()) {
		return err
	}
	return &unnamedError{err}
}

func (e *unnamedError) Error() string {
	return sha256Name.ReplaceAllString(e.err.Error(), "(name hidden)")
}

// Unwrap implements errors. The text of what it returns has the name.
func (e *unnamedError) Unwrap() error { return e.err }
