package winhost

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier"
	"wmco/bundle"
)

// keeper is what reads and changes the settings of one kind. Both may say applier.ErrNoSetting.
type keeper interface {
	// read tells what each of the names is, in their order.
	read(ctx context.Context, names []string) ([]applier.Setting, error)
	write(ctx context.Context, s applier.Setting) error
}

// settings are the keepers by kind.
type settings map[bundle.EntryKind]keeper

// read asks each keeper once for all names of its kind. What a machine cannot have is unavailable on it.
func (s settings) read(ctx context.Context, asked []applier.Setting) ([]applier.Setting, error) {
	names, places := map[bundle.EntryKind][]string{}, map[bundle.EntryKind][]int{}
	for i, a := range asked {
		names[a.Kind] = append(names[a.Kind], a.Name)
		places[a.Kind] = append(places[a.Kind], i)
	}
	all := make([]applier.Setting, len(asked))
	for kind, of := range names {
		found, err := s.readKind(ctx, kind, of)
		if err != nil {
			return nil, fmt.Errorf("reading settings of kind %s: %w", kind, err)
		}
		for i, f := range found {
			f.Kind, f.Name = kind, of[i]
			all[places[kind][i]] = f
		}
	}
	return all, ctx.Err()
}

func (s settings) readKind(ctx context.Context, kind bundle.EntryKind, names []string) ([]applier.Setting, error) {
	k, ok := s[kind]
	if !ok {
		return nil, errors.New("unknown kind")
	}
	found, err := k.read(ctx, names)
	if errors.Is(err, applier.ErrNoSetting) {
		return slices.Repeat([]applier.Setting{{Unavailable: true}}, len(names)), nil
	}
	return found, err
}

// write changes one setting. To take away what the machine cannot have is no error.
func (s settings) write(ctx context.Context, setting applier.Setting) error {
	k, ok := s[setting.Kind]
	if !ok {
		return fmt.Errorf("setting %s: unknown kind", setting.ID())
	}
	err := k.write(ctx, setting)
	if errors.Is(err, applier.ErrNoSetting) && !setting.Present {
		return nil
	}
	if err != nil {
		return fmt.Errorf("setting %s: %w", setting.ID(), err)
	}
	return ctx.Err()
}

// each reads names one by one.
func each(ctx context.Context, names []string, read func(name string) (applier.Setting, error)) ([]applier.Setting, error) {
	all := make([]applier.Setting, 0, len(names))
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
