package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// Keeper reads and changes the settings of one kind. Both methods return applier.ErrNoSetting on a host that cannot
// have such settings.
type Keeper interface {
	// Read returns the settings with these names, in the order of names. Their Kind and Name are not set.
	Read(ctx context.Context, names []string) ([]plan.Setting, error)
	// Write does nothing if the setting is as it should be.
	Write(ctx context.Context, s plan.Setting) error
}

// Keepers has a Keeper for each kind of setting.
type Keepers map[bundle.EntryKind]Keeper

// Read returns the settings with the kinds and names of asked, in its order. It asks each Keeper once. Settings that
// the host cannot have are unavailable, and those of a kind that cannot be read are unknown.
func (k Keepers) Read(ctx context.Context, asked []plan.Setting) ([]plan.Setting, error) {
	names, places := map[bundle.EntryKind][]string{}, map[bundle.EntryKind][]int{}
	for i, a := range asked {
		names[a.Kind] = append(names[a.Kind], a.Name)
		places[a.Kind] = append(places[a.Kind], i)
	}
	all := make([]plan.Setting, len(asked))
	for kind, of := range names {
		found, err := k.readKind(ctx, kind, of)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errUnknownKind):
			return nil, fmt.Errorf("reading settings of kind %s: %w", kind, err)
		case err != nil:
			found = slices.Repeat([]plan.Setting{{Unknown: fmt.Sprintf("reading settings of kind %s: %v", kind, err)}}, len(of))
		}
		for i, f := range found {
			f.Kind, f.Name = kind, of[i]
			all[places[kind][i]] = f
		}
	}
	return all, ctx.Err()
}

var errUnknownKind = errors.New("unknown kind")

func (k Keepers) readKind(ctx context.Context, kind bundle.EntryKind, names []string) ([]plan.Setting, error) {
	keeper, ok := k[kind]
	if !ok {
		return nil, errUnknownKind
	}
	found, err := keeper.Read(ctx, names)
	if errors.Is(err, applier.ErrNoSetting) {
		return slices.Repeat([]plan.Setting{{Unavailable: true}}, len(names)), nil
	}
	return found, err
}

// Write changes one setting. Removing a setting that the host cannot have is no error.
func (k Keepers) Write(ctx context.Context, setting plan.Setting) error {
	keeper, ok := k[setting.Kind]
	if !ok {
		return fmt.Errorf("setting %s: %w", setting.ID(), errUnknownKind)
	}
	err := keeper.Write(ctx, setting)
	if errors.Is(err, applier.ErrNoSetting) && !setting.Present {
		return nil
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", setting.ID(), err)
	}
	return ctx.Err()
}

// ReadEach reads names one by one, for a Keeper whose API answers for one name.
func ReadEach(ctx context.Context, names []string, read func(name string) (plan.Setting, error)) ([]plan.Setting, error) {
	all := make([]plan.Setting, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// IgnoreNoSetting returns nil for applier.ErrNoSetting.
func IgnoreNoSetting(err error) error {
	if errors.Is(err, applier.ErrNoSetting) {
		return nil
	}
	return err
}
