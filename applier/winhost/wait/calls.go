package wait

import (
	"fmt"
	"time"
)

// Calls are calls into one part of Windows that may hang and cannot be canceled, such as the Host Networking Service. A
// call that takes too long is given up: its goroutine, and the thread that it is on, stay until it returns, if ever.
// There is one call at a time, so that no number of them piles up: while a call that was given up has not returned,
// every other one is refused.
type Calls struct {
	what  string
	limit time.Duration
	slot  chan struct{}
}

// NewCalls returns the calls into a part of Windows. The limit is for one call, and for the wait for the one before it.
func NewCalls(what string, limit time.Duration) *Calls {
	return &Calls{what: what, limit: limit, slot: make(chan struct{}, 1)}
}

// errNoAnswer is the same text each time, as it is reported.
func (c *Calls) errNoAnswer(limit time.Duration) error {
	return fmt.Errorf("%s has not answered within %s: %w", c.what, limit, ErrTooLong)
}

// Call makes a call within the limit. The call must not write to what its caller reads: it may still run when Call has
// returned.
func Call[T any](c *Calls, call func() (T, error)) (T, error) { return CallWithin(c, c.limit, call) }

// CallWithin is Call for one that takes longer, such as a change.
func CallWithin[T any](c *Calls, limit time.Duration, call func() (T, error)) (T, error) {
	var none T
	late := time.NewTimer(c.limit)
	defer late.Stop()
	select {
	case c.slot <- struct{}{}:
	case <-late.C:
		return none, c.errNoAnswer(c.limit)
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-c.slot }()
		value, err := call()
		answered <- answer{value, err}
	}()
	late.Reset(limit)
	select {
	case a := <-answered:
		return a.value, a.err
	case <-late.C:
		return none, c.errNoAnswer(limit)
	}
}

// Do is CallWithin for a call without a result.
func (c *Calls) Do(limit time.Duration, call func() error) error {
	_, err := CallWithin(c, limit, func() (struct{}, error) { return struct{}{}, call() })
	return err
}
