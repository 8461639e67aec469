package sshhost

import (
	"wmco/applier"
	"wmco/render/bundle"
	"wmco/render/bundle/archive"
)

// holding is what a machine was left with.
type holding struct {
	bundle bundle.Digest
	// contents are the sha256 of those that it keeps.
	contents map[string]bool
}

// guessLimit is how many stored bytes are sent to a machine without asking what it lacks. A wrong guess costs them once
// more; to ask costs a command.
const guessLimit = 256 << 10

// maxHoldings is how many machines are remembered: some 6 kB each.
const maxHoldings = 4096

// lacks tells what a machine lacks of a request, as far as that follows from what it was left with: something small of
// another bundle. Otherwise the machine has to be asked, which it answers without a lock and knowing of parts.
func (c *Client) lacks(t Target, r Request) ([]applier.Missing, bool) {
	c.mu.Lock()
	has, known := c.holdings[t]
	c.mu.Unlock()
	if !known || has.bundle == r.Manifest.Digest {
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

// learn remembers what a machine holds after an application, and forgets it where that is not known.
func (c *Client) learn(t Target, r Request, result applier.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if result != applier.ResultApplied && result != applier.ResultSame {
		delete(c.holdings, t)
		return
	}
	if c.holdings[t].bundle == r.Manifest.Digest {
		return
	}
	has := holding{bundle: r.Manifest.Digest, contents: map[string]bool{}}
	for _, content := range needed(r) {
		has.contents[content.SHA256] = true
	}
	for other := range c.holdings {
		if len(c.holdings) < maxHoldings {
			break
		}
		delete(c.holdings, other) // it will be asked
	}
	c.holdings[t] = has
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
