package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// The first sample is before the time that is shown, because rates look back.
const (
	shown  = 3 * time.Hour
	before = time.Hour
)

// errNoPanel says that there is nothing to draw.
var errNoPanel = errors.New("it has no panels")

// Screen draws the dashboard of a ConfigMap with the samples of a file.
func Screen(ctx context.Context, to io.Writer, dashboard, samples string) error {
	d, err := Read(dashboard)
	if err != nil {
		return err
	}
	if len(d.Panels()) == 0 {
		return fmt.Errorf("reading %s: %w", dashboard, errNoPanel)
	}
	end := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	data, err := ReadSamples(samples, end.Add(-shown-before))
	if err != nil {
		return err
	}
	panels, err := Evaluate(ctx, d, data, end.Add(-shown), end)
	if err != nil {
		return err
	}
	return Draw(to, d.Title, panels)
}
