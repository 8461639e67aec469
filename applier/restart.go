package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrInterrupted means that a run was interrupted, which Repair resumes or undoes first.
var ErrInterrupted = errors.New("an interrupted run comes first")

// RestartServices stops services in the order of their names and starts them in the reverse order, so a service stands
// before those that it depends on. A service that does not exist is left out. What cannot be started stays stopped, and
// Repair starts it. Wait is how long another run may keep the host.
func (e *Engine) RestartServices(ctx context.Context, names []string, wait time.Duration) error {
	return newRun(e, Options{LockWait: wait}).whileLocked(ctx, func() error { return e.restartServices(ctx, names) })
}

func (e *Engine) restartServices(ctx context.Context, names []string) error {
	s, err := e.loadSituation(ctx)
	switch {
	case err != nil:
		return err
	case s.records.Interrupted:
		return ErrInterrupted
	}
	states, err := e.Host.Services(ctx, names)
	if err != nil {
		return err
	}
	var stopped []string
	for _, state := range states {
		if state.CommandLine == "" { // it does not exist
			continue
		}
		if err = e.Host.StopService(ctx, state.Name); err != nil {
			break
		}
		stopped = append(stopped, state.Name)
	}
	for _, name := range slices.Backward(stopped) {
		err = errors.Join(err, e.Host.StartService(ctx, name))
	}
	if err != nil {
		return fmt.Errorf("restarting services: %w", err)
	}
	return nil
}
