package modules

import (
	"fmt"
	"regexp"
	"strings"
)

// RefusedError is the error for a module version that cannot be downloaded.
type RefusedError struct {
	Module, Version string
	// Reason is the answer of the proxy or the network error, on one line.
	Reason string
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s@%s: %s", r.Module, r.Version, r.Reason)
}

// refusal matches the message of the go command (cmd/go/internal/modfetch) for a version that it could not fetch: the
// module, then the failed request. The messages for a checksum mismatch, a missing line of go.sum and a source that
// does not compile do not match.
var refusal = regexp.MustCompile(`(?m)(?:^|\s)([^\s@]+)@(v[^\s:]+): ((?:reading |Get "|invalid version: |unrecognized import path |module lookup disabled).*)$`)

// status matches the answer of a proxy in such a line.
var status = regexp.MustCompile(`\b([45]\d\d [A-Z][A-Za-z ]+)$`)

// findRefused returns the first module that could not be downloaded, from the stderr of the go command.
func findRefused(stderr string) (*RefusedError, bool) {
	m := refusal.FindStringSubmatch(stderr)
	if m == nil || strings.Contains(stderr, "checksum mismatch") || strings.Contains(stderr, "SECURITY ERROR") {
		return nil, false
	}
	reason := m[3]
	if s := status.FindStringSubmatch(reason); s != nil {
		reason = s[1]
	}
	return &RefusedError{Module: m[1], Version: m[2], Reason: reason}, true
}
