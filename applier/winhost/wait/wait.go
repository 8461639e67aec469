// Package wait polls until something is true. It is for APIs of Windows that report no completion.
package wait

import (
	"context"
	"errors"
	"time"
)

// ErrTooLong is wrapped by the error of a wait that reached its limit.
var ErrTooLong = errors.New("it takes too long")

// PollUntil calls done at once and then after each pause, until it returns true or an error.
func PollUntil(ctx context.Context, limit, pause time.Duration, done func() (bool, error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return ErrTooLong
		case <-tick.C:
		}
	}
}
