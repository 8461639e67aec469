package modules

import (
	"fmt"
	"regexp"
	"strings"
)

// RefusedError is a module version that cannot be downloaded.
type RefusedError struct {
	Module, Version string
	// Reason is what the proxy or the network says, on one line.
	Reason string
}

// Error implements error.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("%s@%s: %s", r.Module, r.Version, r.Reason)
}

// refusal matches how the go command (cmd/go/internal/modfetch) says that it could not fetch a version: the module, then
// the request that failed. A checksum that does not match, a missing line of go.sum and a source that does not compile
// are worded otherwise, and are no refusal.
var refusal = regexp.MustCompile(`(?m)(?:^|\s)([^\s@]+)@(v[^\s:]+): ((?:reading |Get "|invalid version: |unrecognized import path |module lookup disabled).*)$`)

// status matches the answer of a proxy in such a line.
var status = regexp.MustCompile(`\b([45]\d\d [A-Z][A-Za-z ]+)$`)

// FindRefused looks for the first module that could not be downloaded in what the go command printed on stderr.
func FindRefused(stderr string) (*RefusedError, bool) {
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
