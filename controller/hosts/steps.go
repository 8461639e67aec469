package hosts

import (
	"context"
	"time"

	"wmco/applier/remote"
	"wmco/bundle"
)

// servicesOf returns the services of a bundle.
func servicesOf(m bundle.Manifest) []bundle.Service {
	var all []bundle.Service
	for _, l := range m.Layers {
		all = append(all, l.Layer.Services...)
	}
	return all
}

// waitPause is how often the time that a host has waited is updated.
const waitPause = 5 * time.Second

// noteSteps notes for how long a host has waited, until the context ends.
func noteSteps(ctx context.Context, steps *remote.RunSteps) {
	every := time.NewTicker(waitPause)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			noteStep(ctx, steps)
		}
	}
}

// noteStep notes the step of a host, once it has begun.
func noteStep(ctx context.Context, steps *remote.RunSteps) {
	if text := steps.StepText(time.Now()); text != "" {
		remote.NoteStep(ctx, remote.Step{Text: text})
	}
}
