package remote

import (
	"context"
	"sync"
)

// reachFactor and minReach are how many machines are being reached at once, more than are worked on: one that does not
// answer waits for its limits without taking the place of one that does.
const (
	reachFactor = 4
	minReach    = 64
)

// Each does the work on every machine, on so many at once. It connects first, so that machines that do not answer hold up
// nobody. The errors are in the order of the targets; a machine's never keeps the others from going on.
func (c *Client) Each(ctx context.Context, targets []Target, parallel int, work func(context.Context, *Machine) error) []error {
	parallel = max(parallel, 1)
	reach := make(chan struct{}, max(reachFactor*parallel, minReach))
	turn := make(chan struct{}, parallel)
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			errs[i] = inTurn(ctx, reach, func() error {
				m := c.Machine(t)
				if err := m.reach(ctx); err != nil {
					return err
				}
				return inTurn(ctx, turn, func() error { return work(ctx, m) })
			})
		})
	}
	all.Wait()
	return errs
}

// inTurn waits for a place.
func inTurn(ctx context.Context, places chan struct{}, do func() error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case places <- struct{}{}:
	}
	defer func() { <-places }()
	return do()
}

// reach connects, if connections are kept.
func (m *Machine) reach(ctx context.Context) error {
	if m.client.pool.dialer.Limits.Kept <= 0 {
		return nil
	}
	c, _, err := m.client.pool.get(ctx, m.target)
	if err != nil {
		return err
	}
	m.client.pool.put(c)
	return nil
}
