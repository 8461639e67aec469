package winhost

import (
	"context"
	"strings"

	"wmco/applier"
)

// variableStore holds the environment variables of the machine.
type variableStore interface {
	get(name string) (value string, ok bool, err error)
	// set writes the value as one in which %NAME% stands for another variable, or as one in which nothing does.
	set(name, value string, expands expansion) error
	unset(name string) error
	// announce tells the programs that run and listen. Nothing depends on it.
	announce()
}

// expansion tells whether %NAME% in a value stands for another variable.
type expansion int

const (
	literal expansion = iota // REG_SZ
	expands                  // REG_EXPAND_SZ
)

// expansionOf takes a value with a pair of percent signs for one with variables in it, as PATH has them
// (learn.microsoft.com/windows/win32/sysinfo/registry-value-types).
func expansionOf(value string) expansion {
	if strings.Count(value, "%") >= 2 {
		return expands
	}
	return literal
}

// variables keeps bundle.KindVariable.
type variables struct{ store variableStore }

func (v variables) read(ctx context.Context, names []string) ([]applier.Setting, error) {
	return each(ctx, names, func(name string) (applier.Setting, error) {
		value, ok, err := v.store.get(name)
		return applier.Setting{Value: value, Present: ok}, err
	})
}

func (v variables) write(_ context.Context, s applier.Setting) error {
	value, ok, err := v.store.get(s.Name)
	if err != nil || ok == s.Present && value == s.Value {
		return err
	}
	if s.Present {
		err = v.store.set(s.Name, s.Value, expansionOf(s.Value))
	} else if ok {
		err = v.store.unset(s.Name)
	}
	if err != nil {
		return err
	}
	v.store.announce()
	return nil
}
