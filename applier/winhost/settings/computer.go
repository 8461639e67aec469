package settings

import (
	"context"
	"strings"

	"wmco/applier/plan"
)

// computerName is the name of the host, which changes with a boot.
type computerName interface {
	// readNames returns the current name and the one after the next boot.
	readNames() (active, next string, err error)
	renameComputer(name string) error
}

// nameKeeper keeps bundle.KindHostName.
type nameKeeper struct{ name computerName }

func (k nameKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	active, next, err := k.name.readNames()
	if err != nil {
		return nil, err
	}
	all := make([]plan.Setting, len(names))
	for i := range all {
		all[i] = plan.Setting{Value: next, Present: true, Pending: !strings.EqualFold(active, next)}
	}
	return all, nil
}

// Write does not remove a name: a host always has one.
func (k nameKeeper) Write(_ context.Context, s plan.Setting) error {
	_, next, err := k.name.readNames()
	if err != nil || !s.Present || next == s.Value {
		return err
	}
	return k.name.renameComputer(s.Value)
}

// maxShort is the length of a NetBIOS name, in characters
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-setcomputernameexw, MAX_COMPUTERNAME_LENGTH).
const maxShort = 15

// isRenamed reports whether a DNS host name is the one after the next boot already: the NetBIOS name in effect is
// another one, and the next is of this name. So it is under Wine; Windows returns the old name until the boot.
func isRenamed(host, activeShort, nextShort string) bool {
	short := host[:min(len(host), maxShort)]
	return activeShort != "" && !strings.EqualFold(activeShort, nextShort) && strings.EqualFold(short, nextShort)
}

// nameAfterNextBoot returns the DNS host name after the next boot: the one that is recorded. If none is, it is the
// NetBIOS name after the next boot, if that differs from the current one.
func nameAfterNextBoot(active, nextHost, activeShort, nextShort string) string {
	switch {
	case nextHost != "" && !strings.EqualFold(nextHost, active):
		return nextHost
	case nextShort != "" && !strings.EqualFold(activeShort, nextShort) && nextHost == "":
		return nextShort
	}
	return active
}
