package render

import (
	"slices"

	"wmco/bundle"
)

// keyEntries adds the public keys with which the operator logs in to the host: the one that the host is known to
// accept, and the present one, until the operator has logged in with that. So a new key is added beside the old one,
// and the old one is removed once it is not needed.
//
//	accepted   present   keys of the host
//	-          any       none: the agent leaves all keys as they are (bundle.Kind.LastStays)
//	old        new       new, old         until a login with new has succeeded
//	new        new       new
//	old        -         old              the Secret is missing or cannot be used: nothing is withdrawn
//
// A host of which it is not known what it accepts gets none: a key that was managed before would be removed for one
// that nothing was proven of.
func (e *emitter) keyEntries() {
	r, ok := e.wantedRow(rowAuthorizedKey)
	if !ok || e.node.OlderAgent || e.node.NoKeys || e.node.AcceptedKey == "" {
		return
	}
	var lines []string
	for _, line := range []string{e.options.LoginKey, e.node.AcceptedKey} {
		if line == "" || slices.Contains(lines, line) {
			continue
		}
		fingerprint, err := bundle.Fingerprint(line)
		if err != nil {
			e.errs = append(e.errs, err)
			continue
		}
		lines = append(lines, line)
		e.layer.AuthorizedKeys = append(
			e.layer.AuthorizedKeys, bundle.AuthorizedKey{Fingerprint: fingerprint, Line: line, Impact: r.Impact},
		)
		e.addCauses(r, fingerprint)
	}
}
