package settings

import (
	"errors"
	"testing"

	"wmco/applier/plan"
	"wmco/applier/winhost/keepertest"
	"wmco/bundle"
)

// fakePolicies fails at the write with the number fails, if that is not 0.
type fakePolicies struct {
	values, notes map[string]string
	writes, fails int
}

var errCut = errors.New("cut off")

func (f *fakePolicies) change(do func()) error {
	f.writes++
	if f.writes == f.fails {
		return errCut
	}
	do()
	return nil
}

// keeper returns a policyKeeper whose values and notes these are.
func (f *fakePolicies) keeper() policyKeeper {
	return policyKeeper{fakeTexts{f, f.values}, fakeTexts{f, f.notes}}
}

type fakeTexts struct {
	*fakePolicies
	texts map[string]string
}

func (f fakeTexts) getPolicy(name string) (string, bool, error) {
	v, ok := f.texts[name]
	return v, ok, nil
}
func (f fakeTexts) setPolicy(name, v string) error { return f.change(func() { f.texts[name] = v }) }
func (f fakeTexts) unsetPolicy(name string) error  { return f.change(func() { delete(f.texts, name) }) }

func newPolicies(before map[string]string) *fakePolicies {
	return &fakePolicies{values: before, notes: map[string]string{}}
}

func TestPolicies(t *testing.T) {
	f := newPolicies(map[string]string{})
	keepertest.CheckLifecycle(t, f.keeper(), &f.writes, bundle.PolicyUpdates, "3", "2")
	if len(f.values)+len(f.notes) > 0 {
		t.Errorf("%v %v", f.values, f.notes)
	}
	if err := f.keeper().Write(t.Context(), plan.Setting{Name: bundle.PolicyUpdates, Value: "on", Present: true}); err == nil || len(f.notes) > 0 {
		t.Errorf("%v %v", err, f.notes)
	}
}

// TestAPolicyOfBeforeIsPutBack, wherever setting and removing it is cut off, and not where an administrator has changed it since.
func TestAPolicyOfBeforeIsPutBack(t *testing.T) {
	const name = bundle.PolicyUpdates
	set, changed, unset := plan.Setting{Name: name, Value: "3", Present: true}, plan.Setting{Name: name, Value: "2", Present: true}, plan.Setting{Name: name}
	for _, before := range []string{"", "3", "4"} {
		for cut := range 8 {
			f := newPolicies(map[string]string{})
			if before != "" {
				f.values[name] = before
			}
			k := f.keeper()
			keepertest.CheckRead(t, k, name, plan.Setting{})
			f.fails = cut
			for _, s := range []plan.Setting{set, changed, unset} {
				for tries := 0; k.Write(t.Context(), s) != nil; tries++ {
					if tries > 1 {
						t.Fatalf("before %q, cut at %d: %+v is not written again", before, cut, s)
					}
				}
				keepertest.CheckRead(t, k, name, plan.Setting{Value: s.Value, Present: s.Present})
			}
			if f.values[name] != before || len(f.notes) > 0 {
				t.Errorf("before %q, cut at %d: %v %v", before, cut, f.values, f.notes)
			}
		}
	}
	f := newPolicies(map[string]string{name: "4"})
	k := f.keeper()
	for _, s := range []plan.Setting{set, unset} {
		if err := k.Write(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if s.Present {
			f.values[name] = "5" // by an administrator
		}
	}
	if f.values[name] != "5" || len(f.notes) > 0 {
		t.Errorf("%v %v", f.values, f.notes)
	}
}
