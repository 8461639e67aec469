package layers

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// UnwrittenError means that some Secrets could not be written; the others were. Nodes can use bundles with complete layers.
type UnwrittenError struct {
	// Lacking are the names of Secrets that could not be written. Unreadable is true if the Role or its binding could not
	// be written: then nodes may be unable to read new Secrets.
	Lacking    map[string]bool
	Unreadable bool
	Err        error
}

func (e *UnwrittenError) Error() string { return e.Err.Error() }

// Unwrap implements errors.
func (e *UnwrittenError) Unwrap() error { return e.Err }

// IsPublished reports whether nodes can read all layers of a bundle after a call of PublishLayers that returned err.
func IsPublished(w Wanted, err error) bool {
	var some *UnwrittenError
	if !errors.As(err, &some) {
		return err == nil
	}
	return !some.Unreadable && !slices.ContainsFunc(w.layerSecrets(), func(s Secret) bool { return some.Lacking[s.Name] })
}

// maxFailures is how many Secrets may fail in a row before the rest is not tried, because the cause is not a single Secret.
const maxFailures = 8

// tryOnce calls do by Try, and reports whether it was called.
func (p *Publisher) tryOnce(ctx context.Context, what string, do func(context.Context) error) (tried bool, err error) {
	once := func(ctx context.Context) error { tried = true; return do(ctx) }
	if p.Try == nil {
		err = once(ctx)
	} else {
		err = p.Try(ctx, what, once)
	}
	return tried, err
}

// writeLayers creates and checks Secrets, and sets Damaged. Secrets that failed before come last, so that they do not delay
// others.
func (p *Publisher) writeLayers(ctx context.Context, c *Changes) *UnwrittenError {
	w := layerWriter{Publisher: p, unwritten: UnwrittenError{Lacking: map[string]bool{}}, failed: map[string]bool{}}
	_, err := p.tryOnce(ctx, "layers", func(ctx context.Context) error {
		w.writeAll(ctx, c.Create, p.createSecret)
		w.writeAll(ctx, c.Check, func(ctx context.Context, s Secret) error {
			replaced, err := p.replaceUnusable(ctx, s)
			if replaced {
				c.Damaged = append(c.Damaged, s.Name)
			}
			return err
		})
		if w.inRow >= maxFailures {
			return w.unwritten.Err
		}
		return ctx.Err()
	})
	if w.unwritten.Err == nil && err != nil { // nothing was tried
		w.unwritten.Err = err
		for _, s := range slices.Concat(c.Create, c.Check) {
			w.leaveSecret(s)
		}
	}
	p.failed = w.failed
	return &w.unwritten
}

// layerWriter writes Secrets once.
type layerWriter struct {
	*Publisher
	unwritten UnwrittenError
	failed    map[string]bool
	// inRow counts failures since the last success.
	inRow int
}

// writeAll writes Secrets in writeOrder.
func (w *layerWriter) writeAll(ctx context.Context, list []Secret, do func(context.Context, Secret) error) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Secret) int { return cmp.Compare(w.writeOrder(a), w.writeOrder(b)) })
	for _, s := range list {
		if w.inRow >= maxFailures || ctx.Err() != nil {
			w.leaveSecret(s)
			continue
		}
		tried, err := w.tryOnce(ctx, "Secret "+s.Name, func(ctx context.Context) error { return do(ctx, s) })
		switch {
		case err == nil:
			w.inRow = 0
		case tried:
			w.inRow++
			fallthrough
		default:
			w.unwritten.Lacking[s.Name], w.failed[s.Name] = true, true
			w.unwritten.Err = errors.Join(w.unwritten.Err, err)
		}
	}
}

// leaveSecret leaves a Secret for the next call.
func (w *layerWriter) leaveSecret(s Secret) {
	w.unwritten.Lacking[s.Name] = true
	if w.Publisher.failed[s.Name] {
		w.failed[s.Name] = true
	}
}

// writeOrder is 1, after the others, for a Secret whose last write failed.
func (w *layerWriter) writeOrder(s Secret) int {
	if w.Publisher.failed[s.Name] {
		return 1
	}
	return 0
}
