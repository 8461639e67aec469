// Package keepertest has checks for the tests of every settings.Keeper. It does not import settings, whose tests use
// it.
package keepertest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
)

// Keeper is settings.Keeper.
type Keeper interface {
	Read(ctx context.Context, names []string) ([]plan.Setting, error)
	Write(ctx context.Context, s plan.Setting) error
}

// CheckLifecycle checks that a setting that does not exist takes each of the values and can be removed, and that
// writing the present value does not increase writes.
func CheckLifecycle(t *testing.T, k Keeper, writes *int, name string, values ...string) {
	t.Helper()
	steps := []plan.Setting{}
	for _, v := range values {
		steps = append(steps, plan.Setting{Name: name, Value: v, Present: true})
	}
	CheckRead(t, k, name, plan.Setting{})
	for _, step := range append(steps, plan.Setting{Name: name}) {
		if err := k.Write(t.Context(), step); err != nil {
			t.Fatalf("%+v: %v", step, err)
		}
		CheckRead(t, k, name, plan.Setting{Value: step.Value, Present: step.Present})
		before := *writes
		if err := k.Write(t.Context(), step); err != nil {
			t.Fatalf("%+v again: %v", step, err)
		}
		if *writes != before {
			t.Errorf("%+v was written although it was set", step)
		}
	}
}

// CheckRead checks what the setting with this name is.
func CheckRead(t *testing.T, k Keeper, name string, want plan.Setting) {
	t.Helper()
	got, err := k.Read(t.Context(), []string{name})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]plan.Setting{want}, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
