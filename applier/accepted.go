package applier

import (
	"context"

	"wmco/applier/records"
)

// Accepted is the newest of what is published for the Node of a host that its agent has accepted.
type Accepted = records.Accepted

// Accepted returns what was accepted last; zero if nothing was.
func (e *Engine) Accepted(ctx context.Context) (Accepted, error) {
	return records.ReadAccepted(ctx, e.Host)
}

// Accept notes what is accepted, before anything is done with it. The folder of the records is made where a host has none.
func (e *Engine) Accept(ctx context.Context, a Accepted) error {
	if err := e.prepare(ctx); err != nil {
		return err
	}
	a.Program = e.Program
	return records.WriteAccepted(ctx, e.Host, a)
}
