package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/controller/windowsnode/record"
)

// NoteLogin notes the key with which a host has let this process in. The transport calls it for each connection.
func (l *Login) NoteLogin(t remote.Target, key ssh.PublicKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used == nil {
		l.used = map[record.ID]string{}
	}
	l.used[record.ID(t.ID)] = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// UsedKey returns the public key, "ALGORITHM BASE64", with which this process has logged in to a host last; empty if it
// has not.
func (l *Login) UsedKey(id record.ID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[id]
}

func (l *Login) forgetUsedKey(id record.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.used, id)
}

// errNoKeyAsked means that a host let the operator in without having asked for a key, which proves nothing about keys.
var errNoKeyAsked = errors.New("the host lets the operator in without a key")

// ProveLogin logs in to a host over a new connection, under its pinned key, and returns the public key that it has
// accepted. A host that Wish.Check refuses, or for which no key is pinned yet, proves nothing.
func (h *Hosts) ProveLogin(ctx context.Context, l *Login, w Wish) (string, error) {
	pinned, err := l.Pinned(ctx, w.Target)
	if err != nil {
		return "", err
	}
	if len(pinned) == 0 {
		return "", fmt.Errorf("no host key is pinned for %s", w.Target.Host())
	}
	id := record.ID(w.Target.ID)
	l.forgetUsedKey(id)
	if err := h.CheckHost(ctx, w); err != nil {
		return "", err
	}
	key := l.UsedKey(id)
	if key == "" {
		return "", fmt.Errorf("%w: %s", errNoKeyAsked, w.Target.Host())
	}
	return key, nil
}
