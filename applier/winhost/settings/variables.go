package settings

import (
	"context"
	"strings"

	"wmco/applier/plan"
)

// variableStore has the environment variables of the host.
type variableStore interface {
	getVariable(name string) (value string, ok bool, err error)
	// setVariable writes the value with the type that e names.
	setVariable(name, value string, e expansion) error
	unsetVariable(name string) error
	// announceChange notifies the running programs that listen. Nothing depends on it.
	announceChange()
}

// expansion is whether %NAME% in a value stands for another variable.
type expansion int

const (
	literal expansion = iota // REG_SZ
	expands                  // REG_EXPAND_SZ
)

// expansionOf returns expands for a value with at least two percent signs, as PATH has them
// (learn.microsoft.com/windows/win32/sysinfo/registry-value-types).
func expansionOf(value string) expansion {
	if strings.Count(value, "%") >= 2 {
		return expands
	}
	return literal
}

// variableKeeper keeps bundle.KindVariable.
type variableKeeper struct{ store variableStore }

func (v variableKeeper) Read(ctx context.Context, names []string) ([]plan.Setting, error) {
	return ReadEach(ctx, names, func(name string) (plan.Setting, error) {
		value, ok, err := v.store.getVariable(name)
		return plan.Setting{Value: value, Present: ok}, err
	})
}

func (v variableKeeper) Write(_ context.Context, s plan.Setting) error {
	value, ok, err := v.store.getVariable(s.Name)
	if err != nil || ok == s.Present && value == s.Value {
		return err
	}
	if s.Present {
		err = v.store.setVariable(s.Name, s.Value, expansionOf(s.Value))
	} else if ok {
		err = v.store.unsetVariable(s.Name)
	}
	if err != nil {
		return err
	}
	v.store.announceChange()
	return nil
}
