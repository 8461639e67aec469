package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"wmco/applier/agent/images"
	"wmco/bundle"
	"wmco/bundle/published"
)

// keepsImages reports whether the agent has images pulled and pinned.
func (a *Agent) keepsImages() bool {
	return a.Images != nil && a.Cluster != nil && !a.Options.ReportOnly
}

// newImageKeeper returns what has images pulled beside the agent: a pull takes minutes, and nothing of a bundle waits
// for one.
func (a *Agent) newImageKeeper(changed chan<- struct{}) *images.Keeper {
	return &images.Keeper{
		Runtime: a.Images, List: a.readFile(bundle.PinnedImagesFile), Credentials: a.readFile(bundle.PinnedCredentialsFile), Clock: a.Engine.Clock, Log: a.Log, Jitter: a.Options.Jitter,
		Changed: func() { wake(changed) },
		Warn: func(ctx context.Context, message string) {
			a.sendEventToNode(ctx, Event{Warning: true, Reason: EventImageNotPulled, Message: message})
		},
	}
}

// readFile returns a function that reads a file that the bundle has brought, nil if there is none. The decoders refuse what is too
// large.
func (a *Agent) readFile(path string) func(context.Context) ([]byte, error) {
	const most = 16 << 20
	return func(ctx context.Context) ([]byte, error) {
		file, err := a.Engine.Host.Open(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(file, most))
		return data, errors.Join(err, file.Close())
	}
}

// reportImages adds how far the images are, and that this agent pulls them. One that does not must not say so: the
// operator would wait for it.
func (a *Agent) reportImages(r *published.Report) {
	if a.images == nil {
		return
	}
	r.Features = slices.Sorted(slices.Values(append(r.Features, published.FeaturePinnedImages)))
	r.Images = a.images.Progress()
}

// imagesText is what people read of the images in the condition.
func imagesText(r published.Report) string {
	text := fmt.Sprintf("bundle %s is applied; %d of %s on this node", r.Desired.Short(), r.Images.Present,
		bundle.Count(r.Images.Wanted, "pinned image"))
	if r.Images.Message != "" {
		text += "; " + r.Images.Message
	}
	return published.Shorten(text)
}
