package remote

import (
	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// guessLimit is how many stored bytes are sent to a machine without asking what it lacks. A wrong guess costs them once
// more; to ask costs a command.
const guessLimit = 256 << 10

// lacks tells what a machine lacks of a request, as far as that follows from what it was left with: something small of
// another bundle. Otherwise the machine has to be asked, which it answers without a lock and knowing of parts.
func (c *Client) lacks(t Target, r Request) ([]applier.Missing, bool) {
	has := c.knows(t)
	if has.bundle == "" || has.bundle == r.Manifest.Digest {
		return nil, false
	}
	var lacks []applier.Missing
	size := int64(0)
	for _, content := range needed(r) {
		if !has.contents[content.SHA256] {
			lacks = append(lacks, applier.Missing{Digest: content.Digest})
			size += content.Stored
		}
	}
	return lacks, size <= guessLimit
}

// left remembers what a machine holds after an application, and forgets it where that is not known.
func (c *Client) left(t Target, r Request, result applier.Result) {
	if result == applier.ResultSame && c.knows(t).bundle == r.Manifest.Digest {
		return
	}
	digest, contents := bundle.Digest(""), map[string]bool(nil)
	if result == applier.ResultApplied || result == applier.ResultSame {
		digest, contents = r.Manifest.Digest, map[string]bool{}
		for _, content := range needed(r) {
			contents[content.SHA256] = true
		}
	}
	c.learns(t, func(m *memory) { m.bundle, m.contents = digest, contents })
}

// needed are the contents of the source that the manifest names.
func needed(r Request) []archive.Content {
	names := map[bundle.Digest]bool{}
	for _, d := range archive.Needs(r.Manifest) {
		names[d] = true
	}
	var list []archive.Content
	for _, c := range r.Source.Contents() {
		if names[c.Digest] {
			list = append(list, c)
		}
	}
	return list
}
