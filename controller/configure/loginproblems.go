package configure

import (
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/status"
)

// NoteLogin records why the operator could not log in to the host of a node with another key or account. A Progress
// without a message removes the record.
func (u *Unjoined) NoteLogin(node, address string, p Progress) {
	u.mu.Lock()
	before, known := u.logins[node]
	if p.Message == "" {
		delete(u.logins, node)
	} else {
		if u.logins == nil {
			u.logins = map[string]atNode{}
		}
		u.logins[node] = atNode{p, address}
	}
	_, is := u.logins[node]
	u.mu.Unlock()
	if known != is || is && before.Reason != p.Reason {
		u.noteChange()
	}
}

// LoginProblem returns why the operator could not log in to the host of a node with another key or account; false if it
// has no such record.
func (u *Unjoined) LoginProblem(node string) (status.Host, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r, ok := u.logins[node]
	return status.Host{Name: node, Address: r.address, Node: node, State: nodestate.Waiting, Reason: r.Reason,
		Message: published.Shorten(r.Message), Fix: published.Shorten(r.Fix)}, ok
}
