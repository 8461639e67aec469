package winhost

import (
	"context"
	"strings"

	"wmco/applier"
)

// computerName is the name of the machine, which changes with a boot.
type computerName interface {
	// names are the one that the machine goes by and the one that it gets with the next boot.
	names() (active, next string, err error)
	rename(name string) error
}

// computer keeps bundle.KindHostName.
type computer struct{ name computerName }

func (c computer) read(_ context.Context, names []string) ([]applier.Setting, error) {
	active, next, err := c.name.names()
	if err != nil {
		return nil, err
	}
	all := make([]applier.Setting, len(names))
	for i := range all {
		all[i] = applier.Setting{Value: next, Present: true, Pending: !strings.EqualFold(active, next)}
	}
	return all, nil
}

// write does nothing for a name that is not wanted any more: a machine always has one.
func (c computer) write(_ context.Context, s applier.Setting) error {
	_, next, err := c.name.names()
	if err != nil || !s.Present || next == s.Value {
		return err
	}
	return c.name.rename(s.Value)
}

// nextName is the DNS host name that a machine gets with the next boot: the one that is recorded; where none is, the NetBIOS
// name of the next boot, if that is another one than today's.
func nextName(active, nextHost, activeShort, nextShort string) string {
	switch {
	case nextHost != "" && !strings.EqualFold(nextHost, active):
		return nextHost
	case nextShort != "" && !strings.EqualFold(activeShort, nextShort) && nextHost == "":
		return nextShort
	}
	return active
}
