package winhost

import (
	"context"
	"errors"
	"time"
)

// errTooLong is wrapped by what is told of a wait that reached its limit.
var errTooLong = errors.New("it takes too long")

// poll asks until the answer is yes, at once and then after each pause.
func poll(ctx context.Context, limit, pause time.Duration, done func() (bool, error)) error {
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
			return errTooLong
		case <-tick.C:
		}
	}
}
