package applier

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// LimitGrowth limits what accumulates on a host, by the rules of the bundle that was applied last: logs in size, number
// and age, and files that programs keep adding. It writes nothing of the bundle and needs no lock.
func (e *Engine) LimitGrowth(ctx context.Context) error {
	l, err := records.ReadLedger(ctx, e.Host)
	if err != nil {
		return err
	}
	b := l.Bundle.ManifestBundle()
	var errs []error
	for _, s := range b.Services() {
		for _, log := range s.Logs {
			errs = append(errs, e.limitLogSize(ctx, log))
		}
	}
	for _, layer := range b.Layers() {
		for _, state := range layer.State {
			errs = append(errs, e.limitState(ctx, state))
		}
	}
	return errors.Join(errs...)
}

// limitLogSize rotates a log that its program does not rotate, and removes rotated ones that are too many or too old.
func (e *Engine) limitLogSize(ctx context.Context, l bundle.Log) error {
	if l.Rotation == bundle.RotationAgent && l.SizeBytes > 0 {
		if err := e.rotateLog(ctx, l); err != nil {
			return fmt.Errorf("rotating %s: %w", l.Path, err)
		}
	}
	if l.Rotation != bundle.RotationAgent && l.Rotation != bundle.RotationWrapper || l.Pattern == "" {
		return nil
	}
	oldest := time.Time{}
	if l.AgeSeconds > 0 {
		oldest = e.Clock.Now().Add(-time.Duration(l.AgeSeconds) * time.Second)
	}
	return e.limitFiles(ctx, bundle.Dir(l.Path), limit{pattern: l.Pattern, keep: l.Files, oldest: oldest})
}

func (e *Engine) rotateLog(ctx context.Context, l bundle.Log) error {
	infos, err := e.Host.Stat(ctx, []string{l.Path})
	if err != nil || infos[0].Kind != plan.FileRegular || infos[0].Size < l.SizeBytes {
		return err
	}
	return e.Host.CopyTruncate(ctx, l.Path, RotatedName(l, e.Clock.Now()))
}

// RotatedName returns the name of a log that is rotated at a time, such as containerd-20261120-083009.log: the time
// replaces the star in the pattern.
func RotatedName(l bundle.Log, at time.Time) string {
	stamp := at.UTC().Format("20060102-150405")
	return bundle.Dir(l.Path) + `\` + strings.Replace(l.Pattern, "*", stamp, 1)
}

func (e *Engine) limitState(ctx context.Context, s bundle.State) error {
	if s.Pattern == "" || s.Keep == 0 {
		return nil
	}
	return e.limitFiles(ctx, s.Path, limit{pattern: s.Pattern, keep: s.Keep})
}

// limit is how many files of a pattern stay.
type limit struct {
	pattern string
	// keep is the number of the newest files that stay, 0 for all.
	keep int
	// oldest is the earliest modification time of a file that stays.
	oldest time.Time
}

// limitFiles removes the oldest files in a folder.
func (e *Engine) limitFiles(ctx context.Context, dir string, p limit) error {
	if _, err := path.Match(p.pattern, ""); err != nil {
		return fmt.Errorf("pattern %q: %w", p.pattern, err)
	}
	infos, err := e.Host.List(ctx, dir)
	if err != nil {
		return err
	}
	infos = slices.DeleteFunc(infos, func(f plan.FileInfo) bool {
		return f.Kind != plan.FileRegular || !plan.MatchesPattern(p.pattern, f.Path)
	})
	slices.SortFunc(infos, func(a, b plan.FileInfo) int { return b.Modified.Compare(a.Modified) })
	var errs []error
	for i, f := range infos {
		if p.keep > 0 && i >= p.keep || f.Modified.Before(p.oldest) {
			errs = append(errs, e.Host.Remove(ctx, f.Path))
		}
	}
	return errors.Join(errs...)
}
